#include "partition/pattern_refusals.h"

#include <algorithm>

#include "partition/decider.h"

namespace headrace::partition {

using relay::CallNode;

PatternRefusals::Key PatternRefusals::key_of(const CallNode& call) { return {place_of(call), kind_of(call)}; }

void PatternRefusals::add_call(const CallNode& call) { ++counts_[key_of(call)]; }

void PatternRefusals::add(const CallNode& part, const std::string& backend, const std::string& pattern,
                          const Verdict& verdict) {
  std::vector<Refused>& all = refused_[{key_of(part), backend}];
  const auto same = std::find_if(all.begin(), all.end(), [&](const Refused& one) {
    return one.pattern == pattern && one.verdict.message == verdict.message;
  });
  Refused& one = same != all.end() ? *same : all.emplace_back(Refused{pattern, verdict, {}});
  if (std::find(one.calls.begin(), one.calls.end(), &part) == one.calls.end()) one.calls.push_back(&part);
}

Verdict PatternRefusals::of(const CallNode& call, const std::string& backend) const {
  const auto found = refused_.find({key_of(call), backend});
  if (found == refused_.end()) return {};
  const auto count = counts_.find(found->first.first);
  Verdict all;
  for (const Refused& one : found->second) {
    if (count == counts_.end() || one.calls.size() != count->second) continue;
    if (all.ok()) all.reason = one.verdict.reason;
    const std::string why = one.verdict.message.empty() ? "its check does not say why" : one.verdict.message;
    all.message +=
        fmt::format("{}its pattern {} is refused here: {}", all.message.empty() ? "" : "; ", one.pattern, why);
  }
  return all;
}

}  // namespace headrace::partition
