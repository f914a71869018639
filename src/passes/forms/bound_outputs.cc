#include "passes/forms/bound_outputs.h"

#include <unordered_map>
#include <unordered_set>

#include "arith/canonical.h"
#include "object/foreign_error.h"
#include "ops/call_fusion.h"
#include "ops/op_facts.h"
#include "passes/rewrite/references.h"
#include "relay/infer/infer_type.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using ops::UnknownAxis;
using relay::CallNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

// A value of unknown size: `extent` (int64[1]) indices of `axis` of `buffer`, whose sizes are known.
struct Bounded {
  Expr buffer;
  size_t axis;
  Expr extent;
};

bool is_elementwise(const CallNode& call, const UnknownAxis& where) {
  const size_t rank = relay::tensor_type_of(call.args[where.arg])->shape.size();
  const size_t result_rank = call.checked_type().as<TensorTypeNode>()->shape.size();
  return call.args.size() == 1 && where.result_axis == where.axis && result_rank == rank &&
         ops::fusion_kind_of(call) == ops::FusionKind::elementwise;
}

// Returns the call over a symbolic size, typed; null when its op does not accept one.
relay::Call over_symbol(const CallNode& call, const UnknownAxis& where, const PrimVar& size) {
  Array<relay::Var> params;
  Array<Expr> args;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const auto* type = relay::tensor_type_of(call.args[i]);
    if (type == nullptr) return {};
    Array<PrimExpr> shape = type->shape;
    if (i == where.arg) shape.set(where.axis, size);
    params.push_back(relay::make_var("x", make_tensor_type(shape, type->dtype)));
    args.push_back(params[i]);
  }
  const auto function = relay::make_function(params, relay::make_call(call.op, args, call.attrs));
  return relay::infer_type(Expr(function)).cast<FunctionNode>()->body.cast<CallNode>();
}

// Returns whether a user's op is elementwise for any size. Its compute form describes one call, but with a symbol as
// the size the description holds for any size, and an elementwise form that names no size does not depend on it.
bool is_users_elementwise(const CallNode& of, const UnknownAxis& where) {
  const OpNode& op = *of.as_op();
  const size_t rank = relay::tensor_type_of(of.args[where.arg])->shape.size();
  const size_t result_rank = relay::tensor_type_of(ref(&of))->shape.size();
  if (op.find(ops::kCallFusion) == nullptr) return false;
  if (rank - where.axis != result_rank - where.result_axis) return false;
  for (size_t i = 0; i < of.args.size(); ++i) {
    if (i != where.arg && relay::has_unknown_dim(of.args[i]->checked_type())) return false;
  }
  const PrimVar size = make_prim_var("n");
  try {
    const relay::Call call = over_symbol(of, where, size);
    const auto* type = call ? relay::tensor_type_of(call) : nullptr;
    return type != nullptr && type->shape.size() == result_rank &&
           arith::is_equal(type->shape[where.result_axis], size) &&
           ops::fusion_kind_of(*call) <= ops::FusionKind::broadcast;
  } catch (const UserError&) {  // raised by an op that wants numbers
  } catch (const ForeignError& error) {
    if (error.is_interrupt()) throw;
  }
  return false;
}

// Returns whether the call may read a whole buffer in place of the argument of unknown size.
bool treats_apart(const CallNode& call, const UnknownAxis& where) {
  if (relay::is_stateful(*call.as_op())) return false;
  const ops::TreatsApartFn* known = call.as_op()->find(ops::kTreatsApart);
  if (known != nullptr && (*known)(call, where)) return true;
  return is_elementwise(call, where) || is_users_elementwise(call, where);
}

// Finds the bounded form of every value of unknown size that has one.
class Bounds {
 public:
  explicit Bounds(const Expr& body) {
    relay::post_order(
        body,
        [&](const Expr& node) {
          if (const auto* let = node.as<LetNode>()) let_values_[let->var.object()] = let->value;
          return !node.is<FunctionNode>();
        },
        [&](const Expr& node) { visit(node); });
  }

  const Bounded* find(const Expr& expr) const {
    const auto it = bounded_.find(expr.object());
    return it == bounded_.end() ? nullptr : &it->second;
  }

 private:
  void visit(const Expr& node) {
    if (node.is<relay::VarNode>()) {
      const auto let = let_values_.find(node.object());
      const Bounded* value = let == let_values_.end() ? nullptr : find(let->second);
      if (value != nullptr) bounded_.emplace(node.object(), *value);
      return;
    }
    const auto* call = node.as<CallNode>();
    const OpNode* op = call == nullptr ? nullptr : call->as_op();
    const auto axis = op == nullptr ? std::nullopt : ops::unknown_axis(relay::tensor_type_of(node));
    if (!axis) return;
    std::optional<Bounded> made = through(*call, *axis);
    if (!made) made = bounded_form(*call, *axis);
    if (made) bounded_.emplace(node.object(), *std::move(made));
  }

  // Returns what the op itself says of a call that makes a value of unknown size.
  static std::optional<Bounded> bounded_form(const CallNode& call, size_t axis) {
    const ops::BoundedFormFn* make = call.as_op()->find(ops::kBoundedForm);
    const Expr form = make == nullptr || relay::is_stateful(*call.as_op()) ? Expr() : (*make)(call);
    if (!form) return std::nullopt;
    const auto* pair = form.as<TupleNode>();
    if (pair != nullptr && pair->items.size() == 2) return Bounded{pair->items[0], axis, pair->items[1]};
    return Bounded{relay::make_tuple_get_item(form, 0, call.span), axis,
                   relay::make_tuple_get_item(form, 1, call.span)};
  }

