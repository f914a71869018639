#include "partition/pattern_refusals.h"

#include <algorithm>

#include "partition/break_up.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

void add_match(RefusedMatches& all, const std::string& backend, const RefusedMatch& match) {
  std::vector<RefusedMatch>& known = all[backend];
  const bool is_known = std::any_of(known.begin(), known.end(), [&](const RefusedMatch& one) {
    return one.pattern == match.pattern && one.verdict.message == match.verdict.message;
  });
  if (!is_known) known.push_back(match);
}

}  // namespace

void PatternRefusals::add(const CallNode& part, const std::string& backend, const RefusedMatch& match) {
  add_match(refused_[&part], backend, match);
}

// A call of the split that stands for none of the program is left out: nothing keeps it.
void PatternRefusals::add_split(const PatternRefusals& others, const IRModule& program, const IRModule& split) {
  if (others.refused_.empty()) return;
  const Composition composition = read_composition(program, split);
  std::set<const Object*> calls;  // those of the program
  for_each_decided_call(program, [&](const CallNode& call) { calls.insert(&call); });
  for_each_decided_call(split, [&](const CallNode& call) {
    const Expr plain = composition.plain_of(ref(&call));
    const auto found = others.refused_.find(&call);
    if (found == others.refused_.end() || !calls.contains(plain.object())) return;
    for (const auto& [backend, matches] : found->second) {
      for (const RefusedMatch& match : matches) add_match(refused_[plain.object()], backend, match);
    }
  });
}

PatternRefusals PatternRefusals::of_split(const IRModule& program, const IRModule& split) const {
  if (refused_.empty() || program == split) return *this;
  const Composition composition = read_composition(program, split);
  PatternRefusals made;
  const auto add = [&](const CallNode& call) {
    const auto found = refused_.find(composition.plain_of(ref(&call)).object());
    if (found != refused_.end()) made.refused_.emplace(&call, found->second);
  };
  for_each_decided_call(split, [&](const CallNode& call) {
    if (call.as_op() != nullptr) add(call);
    for (const CallNode* part : parts_of(call)) add(*part);
  });
  return made;
}

const RefusedMatches& PatternRefusals::of(const CallNode& call) const {
  static const RefusedMatches kEmpty;
  const auto found = refused_.find(&call);
  return found == refused_.end() ? kEmpty : found->second;
}

Verdict as_verdict(const RefusedMatches& refused, const std::string& backend) {
  Verdict all;
  const auto found = refused.find(backend);
  if (found == refused.end()) return all;
  for (const RefusedMatch& one : found->second) {
    if (all.ok()) all.reason = one.verdict.reason;
    const std::string why = one.verdict.message.empty() ? "its check does not say why" : one.verdict.message;
    all.message +=
        fmt::format("{}its pattern {} is refused here: {}", all.message.empty() ? "" : "; ", one.pattern, why);
  }
  return all;
}

}  // namespace headrace::partition
