#include "passes/simplify/simplify_expr.h"

#include "ops/op_facts.h"
#include "ops/op_handles.h"
#include "ops/tensor/join.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/simplify/law.h"
#include "relay/function_attrs.h"
#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using simplify::Law;

namespace {

// The laws of each op, in the order of the tables.
using LawIndex = std::unordered_map<const OpNode*, std::vector<Law>>;

LawIndex make_index() {
  LawIndex index;
  for (const auto& table :
       {simplify::arithmetic_laws(), simplify::elementwise_laws(), simplify::logic_laws(), simplify::shape_laws()}) {
    for (const Law& law : table) index[&law.op.node()].push_back(law);
  }
  return index;
}

// A function literal that was rewritten has no type: the next run finds what may stand for it.
bool has_type(const Expr& expr, const Type& type) {
  return expr->has_checked_type() && relay::same_type(type, expr->checked_type());
}

// if (True) a else b == a
Expr choose_branch(const relay::IfNode& branch) {
  if (!branch.cond.is<ConstantNode>()) return {};
  return simplify::all_elements_are(branch.cond, 0) ? branch.false_branch : branch.true_branch;
}

// split(x).0 == x where all of x is the one part
Expr item_of_whole(const relay::TupleGetItemNode& item) {
  const auto* split = relay::call_of(item.tuple, op::kSplit);
  const auto* parts = split == nullptr ? nullptr : item.tuple->checked_type().as<TupleTypeNode>();
  return parts != nullptr && parts->items.size() == 1 ? split->args[0] : Expr();
}

// Which laws apply.
struct Wishes {
  int32_t opt_level;
  bool as_named;

  bool want(const Law& law) const {
    if (law.scope == simplify::LawScope::everywhere) return true;
    return (law.scope == simplify::LawScope::as_named) == as_named;
  }
};

// The first law that applies to the expression; null when none does.
Expr apply_law(const Expr& expr, const Wishes& wishes) {
  static const LawIndex index = make_index();
  const Type& type = expr->checked_type();
  Expr same;
  if (const auto* branch = expr.as<relay::IfNode>()) same = choose_branch(*branch);
  if (const auto* item = expr.as<relay::TupleGetItemNode>()) same = item_of_whole(*item);
  if (same) return has_type(same, type) ? same : Expr();
  const auto* call = expr.as<CallNode>();
  const auto laws = call == nullptr ? index.end() : index.find(call->as_op());
  const bool is_view = call != nullptr && call->as_op() != nullptr && ops::only_reshapes(*call->as_op());
  if (laws == index.end() && !is_view) return {};
  const simplify::Site site{*call, type};
  if (Expr joined = is_view && site.shape() ? simplify::join_views(site) : Expr()) return joined;
  if (laws == index.end()) return {};
  for (const Law& law : laws->second) {
    if (!wishes.want(law) || !law.holds_for(site, wishes.opt_level)) continue;
    if (Expr result = law.apply(site)) return result;
  }
  return {};
}

// A rewritten expression has the type of the one it stands for; a constant that a law made has its own.
void take_type(const Expr& expr, const Expr& from) {
  if (!expr->has_checked_type() && from->has_checked_type() && !expr.is<relay::FunctionNode>())
    expr->set_checked_type(from->checked_type());
  const auto* call = expr.as<CallNode>();
  if (call == nullptr) return;
  for (const Expr& arg : call->args) {
    const auto* constant = arg.as<ConstantNode>();
    if (constant != nullptr && !arg->has_checked_type()) arg->set_checked_type(constant->tensor_type());
  }
}

Expr simplified(const Expr& before, Expr after, const Wishes& wishes) {
  take_type(after, before);
  if (!after->has_checked_type()) return after;
  while (Expr simpler = apply_law(after, wishes)) {
    take_type(simpler, after);
    after = std::move(simpler);
  }
  return after;
}

}  // namespace

IRModule simplify_expr(const IRModule& module, int32_t opt_level, bool as_named) {
  const Wishes wishes{opt_level, as_named};
  const InOrder ordered = in_order(module);
  return rewrite_bodies(ordered.module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      if (!ordered.effects.of(before)) return simplified(before, after, wishes);
      take_type(after, before);
      // The branch that is not taken has no effect.
      const auto* branch = after.as<relay::IfNode>();
      const Expr chosen = branch == nullptr ? Expr() : choose_branch(*branch);
      return chosen && has_type(chosen, after->checked_type()) ? chosen : after;
    });
  });
}

}  // namespace headrace::passes
