// Matches of patterns that their backends refused, with the reasons, for what explains a placement.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "partition/verdict.h"
#include "relay/expr.h"

namespace headrace::partition {

// Calls are known by their place and kind, since passes after the match make new nodes of them. Where several calls
// have one place and kind, as in programs without places, a refusal counts if all of them have it.
class PatternRefusals {
 public:
  // Counts a call of the program in which patterns are matched. Call for all calls of ops.
  void add_call(const relay::CallNode& call);
  // Adds a match that has this call as a part.
  void add(const relay::CallNode& part, const std::string& backend, const std::string& pattern, const Verdict& verdict);
  // Returns the refusals by this backend of matches with this call, as one verdict: "its pattern x.conv_relu is refused
  // here: ...". No reason: none.
  Verdict of(const relay::CallNode& call, const std::string& backend) const;

 private:
  struct Refused {
    std::string pattern;
    Verdict verdict;
    std::vector<const Object*> calls;
  };
  using Key = std::pair<std::string, std::string>;  // place and kind
  static Key key_of(const relay::CallNode& call);

  std::map<Key, size_t> counts_;
  std::map<std::pair<Key, std::string>, std::vector<Refused>> refused_;  // by call and backend
};

}  // namespace headrace::partition
