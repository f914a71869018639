#include "partition/plan_file/plan_names.h"

#include <algorithm>

#include "base/utf8.h"
#include "partition/break_up.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

using NameAndKind = std::pair<std::string, std::string>;

// Breaks up all composite functions that main calls, also those in others.
IRModule without_pieces(const IRModule& program) {
  IRModule plain = program;
  for (;;) {
    std::set<const Object*> pieces;
    for_each_decided_call(plain, [&](const CallNode& call) {
      if (call.as_op() == nullptr) pieces.insert(&call);
    });
    if (pieces.empty()) return plain;
    plain = break_up(plain, pieces).module;
  }
}

// Returns `name` with the first number behind it by which it is not among these names of its kind.
std::string numbered(const std::string& name, const std::string& kind, const std::set<NameAndKind>& taken, int& next) {
  std::string made;
  do made = fmt::format("{}#{}", name, next++);
  while (taken.contains({made, kind}));
  return made;
}

}  // namespace

PlanNames::PlanNames(const IRModule& program)
    : program_(program), plain_(without_pieces(program)), composition_(read_composition(plain_, program)) {
  std::set<NameAndKind> taken;
  for_each_decided_call(plain_, [&](const CallNode& call) {
    numbers_.emplace(&call, static_cast<int32_t>(ops_.size()));
    ops_.push_back({.name = as_utf8(short_place_of(call)), .kind = as_utf8(kind_of(call))});
    taken.emplace(ops_.back().name, ops_.back().kind);
  });
  // A name that is given is not taken again: a model may have an op named "a#2".
  std::map<NameAndKind, int> next;
  for (size_t i = 0; i < ops_.size(); ++i) {
    PlannedPart& op = ops_[i];
    const auto [number, is_first] = next.try_emplace({op.name, op.kind}, 2);
    if (!is_first) taken.emplace(op.name = numbered(op.name, op.kind, taken, number->second), op.kind);
    by_name_.emplace(NameAndKind(op.name, op.kind), static_cast<int32_t>(i));
  }
}

std::optional<int32_t> PlanNames::find(const std::string& name, const std::string& kind) const {
  const auto found = by_name_.find({name, kind});
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<int32_t> PlanNames::numbers_in_plain(const std::vector<Expr>& expressions) const {
  std::vector<int32_t> numbers;
  for (const Expr& one : expressions) {
    if (const auto number = numbers_.find(one.object()); number != numbers_.end()) numbers.push_back(number->second);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<int32_t> PlanNames::numbers_of(const std::vector<Expr>& expressions) const {
  std::vector<Expr> plain;
  for (const Expr& one : expressions) plain.push_back(composition_.plain_of(one));
  return numbers_in_plain(plain);
}

// The op that is evaluated last is the one that computes the value of a piece.
std::vector<NamedCall> PlanNames::calls_of(const IRModule& module) const {
  const Composition composition = read_composition(plain_, module);
  std::unordered_map<const Object*, const Instance*> pieces;
  for (const Instance& one : composition.pieces) pieces.emplace(one.call.object(), &one);
  std::vector<NamedCall> calls;
  std::set<NameAndKind> taken;
  for (const auto& [name, op] : by_name_) taken.insert(name);
  for_each_decided_call(module, [&](const CallNode& call) {
    NamedCall one{.call = &call, .name = as_utf8(short_place_of(call)), .kind = as_utf8(kind_of(call))};
    if (const auto piece = pieces.find(&call); piece == pieces.end()) {
      const auto op = numbers_.find(composition.plain_of(ref(&call)).object());
      HEADRACE_CHECK(op != numbers_.end(), "a call of {} stands for no op of the program", one.kind);
      one.name = ops_[static_cast<size_t>(op->second)].name;
    } else {
      one.parts = numbers_in_plain(piece->second->parts);
      if (!one.parts.empty()) one.name = ops_[static_cast<size_t>(one.parts.back())].name;
      int next = 2;
      if (taken.contains({one.name, one.kind})) one.name = numbered(one.name, one.kind, taken, next);
      taken.emplace(one.name, one.kind);
    }
    calls.push_back(std::move(one));
  });
  return calls;
}

}  // namespace headrace::partition
