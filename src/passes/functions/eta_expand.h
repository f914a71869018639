// EtaExpand: a constructor or a function of the module that is used as a value becomes a function that calls it.
//
//   @map(Some, %l)     ->   @map(fn (%x0: float32) -> Option[float32] { Some(%x0) }, %l)
//   @map(@step, %l)    ->   @map(fn (%x: float32) -> float32 { @step(%x) }, %l)
//
// Callees stay. Each use gets a function of its own, with the types of that use; a use that is polymorphic gets type
// parameters. For executors that cannot hold a constructor or a function of the module as a value. Needs types.
// Preserves results to the last bit.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

struct EtaOptions {
  bool expand_constructor = false;
  bool expand_global_var = false;
};
// Reads "relay.EtaExpand.expand_constructor" and "relay.EtaExpand.expand_global_var" from the context's configuration.
// UserError when one is not a bool.
EtaOptions eta_options(const pass::PassContext& context);

IRModule eta_expand(const IRModule& module, const EtaOptions& options);

}  // namespace headrace::passes
