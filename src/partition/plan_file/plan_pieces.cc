#include "partition/plan_file/plan_pieces.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/near_names.h"
#include "partition/break_up.h"

namespace headrace::partition {

namespace {

class Splitter {
 public:
  Splitter(const Plan& plan, const PlanNames& names, const IRModule& program, const Backends& backends)
      : plan_(plan), names_(names), program_(program), backends_(backends), own_(names.calls_of(program)) {}

  IRModule split(PatternRefusals& refusals) {
    read_rows();
    for (const NamedCall& own : own_) found_.insert(key_of(own));
    const IRModule whole = compose(program_, backends_, &refusals);
    const Composition composition = read_composition(program_, whole);
    std::vector<const Instance*> matches;
    for (size_t i = 0; i < composition.pieces.size(); ++i) {
      if (composition.is_whole[i]) matches.push_back(&composition.pieces[i]);
    }
    choose(matches);
    if (first_missing() == nullptr) return without_others(with_instances(program_, chosen_));
    return split_by_all_matches();
  }

 private:
  using Key = std::pair<std::string, std::vector<int32_t>>;  // the name of a pattern, and the ops

  Key key_of(const NamedCall& call) const { return {call.kind, call.parts}; }

  void read_rows() {
    for (const PlannedOp& row : plan_.ops) {
      if (row.parts.empty()) {
        if (!names_.find(row.name, row.kind) && is_pattern(row.kind))
          fail(row.at, fmt::format("the row of the pattern {} does not list the ops that it has as \"parts\"; make the "
                                   "plan again",
                                   row.kind));
        continue;
      }
      Key key{row.kind, {}};
      for (const PlannedPart& part : row.parts) {
        const auto number = names_.find(part.name, part.kind);
        if (!number) fail(part.at, fmt::format("the model has no op '{}' of kind {}", part.name, part.kind));
        key.second.push_back(*number);
      }
      std::sort(key.second.begin(), key.second.end());
      if (!wanted_.insert(key).second)
        fail(range_of(row),
             fmt::format("another row of the pattern {} has these parts; remove one of the two", row.kind));
      rows_.emplace_back(&row, std::move(key));
    }
  }

  // Chooses the matches that rows list, in the order of the file, so that the first error is that of the first line. Of
  // several matches that have the same ops, it is the first one.
  void choose(const std::vector<const Instance*>& matches) {
    std::map<Key, const Instance*> by_key;
    for (const Instance* one : matches) by_key.emplace(Key(one->name(), names_.numbers_of(one->parts)), one);
    for (const auto& [row, key] : rows_) {
      const auto match = by_key.find(key);
      if (match == by_key.end() || !found_.insert(key).second) continue;
      check_is_free(*row, *match->second);
      chosen_.push_back(match->second);
    }
  }

  void check_is_free(const PlannedOp& row, const Instance& match) {
    for (const int32_t op : names_.numbers_of(match.inside)) {
      const auto [other, is_new] = replaced_.try_emplace(op, &row);
      if (is_new) continue;
      const PlannedPart& part = part_of(row, op);
      fail(part.at,
           fmt::format("the row '{}' of the pattern {} has the op '{}' of kind {} as well, and only one of the "
                       "two can replace it",
                       other->second->name, other->second->kind, part.name, part.kind));
    }
  }

  const PlannedPart& part_of(const PlannedOp& row, int32_t op) const {
    return *std::find_if(row.parts.begin(), row.parts.end(),
                         [&](const PlannedPart& part) { return names_.find(part.name, part.kind) == op; });
  }

  IRModule split_by_all_matches() {
    const InstanceSet set = find_instances(program_, backends_);
    HEADRACE_CHECK(set.all.empty() || set.module == program_, "the program's effects are not in order");
    std::vector<const Instance*> matches;
    for (const Instance& one : set.all) matches.push_back(&one);
    found_.clear();
    chosen_.clear();
    for (const NamedCall& own : own_) found_.insert(key_of(own));
    choose(matches);
    if (const PlannedOp* row = first_missing()) throw_no_match(*row);
    return without_others(with_instances(program_, chosen_));
  }

  // Returns the first row of a pattern for which there is no match yet.
  const PlannedOp* first_missing() const {
    const auto missing =
        std::find_if(rows_.begin(), rows_.end(), [&](const auto& row) { return !found_.contains(row.second); });
    return missing == rows_.end() ? nullptr : missing->first;
  }

  std::vector<std::string> patterns() const {
    std::vector<std::string> names;
    for (const auto& backend : backends_) {
      for (const CompositePattern& one : backend->patterns()) names.push_back(one.name);
    }
    for (const NamedCall& own : own_) {
      if (own.call->as_op() == nullptr) names.push_back(own.kind);
    }
    return names;
  }

  bool is_pattern(const std::string& kind) const {
    const std::vector<std::string> names = patterns();
    return std::find(names.begin(), names.end(), kind) != names.end();
  }

  [[noreturn]] void throw_no_match(const PlannedOp& row) const {
    if (is_pattern(row.kind))
      fail(range_of(row), fmt::format("the pattern {} does not match these ops as one; make the plan again", row.kind));
    const std::vector<std::string> near = near_names(row.kind, patterns(), '.');
    fail(range_of(row), fmt::format("no backend of the plan has a pattern '{}'{}", row.kind,
                                    near.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(near, " or "))));
  }

  // Breaks up the pieces of the program itself that the plan has no row for.
  IRModule without_others(const IRModule& split) const {
    std::set<std::pair<std::string, std::string>> rows;
    for (const PlannedOp& row : plan_.ops) rows.emplace(row.name, row.kind);
    std::set<const Object*> others;
    for (const NamedCall& one : names_.calls_of(split)) {
      const bool is_wanted = one.parts.empty() ? rows.contains({one.name, one.kind}) : wanted_.contains(key_of(one));
      if (one.call->as_op() == nullptr && !is_wanted) others.insert(one.call);
    }
    return break_up(split, others).module;
  }

  static TextRange range_of(const PlannedOp& row) { return {row.parts.front().at.begin, row.parts.back().at.end}; }
  [[noreturn]] void fail(const TextRange& at, const std::string& message) const {
    plan_.source->fail(at.begin, at.end, message);
  }

  const Plan& plan_;
  const PlanNames& names_;
  const IRModule& program_;
  const Backends& backends_;
  std::vector<NamedCall> own_;                          // calls of the program
  std::vector<std::pair<const PlannedOp*, Key>> rows_;  // rows of patterns, in the order of the file
  std::set<Key> wanted_, found_;
  std::vector<const Instance*> chosen_;
  std::map<int32_t, const PlannedOp*> replaced_;  // by op: the row whose piece replaces it
};

}  // namespace

IRModule split_of_plan(const Plan& plan, const PlanNames& names, const IRModule& program, const Backends& backends,
                       PatternRefusals& refusals) {
  return Splitter(plan, names, program, backends).split(refusals);
}

}  // namespace headrace::partition
