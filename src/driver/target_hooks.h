// Compiles regions by the hooks of a target kind (ir/target_kind.h): RelayToTIR takes all regions of a backend as one
// module, and TIRToRuntime what that made loops of. RelayToTIR may also compile regions itself: modules in the
// attribute `external_mods` of what it returns.
//
//   @f(%a, Compiler="x") { add(%a, %a) }  -- RelayToTIR of kind x -->  PrimFunc f(a, out)  -- TIRToRuntime -->  a
//   module
#pragma once

#include "partition/backend.h"
#include "tir/stmt.h"

namespace headrace::driver {

// A region after the hooks: exactly one of these is set.
struct HookedRegion {
  std::optional<partition::RegionSource> source;  // it is still a Relay function, which relay.ext.NAME compiles
  tir::PrimFunc kernel;                           // to be compiled natively; its symbol is the region's name
  runtime::Module module;                         // has a function of the region's name
};

// Returns whether a backend of that name has the hook RelayToTIR.
bool has_hooks(const std::string& backend);

// Runs the hooks of the kind `backend` over its regions; `program` holds the functions that they call. `options` are
// the backend's; its Target gets those that the kind has. UserError for a hook that returns something else, a module
// with other `external_mods`, or neither a function nor a module for one of the regions; for a PrimFunc whose buffers
// are not those of the region's parameters and results, or that breaks a rule of tir/verify.h.
std::vector<HookedRegion> run_hooks(const std::string& backend, std::span<const partition::RegionSource> regions,
                                    const IRModule& program, const Map<std::string, Value>& options);

}  // namespace headrace::driver
