#include "partition/rules.h"

#include "partition/decision.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

// Asks an entry about a match, and keeps what it refuses.
bool is_accepted(const CompositePattern& entry, const relay::PatternGroup& group, const Expr& shown,
                 const std::string& backend, PatternRefusals* refusals) {
  const Verdict verdict = entry.accepts ? entry.accepts(group, shown) : Verdict();
  if (verdict.ok() || refusals == nullptr) return verdict.ok();
  for (const Expr& part : group.parts) {
    const auto* call = part.as<CallNode>();
    if (call != nullptr && call->as_op() != nullptr) refusals->add(*call, backend, {entry.name, verdict});
  }
  return false;
}

}  // namespace

IRModule compose(const IRModule& module, const Backends& backends, PatternRefusals* refusals) {
  std::vector<CompositePattern> table;
  // The programs that patterns are matched in, one made of the other, with what is refused there.
  std::vector<std::pair<IRModule, PatternRefusals>> programs;
  for (size_t i = 0; i < backends.size(); ++i) {
    const std::span<const std::shared_ptr<const Backend>> earlier(backends.data(), i);
    const auto is_free = [earlier](const Expr& part) {
      const auto* call = part.as<CallNode>();
      return call == nullptr || std::none_of(earlier.begin(), earlier.end(),
                                             [&](const auto& backend) { return verdict_of(*backend, *call).ok(); });
    };
    for (const CompositePattern& entry : backends[i]->patterns()) {
      const auto accepts = [is_free, &entry, &programs, wants_refusals = refusals != nullptr,
                            name = std::string(backends[i]->name())](const relay::PatternGroup& group,
                                                                     const Expr& shown) {
        return std::all_of(group.parts.begin(), group.parts.end(), is_free) &&
               is_accepted(entry, group, shown, name, wants_refusals ? &programs.back().second : nullptr);
      };
      table.push_back({.name = entry.name, .pattern = entry.pattern, .accepts = accepts, .is_read = entry.is_read});
    }
  }
  if (table.empty()) return module;
  const IRModule composed = merge_composite(
      module, table, [&](const IRModule& program) { programs.emplace_back(program, PatternRefusals()); });
  if (refusals != nullptr) {
    for (const auto& [program, refused] : programs) refusals->add_split(refused, module, program);
  }
  return composed;
}

std::set<std::string> one_call_backends(const Backends& backends) {
  std::set<std::string> names;
  for (const auto& backend : backends) {
    if (backend->one_call_per_region()) names.emplace(backend->name());
  }
  return names;
}

Verdict refused_by_all(const Backends& backends, std::vector<Verdict> verdicts, const CallNode& call,
                       const RefusedMatches& refused) {
  Verdict first;
  for (size_t i = 0; i < backends.size(); ++i) {
    const std::string name(backends[i]->name());
    Verdict verdict = std::move(verdicts[i]);
    if (!verdict.ok()) verdict = with_patterns(std::move(verdict), refused, name);
    if (verdict.ok()) verdict = {.reason = HR_REASON_PLACE_NO_REGION, .message = why_in_no_region(call)};
    if (first.ok()) first.reason = verdict.reason;
    if (!first.message.empty()) first.message += "; ";
    first.message += fmt::format("{}: {}", name,
                                 verdict.message.empty() ? "it takes the op alone, but the pattern that the op was "
                                                           "in is placed natively"
                                                         : verdict.message);
  }
  return first;
}

Verdict with_patterns(Verdict verdict, const RefusedMatches& refused, const std::string& backend) {
  const Verdict patterns = as_verdict(refused, backend);
  if (patterns.ok()) return verdict;
  // That the op alone has no form says less than what its pattern wants.
  if (verdict.reason == HR_REASON_OP_UNSUPPORTED) verdict.reason = patterns.reason;
  verdict.message += "; " + patterns.message;
  return verdict;
}

}  // namespace headrace::partition
