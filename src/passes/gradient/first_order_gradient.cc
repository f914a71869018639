#include "passes/gradient/first_order_gradient.h"

#include <set>

#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "passes/forms/to_graph_normal_form.h"
#include "passes/gradient/gradient_rules.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/type_match.h"
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

// Walks one body backwards. What flows to a value is summed when all its users have been met.
class Differentiator {
 public:
  Expr run(const FunctionNode& function) {
    std::vector<Expr> order;
    relay::post_order(function.body, [&](const Expr& e) { order.push_back(e); });
    for (const Expr& e : order) check(e);
    seed(function.body, order);
    for (size_t i = order.size(); i-- > 0;) flow_through(order[i]);
    Array<Expr> gradients;
    for (const relay::Var& param : function.params) gradients.push_back(gradient_of(param));
    return relay::make_tuple({function.body, relay::make_tuple(gradients)}, function.body->span);
  }

  // What users' functions gave.
  const std::vector<GivenGradient>& given() const { return given_; }

 private:
  static void check(const Expr& e) {
    const auto* call = e.as<CallNode>();
    const bool is_op_call = call != nullptr && call->as_op() != nullptr;
    const bool is_value = e.is<relay::VarNode>() || e.is<relay::ConstantNode>() || e.is<OpNode>() ||
                          e.is<TupleNode>() || e.is<TupleGetItemNode>();
    if (!is_op_call && !is_value)
      throw_at(e->span, "gradient",
               fmt::format("FirstOrderGradient knows op calls and tuples only, here is a {}", e->key()));
  }

  void receive(const Expr& e, const Expr& gradient) {
    if (gradient) received_[e.object()].push_back(gradient);
  }

  // What stands in the result, and how often: its gradient is that number. Users come after their operands in `order`.
  void seed(const Expr& result, const std::vector<Expr>& order) {
    std::unordered_map<const Object*, double> counts{{result.object(), 1}};
    for (size_t i = order.size(); i-- > 0;) {
      const auto count = counts.find(order[i].object());
      if (count == counts.end()) continue;
      const double times = count->second;
      if (const auto* tuple = order[i].as<TupleNode>()) {
        for (const Expr& item : tuple->items) counts[item.object()] += times;
      } else {
        seed_tensor(order[i], times);
      }
    }
  }

  void seed_tensor(const Expr& e, double times) {
    const Type& type = e->checked_type();
    if (type.is<TupleTypeNode>()) throw_at(e->span, "gradient", "the result must be a tensor or a tuple literal");
    if (!is_float_tensor(type)) return;
    const DataType dtype = type.as<TensorTypeNode>()->dtype;
    const Shape shape = static_shape_of(e);
    receive(e, times == 1 ? ops::ones(shape, dtype) : ops::full(relay::make_scalar(times, dtype), shape, dtype));
  }

  // The sum of what was received; null when nothing was.
  Expr total(const Object* key) const {
    const auto it = received_.find(key);
    if (it == received_.end()) return {};
    Expr sum = it->second[0];
    for (size_t i = 1; i < it->second.size(); ++i) sum = ops::add(sum, it->second[i]);
    return sum;
  }

  Expr gradient_of(const Expr& e) const {
    const auto* tensor = e->checked_type().as<TensorTypeNode>();
    if (tensor == nullptr) throw_at(e->span, "gradient", "a parameter must be a tensor");
    const Expr sum = is_float_tensor(e->checked_type()) ? total(e.object()) : Expr();
    return sum ? sum : ops::zeros(static_shape_of(e), tensor->dtype);
  }

  void flow_through(const Expr& e) {
    if (const auto* item = e.as<TupleGetItemNode>()) return flow_to_item(*item, total(e.object()));
    const auto* call = e.as<CallNode>();
    if (call == nullptr) return;
    const Expr gradient = e->checked_type().is<TupleTypeNode>() ? items_total(e) : total(e.object());
    if (!gradient) return;
    const std::vector<Expr> gradients = gradients_of({*call, e, gradient});
    if (has_user_gradient(*call->as_op())) {
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i]) given_.push_back({e, i, gradients[i]});
      }
    }
    for (size_t i = 0; i < gradients.size(); ++i) flow_to(call->args[i], gradients[i]);
  }

  void flow_to(const Expr& arg, const Expr& gradient) {
    const auto* tuple = arg.as<TupleNode>();
    if (tuple == nullptr || !gradient) return receive(arg, gradient);
    for (size_t i = 0; i < tuple->items.size(); ++i) receive(tuple->items[i], gradient.as<TupleNode>()->items[i]);
  }

  void flow_to_item(const TupleGetItemNode& item, const Expr& gradient) {
    if (!gradient) return;
    if (const auto* tuple = item.tuple.as<TupleNode>())
      return receive(tuple->items[static_cast<size_t>(item.index)], gradient);
    item_gradients_[item.tuple.object()][item.index].push_back(gradient);
  }

  // For an op that gives a tuple: what its items received, zeros where they did not.
  Expr items_total(const Expr& e) const {
    const auto it = item_gradients_.find(e.object());
    if (it == item_gradients_.end()) return {};
    const auto* type = e->checked_type().as<TupleTypeNode>();
    Array<Expr> items;
    for (size_t i = 0; i < type->items.size(); ++i) {
      const auto* tensor = type->items[i].as<TensorTypeNode>();
      const auto found = it->second.find(static_cast<int64_t>(i));
      Expr sum;
      if (found != it->second.end()) {
        sum = found->second[0];
        for (size_t k = 1; k < found->second.size(); ++k) sum = ops::add(sum, found->second[k]);
      }
      items.push_back(sum ? sum : ops::zeros(tensor->concrete_shape(), tensor->dtype));
    }
    return relay::make_tuple(items);
  }

  std::vector<GivenGradient> given_;
  std::unordered_map<const Object*, std::vector<Expr>> received_;
  std::unordered_map<const Object*, std::map<int64_t, std::vector<Expr>>> item_gradients_;
};

// A user's function may give a gradient of another type than its argument is of, which broadcasting might hide.
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
  const IRModule graph = to_graph_normal_form(original);
  const IRModule module = graph == original ? original : relay::infer_type(graph);
  const IRModule result = snapshot(module);
  std::vector<GivenGradient> given;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || relay::is_left_alone(*node)) continue;
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
