// Place: makes the regions of a decision, and lists where each op goes and why; between the canonical passes and the
// native ones. Regions that are chosen here hold what the canonical passes made; functions that the program marks are
// as it wrote them.
//
//   def @f(%a, Compiler="x") { exp(%a) }         regions: @f for x
//   def @main(%p) { add(@f(%p), %p) }       ->   placement: exp by x, in @f; add by native
//
// The program may say itself what other backends compute: functions marked Compiler, which calls of @main name, are
// regions. Of all other ops, a decision says where they go (partition/decision.h): in general each to the first backend
// of a list that takes it, else it is native.
#pragma once

#include "artifact/manifest.h"
#include "partition/decision.h"
#include "relay/expr.h"

namespace headrace::partition {

// A part of the program that a backend other than the native one compiles.
struct Region {
  std::string name;     // the function under which its code is found: its global_symbol, else its name in the module
  std::string backend;  // value of the attribute Compiler
  relay::Function function;
  bool is_by_hand = true;  // the program marks it; otherwise it was chosen here
};

struct PlacedModule {
  IRModule module;                             // calls each region as a function marked Compiler
  std::vector<artifact::Placement> placement;  // one for each call of an op, in the order of evaluation
  std::vector<Region> regions;                 // in the order of their first call
  // The call of each row of `placement`, in `module`, for whoever walks it; a pattern's function that is called twice
  // has its calls twice. Empty after return_to_native.
  std::vector<const relay::CallNode*> calls = {};
  // The costs of each call in `placement`, which are none where costs did not decide. A pattern's ops have native costs
  // only, and its last op has the cost of the whole pattern on its backend.
  std::vector<std::vector<LabelSeconds>> costs = {};
  // A lower bound of the number of regions that were chosen here (graph::region_lower_bound).
  int64_t fewest_regions = 0;
  // Calls of the module that was decided on, or inside of its composite functions; it borrows that module.
  CallsBefore before = {};

  // Returns a call of `module` with the one that became it.
  PlacedCall call(const relay::CallNode& now) const {
    const auto* const found = before.find(&now);
    return {now, found == nullptr ? now : **found};
  }
};

// Places the main of `module`, which has types and has run through the canonical passes, on backends in the order of
// their priority. UserError for a region without a name, two different ones with one name, one with the name of the
// program, a Compiler that is not a name, and a region that uses variables from around it, has type parameters or sizes
// without a number, or gives no tensor.
PlacedModule place(const IRModule& module, const Backends& backends = {});
// Places the module of a decision. What patterns match and no backend computes is ops again, so that native passes fuse
// it.
PlacedModule place(const Decision& decision);

// Makes regions that their backends refuse, and that were chosen here, native parts of the program again.
void return_to_native(PlacedModule& placed, std::span<const std::optional<Refusal>> refused);

// The names of what computes an op where no backend does.
inline constexpr const char* kNative = "native";
inline constexpr const char* kExternal = "external";  // a function of the process, which computes a user's op

}  // namespace headrace::partition
