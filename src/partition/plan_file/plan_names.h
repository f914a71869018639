// PlanNames: the names by which plans know the ops of a program, and the rows that a split of it has.
//
// Each op of the program, also inside of composite functions that the program has itself, has its place in the model as
// its name, with "#2" and so on behind it where an earlier op of the kind has that name. Pieces that patterns match do
// not change these names. A row of a piece has the name of its last op, and lists all of them.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "partition/composition.h"
#include "partition/plan_file/plan.h"

namespace headrace::partition {

// A call that a plan has a row for.
struct NamedCall {
  const relay::CallNode* call;
  std::string name;  // alone of its kind, but for calls that compute one op of the program
  std::string kind;
  std::vector<int32_t> parts = {};  // the ops of a piece, by number
};

class PlanNames {
 public:
  // Reads the main of a typed module, in which the lets order the effects (passes/rewrite/effects.h). Its composite
  // functions are pieces as well.
  explicit PlanNames(const IRModule& program);

  // The ops of the program, in the order of evaluation.
  const std::vector<PlannedPart>& ops() const { return ops_; }
  // Returns the number of the op; nothing when there is none.
  std::optional<int32_t> find(const std::string& name, const std::string& kind) const;
  // Returns the numbers of the ops among these expressions of the program, ascending.
  std::vector<int32_t> numbers_of(const std::vector<Expr>& expressions) const;
  // Returns the calls that decisions are on, in the order of evaluation. The module is the program with some pieces
  // as composite functions, or with its own ones broken up.
  std::vector<NamedCall> calls_of(const IRModule& module) const;

 private:
  // Returns the numbers of the ops among expressions of `plain_`.
  std::vector<int32_t> numbers_in_plain(const std::vector<Expr>& expressions) const;

  IRModule program_, plain_;  // `plain_`: without composite functions
  Composition composition_;   // its pieces
  std::vector<PlannedPart> ops_;
  std::unordered_map<const Object*, int32_t> numbers_;  // by call of `plain_`
  std::map<std::pair<std::string, std::string>, int32_t> by_name_;
};

}  // namespace headrace::partition
