#include "passes/gradient/first_order_gradient.h"

#include <map>
#include <set>
#include <unordered_set>

#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "passes/gradient/gradient_rules.h"
#include "passes/gradient/straight_line.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/type_match.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

bool is_float_tensor(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor != nullptr && tensor->dtype.is_float();
}

// The gradient by an argument that a user's function gave.
struct GivenGradient {
  Expr call;
  size_t argument = 0;
  Expr gradient;
};

bool has_floats(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return is_float_tensor(type);
  return std::any_of(tuple->items.begin(), tuple->items.end(),
                     [](const Type& item) { return item.is<TupleTypeNode>() || is_float_tensor(item); });
}

// Returns whether a type is a tensor, or a tuple of tensors.
bool has_gradient(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return type.is<TensorTypeNode>();
  return std::all_of(tuple->items.begin(), tuple->items.end(),
                     [](const Type& item) { return item.is<TensorTypeNode>(); });
}

// Walks one body backwards. The gradients of a value are summed once all its users have been visited.
class Differentiator {
 public:
  Expr run(const FunctionNode& function) {
    for (const relay::Var& param : function.params) {
      if (!has_gradient(param->checked_type()))
        throw_at(param->span, "gradient",
                 fmt::format("a parameter must be a tensor or a tuple of tensors, got {}",
                             to_string(param->checked_type())));
      if (has_floats(param->checked_type())) depending_.insert(param.object());
    }
    std::vector<Expr> order;
    relay::post_order(function.body, relay::is_entered, [&](const Expr& e) { order.push_back(e); });
    // an error at an outer node says more than one at an inner node
    for (size_t i = order.size(); i-- > 0;) check(order[i]);
    for (const Expr& e : order) meet(e);
    seed(function.body, order);
    for (size_t i = order.size(); i-- > 0;) flow_through(order[i]);
    Array<Expr> gradients;
    for (const relay::Var& param : function.params) gradients.push_back(gradient_of(param));
    return relay::make_tuple({function.body, relay::make_tuple(gradients)}, function.body->span);
  }

  // Returns the gradients that users' functions gave.
  const std::vector<GivenGradient>& given() const { return given_; }

 private:
  static void check(const Expr& e) {
    const auto* call = e.as<CallNode>();
    const auto refuse = [&](const std::string& what) {
      throw_at(e->span, "gradient",
               fmt::format("FirstOrderGradient supports calls of ops, tuples, and calls of functions "
                           "that do not call themselves; this is {}",
                           what));
    };
    if (call != nullptr && call->as_op() == nullptr) {
      const auto* global = call->op.as<GlobalVarNode>();
      refuse(global == nullptr
                 ? std::string("a call of a value")
                 : fmt::format("a call of @{}, which calls itself or is not for passes to change", global->name_hint));
    }
    if (e.is<relay::IfNode>() || e.is<relay::MatchNode>())
      refuse(fmt::format("a {}; `where` chooses between values that both are computed", e->key()));
    if (e.is<relay::LetNode>()) refuse("a let of a function that calls itself, or of a value that has effects");
    const bool is_value = e.is<relay::VarNode>() || e.is<relay::ConstantNode>() || e.is<OpNode>() ||
                          e.is<TupleNode>() || e.is<TupleGetItemNode>() || call != nullptr;
    if (!is_value) refuse(fmt::format("a {}", e->key()));
  }

  // Records, operands first, the value behind each item of a tuple literal, and the values that depend on parameters.
  void meet(const Expr& e) {
    if (const auto* item = e.as<TupleGetItemNode>()) {
      const Expr tuple = meant(item->tuple);
      if (const auto* literal = tuple.as<TupleNode>())
        meant_.emplace(e.object(), meant(literal->items[static_cast<size_t>(item->index)]));
    }
    if (e.is<OpNode>() || !has_floats(e->checked_type())) return;
    const auto depends = [&](const Expr& operand) { return depending_.contains(operand.object()); };
    const std::vector<Expr> operands = relay::children_of(e);
    if (std::any_of(operands.begin(), operands.end(), depends)) depending_.insert(e.object());
  }

