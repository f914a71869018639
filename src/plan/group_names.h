// Names the functions that fused groups become: the ops in them, and a hash of the text.
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

// Gives equal groups one global function. Names depend on the groups' content and the order of their first use alone.
class GroupTable {
 public:
  GlobalVar add(const relay::Function& group);
  // Returns the functions in the order they were added.
  const std::vector<std::pair<GlobalVar, relay::Function>>& functions() const { return functions_; }

 private:
  std::vector<std::pair<GlobalVar, relay::Function>> functions_;
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash_;
  std::unordered_map<std::string, size_t> times_used_;
};

}  // namespace headrace::plan
