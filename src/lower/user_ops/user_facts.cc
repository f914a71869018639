#include "lower/user_ops/user_facts.h"

#include "arith/canonical.h"
#include "base/count_of.h"
#include "relay/bind.h"
#include "relay/infer/infer_type.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/user_attrs.h"

namespace headrace::lower {

using relay::CallNode;
using relay::UserAttrsNode;

namespace {

bool is_int_attr(const OpNode& op, const std::string& name) {
  const relay::AttrSchema* schema = op.find(relay::kAttrSchema);
  return schema != nullptr && std::any_of(schema->begin(), schema->end(), [&](const relay::AttrSpec& spec) {
           return spec.name == name && spec.kind == relay::AttrKind::integer;
         });
}

void check_axis(const CallNode& call, const std::string& name, int64_t axis) {
  const auto* data = relay::tensor_type_of(call.args[0]);
  const auto rank = data == nullptr ? 0 : static_cast<int64_t>(data->shape.size());
  if (axis < -rank || axis >= rank)
    fail_call(call, fmt::format("{} is {}, which is not an axis of its first argument, of {}", name, axis,
                                count_of(static_cast<size_t>(rank), "dimension")));
}

PrimExpr elements_of(const TensorTypeNode& type) {
  PrimExpr count = make_int(1);
  for (const PrimExpr& dim : type.shape) count = count * dim;
  return count;
}

// Returns whether a buffer and an extent of these types hold a result of type `wanted`.
bool holds(const Type& form, const TensorTypeNode& wanted) {
  const auto* pair = form.as<TupleTypeNode>();
  if (pair == nullptr || pair->items.size() != 2) return false;
  const auto *buffer = pair->items[0].as<TensorTypeNode>(), *extent = pair->items[1].as<TensorTypeNode>();
  if (buffer == nullptr || extent == nullptr || buffer->dtype != wanted.dtype) return false;
  if (extent->dtype != DataType::int_(64) || as_shape(extent->shape) != std::optional(Shape{1})) return false;
  const auto shape = as_shape(buffer->shape);
  if (!shape || shape->size() != wanted.shape.size()) return false;
  for (size_t i = 0; i < shape->size(); ++i) {
    if (!is_any(wanted.shape[i]) && !is_int(wanted.shape[i], (*shape)[i])) return false;
  }
  return true;
}

// A call over variables, and the arguments that they stand for.
struct OpenCall {
  relay::Call call;
  Map<relay::Var, Expr> args;
};

OpenCall opened(const CallNode& call) {
  OpenCall open;
  Array<Expr> args;
  for (const Expr& arg : call.args) {
    if (arg.is<relay::ConstantNode>()) {
      args.push_back(arg);
      continue;
    }
    const relay::Var var = relay::make_var("x", arg->checked_type(), arg->span);
    var->set_checked_type(arg->checked_type());
    open.args.set(var, arg);
    args.push_back(var);
  }
  open.call = copy_with(call, [&](CallNode& copy) { copy.args = args; });
  open.call->set_checked_type(call.checked_type());
  return open;
}

}  // namespace

ops::KeepLayoutFn keep_layout_with(const OpNode& op, std::vector<std::string> axis_attrs) {
  for (const std::string& name : axis_attrs) {
    if (!is_int_attr(op, name))
      throw_user_error("{}: '{}' is not an attribute of kind int; add it before it is said to be an axis", op.name,
                       name);
  }
  return
      [axis_attrs = std::move(axis_attrs)](const CallNode& call, const ops::LayoutForm& form) -> std::optional<Attrs> {
        if (axis_attrs.empty()) return call.attrs;
        const Attrs whole = relay::whole_user_attrs(*call.as_op(), call.attrs);
        auto changed = copy_with(*whole.as<UserAttrsNode>(), [](UserAttrsNode&) {});
        for (const std::string& name : axis_attrs) {
          const auto written = relay::user_attr(call, name).as<int64_t>();
          check_axis(call, name, written);
          const auto axis = form.whole(written);
          if (!axis) return std::nullopt;
          changed->values.set(name, Value(*axis));
        }
        return Attrs(changed);
      };
}

void check_keeps_elements(const relay::RelationInput& input, const Type& result) {
  const TensorType data = input.arg_types.empty() ? TensorType() : input.tensor(0);
  if (!data || relay::has_unknown_dim(data)) return;
  const auto* tensor = result.as<TensorTypeNode>();
  if (tensor != nullptr && relay::has_unknown_dim(result)) return;
  if (tensor != nullptr && tensor->dtype == data->dtype && arith::is_equal(elements_of(*tensor), elements_of(*data)))
    return;
  input.fail(fmt::format("it is registered as an op that keeps the elements of its first argument, {}, and gives {}",
                         to_string(Type(data)), to_string(result)));
}

ops::BoundedFormFn checked_bounded_form(ops::BoundedFormFn make) {
  return [make = std::move(make)](const CallNode& call) -> Expr {
    const auto* wanted = relay::tensor_type_of(ref(&call));
    const OpenCall open = opened(call);
    const Expr form = make(*open.call);
    if (!form || wanted == nullptr) return {};
    Array<relay::Var> params;
    for (const auto& [var, arg] : open.args) params.push_back(var);
    const auto typed = relay::infer_type(Expr(relay::make_function(params, form))).cast<relay::FunctionNode>();
    if (!holds(typed->body->checked_type(), *wanted))
      fail_call(call, fmt::format("its bounded form gives {}; for {} it gives a tuple of a tensor that has a number in "
                                  "place of '?', and of the number of indices that count, Tensor[(1), int64]",
                                  to_string(typed->body->checked_type()), to_string(call.checked_type())));
    return relay::bind(typed->body, open.args);
  };
}

}  // namespace headrace::lower