  // Returns the value itself, where an expression is an item of a tuple literal.
  Expr meant(const Expr& e) const {
    const auto found = meant_.find(e.object());
    return found == meant_.end() ? e : found->second;
  }

  void receive(const Expr& to, const Expr& gradient) {
    const Expr e = meant(to);
    if (gradient && depending_.contains(e.object())) received_[e.object()].push_back(gradient);
  }

  // Adds a gradient to an argument of a call, which may be a tuple; its gradient is a tuple literal then.
  void flow_to(const Expr& arg, const Expr& gradient) {
    const Expr e = meant(arg);
    const auto* items = gradient ? gradient.as<TupleNode>() : nullptr;
    if (items == nullptr || !e->checked_type().is<TupleTypeNode>()) return receive(e, gradient);
    for (size_t i = 0; i < items->items.size(); ++i) {
      if (const auto* literal = e.as<TupleNode>()) {
        receive(literal->items[i], items->items[i]);
      } else {
        receive_item(e, i, items->items[i]);
      }
    }
  }
  // Adds the gradient of an item of a tuple that is not a literal.
  void receive_item(const Expr& tuple, size_t index, const Expr& gradient) {
    if (gradient && depending_.contains(tuple.object())) received_by_items_[tuple.object()][index].push_back(gradient);
  }

  // Starts with the result's values: the gradient of each is how often it occurs. Users come after their operands in
  // `order`.
  void seed(const Expr& result, const std::vector<Expr>& order) {
    std::unordered_map<const Object*, double> counts{{meant(result).object(), 1}};
    for (size_t i = order.size(); i-- > 0;) {
      const auto count = counts.find(order[i].object());
      if (count == counts.end()) continue;
      const double times = count->second;
      if (const auto* tuple = order[i].as<TupleNode>()) {
        for (const Expr& item : tuple->items) counts[meant(item).object()] += times;
      } else {
        seed_value(order[i], times);
      }
    }
  }

  void seed_value(const Expr& e, double times) {
    const auto* tuple = e->checked_type().as<TupleTypeNode>();
    if (tuple == nullptr && is_float_tensor(e->checked_type())) receive(e, filled(e, times));
    for (size_t i = 0; tuple != nullptr && i < tuple->items.size(); ++i) {
      if (is_float_tensor(tuple->items[i])) receive_item(e, i, filled_item(e, i, times));
    }
  }

  // Makes a tensor of `value` of a tensor type; `like` gives the shape where the type does not.
  static Expr filled_as(const TensorTypeNode& type, double value, const Expr& like, const Span& span) {
    const auto shape = as_shape(type.shape);
    const Expr scalar = value == 0 || value == 1 ? Expr() : Expr(relay::make_scalar(value, type.dtype));
    if (!shape)
      return scalar ? ops::full_like(like, scalar, span)
                    : ops::unary(value == 0 ? op::kZerosLike : op::kOnesLike, like, span);
    if (scalar) return ops::full(scalar, *shape, type.dtype, span);
    return value == 0 ? ops::zeros(*shape, type.dtype, span) : ops::ones(*shape, type.dtype, span);
  }
  static Expr filled(const Expr& e, double value) { return filled_as(*relay::tensor_type_of(e), value, e, e->span); }
  static Expr filled_item(const Expr& tuple, size_t i, double value) {
    const Expr item = relay::make_tuple_get_item(tuple, static_cast<int64_t>(i), tuple->span);
    const auto& type = *tuple->checked_type().as<TupleTypeNode>()->items[i].as<TensorTypeNode>();
    return filled_as(type, value, item, tuple->span);
  }

  static Expr sum_of(const std::vector<Expr>& gradients, const Span& span) {
    Expr sum = gradients[0];
    for (size_t i = 1; i < gradients.size(); ++i) sum = ops::add(sum, gradients[i], span);
    return sum;
  }
  // Returns the sum of the gradients received; null when there are none. For a tuple, items without a gradient get
  // zeros.
  Expr total(const Expr& e) const {
    const auto* type = e->checked_type().as<TupleTypeNode>();
    if (type == nullptr) {
      const auto it = received_.find(e.object());
      return it == received_.end() ? Expr() : sum_of(it->second, e->span);
    }
    const auto it = received_by_items_.find(e.object());
    if (it == received_by_items_.end()) return {};
    Array<Expr> items;
    for (size_t i = 0; i < type->items.size(); ++i) {
      const auto found = it->second.find(i);
      items.push_back(found == it->second.end() ? filled_item(e, i, 0) : sum_of(found->second, e->span));
    }
    return relay::make_tuple(items, e->span);
  }

