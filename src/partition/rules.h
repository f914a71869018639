// Rules: placement by the order of a list of backends, each of which says what it computes.
//
//   backends ccompiler, other:   add(nn.softmax(%x), %y)   ->   nn.softmax: other; add: ccompiler
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "partition/backend.h"

namespace headrace::partition {

using Backends = std::vector<std::shared_ptr<const Backend>>;

// A module whose regions were chosen, and the names of these.
struct RuledModule {
  IRModule module;
  std::vector<std::string> regions;
};

// Gives each call of the main of a typed module to the first backend that takes it, alone or as a part of what one of
// its patterns matches, and makes functions of the regions (partition/extract.h). A call that none takes stays, as do
// functions that are marked Compiler already.
RuledModule place_by_rules(const IRModule& module, const Backends& backends);

// Returns the module with functions of what the backends' patterns match. A pattern leaves alone what an earlier
// backend takes. The module itself when nothing matches.
IRModule compose(const IRModule& module, const Backends& backends);

// Calls `visit` with each call of an op or of a composite function that passes enter and that a region can hold.
void for_each_placeable(const Expr& body, const std::function<void(const relay::CallNode&)>& visit);

// Returns whether the backend takes a call of an op or of a composite function, and why not. The attribute target.NAME
// of an op, if it has one, decides instead of the backend; a composite function is of the backend that its name begins
// with.
Verdict verdict_of(const Backend& backend, const relay::CallNode& call);

// Returns the sentence that says why no backend of the list takes a call, with the reason of the first.
Verdict why_native(const Backends& backends, const relay::CallNode& call);

}  // namespace headrace::partition