  // Returns the call over the buffer of its one bounded argument.
  std::optional<Bounded> through(const CallNode& call, size_t result_axis) const {
    const Bounded* source = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Bounded* arg = find(call.args[i]);
      if (arg == nullptr) continue;
      if (source != nullptr) return std::nullopt;
      source = arg;
      at = i;
    }
    if (source == nullptr || !treats_apart(call, {at, source->axis, result_axis})) return std::nullopt;
    Array<Expr> args = call.args;
    args.set(at, source->buffer);
    return Bounded{relay::make_call(call.op, args, call.attrs, call.type_args, call.span), result_axis, source->extent};
  }

  std::unordered_map<const Object*, Expr> let_values_;
  std::unordered_map<const Object*, Bounded> bounded_;
};

// Returns the tensors of a result, tuples taken apart.
std::vector<Expr> flat_items(const Expr& root) {
  std::vector<Expr> items, pending{root};
  while (!pending.empty()) {
    const Expr at = pending.back();
    pending.pop_back();
    const auto* type = at->checked_type().as<TupleTypeNode>();
    if (type == nullptr) {
      items.push_back(at);
      continue;
    }
    const auto* tuple = at.as<TupleNode>();
    for (size_t i = type->items.size(); i-- > 0;) {
      Expr item = tuple != nullptr ? tuple->items[i] : Expr(relay::make_tuple_get_item(at, static_cast<int64_t>(i)));
      if (tuple == nullptr) item->set_checked_type(type->items[i]);
      pending.push_back(std::move(item));
    }
  }
  return items;
}

// Collects the variables in added expressions; visits each node once.
class Occurring {
 public:
  void add(const Expr& root) {
    std::vector<Expr> pending{root};
    while (!pending.empty()) {
      const Expr node = std::move(pending.back());
      pending.pop_back();
      if (!seen_.insert(node.object()).second) continue;
      for (Expr& child : relay::children_of(node)) pending.push_back(std::move(child));
    }
  }
  bool has(const relay::Var& var) const { return seen_.contains(var.object()); }

 private:
  std::unordered_set<const Object*> seen_;
};

// Returns the lets around `body`, without those of values whose bounded forms alone are used.
Expr with_lets(const std::vector<const LetNode*>& lets, Expr body, const Bounds& bounds) {
  Occurring occurring;
  occurring.add(body);
  for (size_t i = lets.size(); i-- > 0;) {
    if (bounds.find(lets[i]->var) != nullptr && !occurring.has(lets[i]->var)) continue;
    occurring.add(lets[i]->value);
    body = relay::make_let(lets[i]->var, lets[i]->value, body, lets[i]->span);
  }
  return body;
}

// Returns the result of main with its open items bounded; null when one cannot be.
Expr bound_result(const Expr& result, const Bounds& bounds, Array<int64_t>& rows) {
  const std::vector<Expr> items = flat_items(result);
  Array<Expr> outputs, extents;
  std::unordered_map<const Object*, size_t> places;  // places of extents
  for (size_t i = 0; i < items.size(); ++i) {
    if (!relay::has_unknown_dim(items[i]->checked_type())) {
      outputs.push_back(items[i]);
      continue;
    }
    const Bounded* bounded = bounds.find(items[i]);
    if (bounded == nullptr) return {};
    outputs.push_back(bounded->buffer);
    const auto [place, is_new] = places.emplace(bounded->extent.object(), items.size() + extents.size());
    if (is_new) extents.push_back(bounded->extent);
    for (const size_t number : {i, bounded->axis, place->second}) rows.push_back(static_cast<int64_t>(number));
  }
  for (const Expr& extent : extents) outputs.push_back(extent);
  return relay::make_tuple(outputs, result->span);
}

}  // namespace

IRModule bound_outputs(const IRModule& module) {
  const auto name = module->find_global_var("main");
  const auto* main = name ? module->lookup("main").as<FunctionNode>() : nullptr;
  if (main == nullptr || !relay::has_unknown_dim(main->body->checked_type())) return module;
  if (referenced_functions(module).contains("main")) return module;
  std::vector<const LetNode*> lets;
  Expr result = main->body;
  for (; result.is<LetNode>(); result = result.as<LetNode>()->body) lets.push_back(result.as<LetNode>());
  const Bounds bounds(main->body);
  Array<int64_t> rows;
  const Expr bounded_result = bound_result(result, bounds, rows);
  if (!bounded_result) return module;
  const Expr body = with_lets(lets, bounded_result, bounds);
  IRModule bounded = snapshot(module);
  const auto edited = copy_with(*main, [&](FunctionNode& copy) {
    copy.body = body;
    copy.ret_type = {};
    copy.attrs.set(kBoundedOutputs, Value(rows));
  });
  bounded->add_function(name, edited, true);
  return bounded;
}

std::vector<BoundedOutput> bounded_outputs_of(const FunctionNode& main, std::string_view attribute) {
  std::vector<BoundedOutput> rows;
  const auto value = main.attrs.get(std::string(attribute));
  if (!value) return rows;
  const auto numbers = value->as<Array<int64_t>>();
  for (size_t i = 0; i < numbers.size(); i += 3)
    rows.push_back(
        {static_cast<size_t>(numbers[i]), static_cast<size_t>(numbers[i + 1]), static_cast<size_t>(numbers[i + 2])});
  return rows;
}

}  // namespace headrace::passes
