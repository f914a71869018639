#include "passes/forms/bound_outputs.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "arith/canonical.h"
#include "object/foreign_error.h"
#include "ops/algorithm/select.h"
#include "ops/call_fusion.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/rewrite/references.h"
#include "relay/infer/infer_type.h"
#include "relay/leaves.h"
#include "relay/op_keys.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

constexpr DataType kExtentType = DataType::int_(64);

const TensorTypeNode* tensor_type(const Expr& expr) {
  return expr->has_checked_type() ? expr->checked_type().as<TensorTypeNode>() : nullptr;
}

// Returns the one axis of unknown size of a tensor whose other sizes are integers.
std::optional<size_t> open_axis(const TensorTypeNode* type) {
  std::optional<size_t> found;
  for (size_t i = 0; type != nullptr && i < type->shape.size(); ++i) {
    if (as_int(type->shape[i])) continue;
    if (found || !is_any(type->shape[i])) return std::nullopt;
    found = i;
  }
  return found;
}

// A value of unknown size: `extent` (int64[1]) indices of `axis` of `buffer`, whose sizes are known.
struct Bounded {
  Expr buffer;
  size_t axis;
  Expr extent;
};

Expr vector_of(int64_t value) {
  const NDArray data = NDArray::empty({1}, kExtentType);
  set_element_int(data.tensor(), 0, value);
  return relay::make_constant(data);
}

// Returns whether every element of a constant argument is `value`.
bool is_all(const Expr& arg, int64_t value) {
  const auto* constant = arg.as<ConstantNode>();
  if (constant == nullptr) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_int(data.tensor(), i) != value) return false;
  }
  return true;
}

std::optional<Bounded> bound_argwhere(const CallNode& call) {
  const auto* condition = tensor_type(call.args[0]);
  if (condition == nullptr || !as_shape(condition->shape)) return std::nullopt;
  const Expr found = relay::make_call("argwhere_bounded", {call.args[0]}, {}, call.span);
  return Bounded{relay::make_tuple_get_item(found, 0, call.span), 0,
                 ops::cast(relay::make_tuple_get_item(found, 1, call.span), kExtentType, call.span)};
}

// Bounds data[0:end] along one axis, where `end` is computed; negative ends count from the back, as in Python.
std::optional<Bounded> bound_slice_end(const CallNode& call, size_t axis) {
  const auto& attrs = call.attrs_as<ops::StridedSliceAttrs>();
  const auto *data = tensor_type(call.args[0]), *end = tensor_type(call.args[2]);
  const auto shape = data == nullptr ? std::nullopt : as_shape(data->shape);
  if (!shape || end == nullptr || attrs.slice_mode != "end" || as_shape(end->shape) != std::optional(Shape{1}))
    return std::nullopt;
  const auto rank = static_cast<int64_t>(shape->size());
  const int64_t sliced = attrs.axes.empty() ? 0 : attrs.axes[0];
  if (static_cast<size_t>(sliced < 0 ? sliced + rank : sliced) != axis) return std::nullopt;
  if (!is_all(call.args[1], 0) || (call.args.size() > 3 && !is_all(call.args[3], 1))) return std::nullopt;
  const Span& span = call.span;
  const Expr size = vector_of((*shape)[axis]), zero = vector_of(0), given = ops::cast(call.args[2], kExtentType, span);
  const Expr counted = ops::where(ops::binary("less", given, zero, span), ops::add(given, size, span), given, span);
  return Bounded{call.args[0], axis, ops::binary("minimum", ops::binary("maximum", counted, zero, span), size, span)};
}

// Argument `at` is bounded along `axis`, the result has its unknown size at `result_axis`: may the call read the whole
// buffer?
struct Reader {
  const CallNode& call;
  size_t at, axis, result_axis;
  std::string_view name() const { return call.as_op()->name; }
  size_t rank() const { return tensor_type(call.args[at])->shape.size(); }
};

bool is_elementwise(const Reader& r) {
  const size_t result_rank = r.call.checked_type().as<TensorTypeNode>()->shape.size();
  return r.call.args.size() == 1 && r.result_axis == r.axis && result_rank == r.rank() &&
         ops::fusion_kind_of(r.call) == ops::FusionKind::elementwise;
}

// Indices behind the extent may be any, and mode "fast" stops at one that is out of range.
bool is_lookup(const Reader& r) {
  const auto& attrs = r.call.attrs_as<ops::TakeAttrs>();
  return r.at == 1 && attrs.batch_dims == 0 && attrs.mode != "fast";
}

