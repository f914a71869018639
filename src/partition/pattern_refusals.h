// Matches of patterns that their backends refused, with the reasons, for what explains a placement.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "partition/composition.h"
#include "partition/verdict.h"

namespace headrace::partition {

// A match that a backend refused.
struct RefusedMatch {
  std::string pattern;
  Verdict verdict;
};
// Those that have one call as a part, by backend.
using RefusedMatches = std::map<std::string, std::vector<RefusedMatch>>;

// The refused matches of a program, by its calls of ops. Borrows the program.
class PatternRefusals {
 public:
  // Adds a match that has this call as a part.
  void add(const relay::CallNode& part, const std::string& backend, const RefusedMatch& match);
  // Adds those of a split of the program.
  void add_split(const PatternRefusals& others, const IRModule& program, const IRModule& split);
  // Returns the refused matches of the calls of a split of the program, also of those inside of its composite
  // functions.
  PatternRefusals of_split(const IRModule& program, const IRModule& split) const;

  // Returns the refused matches that have this call as a part.
  const RefusedMatches& of(const relay::CallNode& call) const;

 private:
  std::unordered_map<const Object*, RefusedMatches> refused_;  // by call
};

// Returns the refusals by this backend as one verdict: "its pattern x.conv_relu is refused here: ...". No reason: none.
Verdict as_verdict(const RefusedMatches& refused, const std::string& backend);

}  // namespace headrace::partition
