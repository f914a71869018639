// Takes large constants out of a program, so that a pass can free each as soon as it has computed another one from it.
//
// The nodes of a program hold its constants until the last node is rewritten. A pass that replaces all weights needs
// twice their memory, but hardly more than once if stand-ins take their place in the program. A stand-in has the type
// of its constant, and zeros that take no memory as long as nobody writes them: it must not be evaluated.
#pragma once

#include <functional>
#include <unordered_map>

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

class TakenConstants {
 public:
  // Returns whether the pass may replace an argument of a call, given by its number.
  using MayReplace = std::function<bool(const relay::CallNode& call, size_t arg)>;

  // Returns the module with stand-ins for the large constants that have one reader, a call in which the pass may
  // replace them. The result is typed. Returns the module itself if there is none, if the context has no `infer_type`,
  // and if something else holds the module, so that no memory would be freed.
  IRModule take_from(IRModule module, const MayReplace& may_replace, const pass::PassContext& context);
  // Returns the expression with the constants in place of their stand-ins.
  Expr filled(const Expr& expr) const;
  // Frees the constants for which the operands of a call stand. The pass must have replaced the call.
  void free_operands(const relay::CallNode& call);
  // Returns the module with those constants that were not freed.
  IRModule put_back(const IRModule& module) const;

 private:
  std::unordered_map<const Object*, Expr> constants_;  // by stand-in, which a node of the module holds
};

}  // namespace headrace::passes
