#include "ir/map_operands.h"
#include "ir/prim_expr.h"

namespace headrace {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

namespace {

// Works off a list of its own instead of the stack: an expression may be of any depth. A part that stands in several
// places is rebuilt once, and stays shared.
class Substitution {
 public:
  explicit Substitution(const Values& values) : values_(values) {}

  PrimExpr run(const PrimExpr& root) {
    if (const PrimExpr* known = find(root)) return *known;
    std::vector<PrimExpr> open{root};
    while (!open.empty()) {
      const PrimExpr e = open.back();
      const bool is_done = done_.contains(e.get());  // by another way that leads to it
      if (!is_done && open_operands(e, open)) continue;
      open.pop_back();
      if (is_done) continue;
      done_[e.get()] = map_operands(e, [&](const PrimExpr& operand) { return *find(operand); });
    }
    return done_.at(root.get());
  }

 private:
  // Returns the known replacement of `e`; null when its operands must be visited first.
  const PrimExpr* find(const PrimExpr& e) const {
    if (const auto* var = e.as<PrimVarNode>()) {
      const auto it = values_.find(var);
      return it == values_.end() ? &e : &it->second;
    }
    if (e.is<IntImmNode>() || e.is<FloatImmNode>()) return &e;
    const auto it = done_.find(e.get());
    return it == done_.end() ? nullptr : &it->second;
  }

  // Adds the operands that are still to be done; whether there were any.
  bool open_operands(const PrimExpr& e, std::vector<PrimExpr>& open) const {
    const size_t before = open.size();
    map_operands(e, [&](const PrimExpr& operand) {
      if (find(operand) == nullptr) open.push_back(operand);
      return operand;
    });
    return open.size() != before;
  }

  const Values& values_;
  std::unordered_map<const PrimExprNode*, PrimExpr> done_;
};

}  // namespace

PrimExpr substitute(const PrimExpr& e, const Values& values) {
  return values.empty() ? e : Substitution(values).run(e);
}

}  // namespace headrace