// Returns whether a call is arithmetic that fails for no element, with an operand that is broadcast along the axis.
bool is_arithmetic(const Reader& r) {
  constexpr std::array<std::string_view, 6> kNames{"add", "subtract", "multiply", "divide", "minimum", "maximum"};
  if (r.call.args.size() != 2 || std::find(kNames.begin(), kNames.end(), r.name()) == kNames.end()) return false;
  const auto* other = tensor_type(r.call.args[1 - r.at]);
  if (other == nullptr || !as_shape(other->shape)) return false;
  if (r.name() == "divide" && !other->dtype.is_float()) return false;  // an integer behind the extent may be 0
  const size_t from_end = r.rank() - r.axis;
  return other->shape.size() < from_end || as_int(other->shape[other->shape.size() - from_end]) == 1;
}

// Returns the call over a symbolic size, typed; null when its op does not accept one.
relay::Call over_symbol(const Reader& r, const PrimVar& size) {
  Array<relay::Var> params;
  Array<Expr> args;
  for (size_t i = 0; i < r.call.args.size(); ++i) {
    const auto* type = tensor_type(r.call.args[i]);
    if (type == nullptr) return {};
    Array<PrimExpr> shape = type->shape;
    if (i == r.at) shape.set(r.axis, size);
    params.push_back(relay::make_var("x", make_tensor_type(shape, type->dtype)));
    args.push_back(params[i]);
  }
  const auto function = relay::make_function(params, relay::make_call(r.call.op, args, r.call.attrs));
  return relay::infer_type(Expr(function)).cast<FunctionNode>()->body.cast<CallNode>();
}

// Returns whether a user's op is elementwise for any size. Its compute form describes one call, but with a symbol as
// the size the description holds for any size, and an elementwise form that names no size does not depend on it.
bool is_users_elementwise(const Reader& r) {
  const OpNode& op = *r.call.as_op();
  const size_t result_rank = tensor_type(ref(&r.call))->shape.size();
  if (op.find(ops::kCallFusion) == nullptr) return false;
  if (r.rank() - r.axis != result_rank - r.result_axis) return false;
  for (size_t i = 0; i < r.call.args.size(); ++i) {
    if (i != r.at && relay::has_unknown_dim(r.call.args[i]->checked_type())) return false;
  }
  const PrimVar size = make_prim_var("n");
  try {
    const relay::Call call = over_symbol(r, size);
    const auto* type = call ? tensor_type(call) : nullptr;
    return type != nullptr && type->shape.size() == result_rank && arith::is_equal(type->shape[r.result_axis], size) &&
           ops::fusion_kind_of(*call) <= ops::FusionKind::broadcast;
  } catch (const UserError&) {  // of an op that wants numbers
  } catch (const ForeignError&) {
  }
  return false;
}

bool is_rows_of_rows(const Reader& r) {
  const auto& attrs = r.call.attrs_as<ops::ReshapeAttrs>();
  if (r.call.args.size() != 1 || r.axis != 0 || r.result_axis != 0 || attrs.newshape.empty()) return false;
  const auto row_size = [](const Array<PrimExpr>& dims) {
    int64_t size = 1;
    for (size_t i = 1; i < dims.size(); ++i) size *= *as_int(dims[i]);
    return size;
  };
  return attrs.newshape[0] == -1 &&
         row_size(tensor_type(r.call.args[0])->shape) == row_size(r.call.checked_type().as<TensorTypeNode>()->shape);
}

bool slices_other_axes(const Reader& r) {
  const auto& attrs = r.call.attrs_as<ops::StridedSliceAttrs>();
  if (r.call.args.size() != 1 || attrs.slice_mode != "end") return false;
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const int64_t axis = attrs.axes.empty() ? static_cast<int64_t>(i) : attrs.axes[i];
    if (static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(r.rank()) : axis) != r.axis) continue;
    const int64_t step = attrs.strides.empty() ? 1 : attrs.strides[attrs.strides.size() == 1 ? 0 : i];
    if (attrs.begin[i] != 0 || attrs.end[i] < INT32_MAX || step != 1) return false;
  }
  return true;
}

bool reads_each_index(const Reader& r) {
  const std::string_view name = r.name();
  if (name == "transpose" || name == "squeeze" || name == "expand_dims") return true;
  if (name == "reshape") return is_rows_of_rows(r);
  if (name == "strided_slice") return slices_other_axes(r);
  if (name == "take") return is_lookup(r);
  if (relay::is_stateful(*r.call.as_op())) return false;
  return is_elementwise(r) || is_arithmetic(r) || is_users_elementwise(r);
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
    const auto axis = op == nullptr ? std::nullopt : open_axis(tensor_type(node));
    if (!axis) return;
    std::optional<Bounded> made = through(*call, *axis);
    if (!made && op->name == "argwhere") made = bound_argwhere(*call);
    if (!made && op->name == "strided_slice" && call->args.size() > 2) made = bound_slice_end(*call, *axis);
    if (made) bounded_.emplace(node.object(), *std::move(made));
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
    if (source == nullptr || !reads_each_index({call, at, source->axis, result_axis})) return std::nullopt;
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

// Returns the lets around `body`, without those of values of which only the bounded forms are used.
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
  std::unordered_map<const Object*, size_t> places;  // of extents
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
