// Matches patterns against expressions.
//
// Rules beyond pattern.h:
// - The arguments of `add` and `multiply` match in both orders. A pattern (a * b) / c also matches a * (b / c) and
//   b * (a / c); a pattern (a / b) * c, in either order of the factors, also matches (a * c) / b.
// - The first way to match counts: of alternatives the left one, of orders the written one. A choice is final once the
//   part of the pattern that it belongs to has matched. Callers may ask for further ways, by other alternatives.
// - Types are read from checked_type; a variable's annotation and a constant's own type count, too. Where the pattern
//   asks for the type of an expression that has none, match_pattern infers it.
// - A wildcard that is redirected to a pattern containing the wildcard repeats that pattern: parts that nothing outside
//   of the repetition uses stand for another expression each time.
//
// Stack use does not depend on the expression or the pattern. Nodes that cannot match are found by a look at their
// kind and op; failures of parts that the rest of the pattern does not influence are remembered, so that matching a
// pattern at every node of a program is near-linear.
#pragma once

#include <map>
#include <unordered_set>

#include "relay/descent.h"
#include "relay/patterns/expr_index.h"
#include "relay/patterns/pattern_index.h"

namespace headrace::relay {

// Returns whether the expression matches. UserError when the types that the pattern asks for cannot be inferred, and as
// Matcher::match.
bool match_pattern(const DFPattern& pattern, const Expr& expr);

// Returns `expr`, with types if `pattern` asks for any. `module` holds the functions that it calls.
Expr typed_for(const PatternIndex& pattern, const Expr& expr, const IRModule& module = {});

// One pattern over one expression graph.
class Matcher {
 public:
  // Both must outlive the matcher.
  Matcher(const PatternIndex& pattern, const ExprIndex& graph);

  // Returns whether `expr`, a node of the graph, matches. UserError when finding out takes more than a bounded number
  // of steps, which only patterns with many nested alternatives or exchangeable arguments do.
  bool match(const Expr& expr);

  // Finds the next way to match the expression of the last match: the latest alternative for which the left side was
  // chosen takes the right side, and what was chosen before it stays. Returns false when there is no further way, or
  // after a bounded number of tries. Errors as match.
  bool match_again();

  // Which node of the pattern stands for which expression.
  struct Pair {
    int node;
    Expr expr;
  };
  // Returns the pairs of the last match, parts first; a node that repeats has several.
  const std::vector<Pair>& pairs() const { return log_; }

 private:
  struct Mark {
    size_t trail, log, choices;
  };
  // The side that an alternative, a node of the pattern, chose for an expression.
  struct Choice {
    int node;
    const Object* expr;
    bool is_left;
  };
  struct Change {
    int node;
    const Object* before;
  };
  using Node = PatternIndex::Node;

  const Node& node_at(int id) const { return pattern_.nodes[static_cast<size_t>(id)]; }
  const Object*& bound(int id) { return bound_[static_cast<size_t>(id)]; }
  Mark mark() const { return {trail_.size(), log_.size(), choices_.size()}; }
  bool run(const Expr& expr);
  void undo(const Mark& mark);
  void bind(int id, const Object* object);
  void spend();

  bool plainly_differs(int id, const Expr& expr) const;
  bool plainly_differs(int id, const Expr& expr, int& looks) const;
  Nested<bool> visit(int id, Expr expr);
  Nested<bool> visit_all(std::vector<int> ids, std::vector<Expr> exprs);
  Nested<bool> visit_parts(int id, Expr expr);
  static Nested<bool> differs();
  std::vector<int> parts_of(int id, const std::vector<Expr>& parts) const;
  Nested<bool> visit_call(int id, Expr expr);
  Nested<bool> divided_product(int id, Expr expr);
  Nested<bool> multiplied_quotient(int id, Expr expr);
  Nested<bool> visit_either(int id, Expr expr);
  Nested<bool> visit_repetition(int id, Expr expr);
  Nested<bool> visit_dominator(int id, Expr expr);
  Nested<bool> visit_paths(int id, Expr expr);
  Nested<bool> visit_path(int path, Expr expr);

  const PatternIndex& pattern_;
  const ExprIndex& graph_;
  std::vector<const Object*> bound_;  // by node: the expression it stands for
  std::vector<Change> trail_;
  std::vector<Pair> log_;
  std::vector<std::unordered_set<const Object*>> failed_;  // by closed node
  std::vector<Choice> choices_;                            // in the order in which they were made
  // For match_again: its expression, the sides of the choices that are not free, and how many tries are left.
  Expr again_;
  std::map<std::pair<int, const Object*>, bool> fixed_;
  int tries_left_ = 0;
  size_t steps_left_ = 0;
};

}  // namespace headrace::relay