  Expr gradient_of(const Expr& param) const {
    if (const Expr sum = total(param)) return sum;
    const auto* tuple = param->checked_type().as<TupleTypeNode>();
    if (tuple == nullptr) return filled(param, 0);
    Array<Expr> items;
    for (size_t i = 0; i < tuple->items.size(); ++i) items.push_back(filled_item(param, i, 0));
    return relay::make_tuple(items, param->span);
  }

  void flow_through(const Expr& e) {
    if (!depending_.contains(e.object()) || meant_.contains(e.object())) return;
    if (const auto* item = e.as<TupleGetItemNode>())
      return receive_item(meant(item->tuple), static_cast<size_t>(item->index), total(e));
    const auto* call = e.as<CallNode>();
    const Expr gradient = call == nullptr ? Expr() : total(e);
    if (!gradient) return;
    const std::vector<Expr> gradients = gradients_of({*call, e, gradient});
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i] && has_user_gradient(*call->as_op())) given_.push_back({e, i, gradients[i]});
      flow_to(call->args[i], gradients[i]);
    }
  }

  std::vector<GivenGradient> given_;
  std::unordered_set<const Object*> depending_;    // on parameters of floats
  std::unordered_map<const Object*, Expr> meant_;  // items of tuple literals
  std::unordered_map<const Object*, std::vector<Expr>> received_;
  std::unordered_map<const Object*, std::map<size_t, std::vector<Expr>>> received_by_items_;
};

// Returns whether a function takes functions or data types; its callers have inlined it.
bool is_helper(const GlobalVar& var, const FunctionNode& function) {
  const bool is_over_tensors = function.type_params.empty() &&
                               std::all_of(function.params.begin(), function.params.end(),
                                           [](const relay::Var& param) { return has_gradient(param->checked_type()); });
  return var->name_hint != "main" && !is_over_tensors;
}

// Checks the type of a user's gradient, because broadcasting might hide that it differs from the argument's.
void check_types(const IRModule& untyped, const std::vector<GivenGradient>& given) {
  std::set<std::string> ops;
  for (const GivenGradient& one : given) ops.insert(one.call.as<CallNode>()->as_op()->name);
  try {
    relay::infer_type(untyped);  // in place, since all that is new has no type yet
  } catch (const UserError& error) {
    throw_user_error("the gradient of {} does not fit the program: {}", fmt::join(ops, ", "), error.message());
  }
  for (const auto& [call, argument, gradient] : given) {
    const Type& wanted = call.as<CallNode>()->args[argument]->checked_type();
    if (!gradient->has_checked_type() || relay::same_type(gradient->checked_type(), wanted)) continue;
    const std::string& op = call.as<CallNode>()->as_op()->name;
    throw_at(call->span, op,
             fmt::format("its gradient by argument {} is of type {}, and the argument of {}", argument,
                         to_string(gradient->checked_type()), to_string(wanted)));
  }
}

}  // namespace

IRModule first_order_gradient(const IRModule& original) {
  const IRModule module = straight_line(original);
  const IRModule result = snapshot(module);
  std::vector<GivenGradient> given;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || relay::is_left_alone(*node) || is_helper(var, *node)) continue;
    Differentiator differentiator;
    const Expr body = differentiator.run(*node);
    given.insert(given.end(), differentiator.given().begin(), differentiator.given().end());
    result->add_function(var,
                         copy_with(*node,
                                   [&](FunctionNode& copy) {
                                     copy.body = body;
                                     copy.ret_type = {};
                                   }),
                         true);
  }
  if (!given.empty()) check_types(result, given);
  return result;
}

}  // namespace headrace::passes
