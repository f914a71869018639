// Rules: what each backend of a list says of a call.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "partition/backend.h"
#include "partition/pattern_refusals.h"
#include "partition/support.h"

namespace headrace::partition {

using Backends = std::vector<std::shared_ptr<const Backend>>;

// Returns the typed module with functions of what the backends' patterns match; the module itself where nothing does. A
// pattern leaves alone what an earlier backend of the list takes. `refusals`, unless null, gets the matches that
// backends refuse, by the calls of `module`.
IRModule compose(const IRModule& module, const Backends& backends, PatternRefusals* refusals = nullptr);

// Returns the names of those whose regions have one call each.
std::set<std::string> one_call_backends(const Backends& backends);

// Returns the sentence that says why no backend of the list takes a call, with the reason of the first. `verdicts`: of
// each backend; a call that one takes is in no region for another reason. `refused`: matches of their patterns that
// have the call as a part.
Verdict refused_by_all(const Backends& backends, std::vector<Verdict> verdicts, const relay::CallNode& call,
                       const RefusedMatches& refused);

// Returns why a backend does not take a call, `verdict`, with its reasons against matches of its patterns at the call.
Verdict with_patterns(Verdict verdict, const RefusedMatches& refused, const std::string& backend);

}  // namespace headrace::partition
