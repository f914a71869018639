#include "passes/nn/to_mixed_precision.h"

#include <unordered_set>

#include "ops/attrs_copy.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/tensor/elementwise.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::LetNode;

namespace {

// Where the time goes, and where the sums are kept in float32 by the kernels themselves.
constexpr std::string_view kAlways[] = {
    "nn.conv2d", "nn.conv2d_transpose", "nn.dense", "nn.matmul", "nn.batch_matmul",
};

// What gives a value near its operands, or one of them.
constexpr std::string_view kFollow[] = {
    "abs",
    "add",
    "broadcast_to",
    "ceil",
    "clip",
    "concatenate",
    "copy",
    "divide",
    "expand_dims",
    "floor",
    "gather",
    "gather_nd",
    "layout_transform",
    "max",
    "maximum",
    "min",
    "minimum",
    "multiply",
    "negative",
    "nn.avg_pool2d",
    "nn.batch_flatten",
    "nn.bias_add",
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    "nn.leaky_relu",
    "nn.max_pool2d",
    "nn.mirror_pad",
    "nn.pad",
    "nn.prelu",
    "nn.relu",
    "repeat",
    "reshape",
    "reverse",
    "round",
    "sigmoid",
    "split",
    "squeeze",
    "stack",
    "strided_slice",
    "subtract",
    "take",
    "tanh",
    "tile",
    "transpose",
    "trunc",
    "where",
};

enum class OpKind : uint8_t { always, follow, never };

OpKind kind_of(const CallNode& call) {
  const auto is_in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), call.as_op()->name) != std::end(list);
  };
  return is_in(kAlways) ? OpKind::always : is_in(kFollow) ? OpKind::follow : OpKind::never;
}

bool is_float32(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor != nullptr && tensor->dtype == DataType::float_(32);
}
bool is_float32(const Expr& expr) { return expr->has_checked_type() && is_float32(expr->checked_type()); }

class Shrinker {
 public:
  explicit Shrinker(DataType small) : small_(small) {}

  Expr run(const Expr& body) {
    relay::post_order(body, relay::is_entered, [&](const Expr& e) {
      if (const auto* let = e.as<LetNode>()) let_values_.emplace(let->var.object(), let->value);
    });
    relay::post_order(body, relay::is_entered, [&](const Expr& e) { done_.emplace(e.object(), convert(e)); });
    return as_written(body);
  }

 private:
  // What an expression became; when it is small, its float32 parts are of the small type.
  struct Stored {
    Expr expr;
    bool is_small = false;
    Expr as_written, as_small;  // casts, made when first asked for
  };

  Stored& at(const Expr& expr) { return done_.at(expr.object()); }

  Expr as_written(const Expr& expr) {
    Stored& stored = at(expr);
    if (!stored.is_small) return stored.expr;
    if (!stored.as_written) stored.as_written = widened(stored.expr, expr->checked_type(), expr->span);
    return stored.as_written;
  }

  static Expr widened(const Expr& small, const Type& type, const Span& span) {
    const auto* tuple = type.as<TupleTypeNode>();
    if (tuple == nullptr) return is_float32(type) ? ops::cast(small, DataType::float_(32), span) : small;
    Array<Expr> items;
    for (size_t i = 0; i < tuple->items.size(); ++i) {
      const Expr item = relay::make_tuple_get_item(small, static_cast<int64_t>(i), span);
      items.push_back(is_float32(tuple->items[i]) ? ops::cast(item, DataType::float_(32), span) : item);
    }
    return relay::make_tuple(items, span);
  }

  Expr as_small(const Expr& expr) {
    Stored& stored = at(expr);
    if (stored.is_small || !is_float32(expr)) return stored.expr;
    if (!stored.as_small) stored.as_small = ops::cast(stored.expr, small_, expr->span);
    return stored.as_small;
  }

  Stored convert(const Expr& e) {
    if (!relay::is_entered(e)) return {e, false, {}, {}};
    const auto* call = e.as<CallNode>();
    if (call != nullptr && call->as_op() != nullptr && runs_small(*call)) return {small_call(*call), true, {}, {}};
    if (const auto* item = e.as<relay::TupleGetItemNode>(); item != nullptr && at(item->tuple).is_small)
      return {relay::with_children(e, {at(item->tuple).expr}), is_float32(e), {}, {}};
    if (e.is<relay::VarNode>()) return convert_var(e);
    if (const auto* let = e.as<LetNode>()) return convert_let(e, *let);
    std::vector<Expr> children = relay::children_of(e);
    for (Expr& child : children) child = as_written(child);
    return {relay::with_children(e, children), false, {}, {}};
  }

  // The tensors that a call takes, those of tuple literals one by one.
  static std::vector<Expr> operands_of(const CallNode& call) {
    std::vector<Expr> operands;
    for (const Expr& arg : call.args) {
      const auto* tuple = arg.as<relay::TupleNode>();
      if (tuple == nullptr) operands.push_back(arg);
      if (tuple != nullptr) operands.insert(operands.end(), tuple->items.begin(), tuple->items.end());
    }
    return operands;
  }

  bool runs_small(const CallNode& call) {
    const OpKind kind = kind_of(call);
    if (kind == OpKind::never || !gives_float32(call)) return false;
    bool has_small = false;
    for (const Expr& operand : operands_of(call)) {
      const bool is_small = at(operand).is_small;
      if (!is_small && !is_float32(operand) && operand->checked_type().is<TupleTypeNode>()) return false;
      if (kind == OpKind::follow && is_float32(operand) && !is_small && !operand.is<relay::ConstantNode>())
        return false;
      has_small |= is_small;
      if (kind == OpKind::always && !is_float32(operand)) return false;
    }
    return kind == OpKind::always || has_small;
  }

  static bool gives_float32(const CallNode& call) {
    const auto* tuple = call.checked_type().as<TupleTypeNode>();
    if (tuple == nullptr) return is_float32(call.checked_type());
    return std::all_of(tuple->items.begin(), tuple->items.end(), [](const Type& item) { return is_float32(item); });
  }

  Expr small_call(const CallNode& call) {
    Array<Expr> args;
    for (const Expr& arg : call.args) {
      const auto* tuple = arg.as<relay::TupleNode>();
      if (tuple == nullptr) {
        args.push_back(as_small(arg));
        continue;
      }
      Array<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(as_small(item));
      args.push_back(relay::make_tuple(items, arg->span));
    }
    return copy_with(call, [&](CallNode& copy) {
      copy.args = args;
      copy.attrs = without_out_dtype(call.attrs);
    });
  }

  // The result is of the operands' type.
  static Attrs without_out_dtype(const Attrs& attrs) {
    const auto cleared = [](const auto* typed) {
      using T = std::remove_cvref_t<decltype(*typed)>;
      return Attrs(ops::copy_of_own_type(*typed, [](T& copy) { copy.out_dtype.reset(); }));
    };
    if (const auto* conv = attrs.as<ops::ConvAttrs>()) return cleared(conv);
    if (const auto* dense = attrs.as<ops::DenseAttrs>()) return cleared(dense);
    if (const auto* matmul = attrs.as<ops::MatmulAttrs>()) return cleared(matmul);
    if (const auto* matmul = attrs.as<ops::BatchMatmulAttrs>()) return cleared(matmul);
    return attrs;
  }

  // A variable is as its value is.
  Stored convert_var(const Expr& e) {
    const auto let = let_values_.find(e.object());
    const auto value = let == let_values_.end() ? done_.end() : done_.find(let->second.object());
    if (value == done_.end() || !value->second.is_small) return {e, false, {}, {}};
    return {relay::make_var(e.as<relay::VarNode>()->name_hint, {}, e->span), true, {}, {}};
  }

  Stored convert_let(const Expr& e, const LetNode& let) {
    const Stored &var = at(let.var), &body = at(let.body);
    const Expr value = var.is_small ? at(let.value).expr : as_written(let.value);
    if (value == let.value && body.expr == let.body) return {e, body.is_small, {}, {}};
    return {relay::make_let(var.expr.cast<relay::VarNode>(), value, body.expr, e->span), body.is_small, {}, {}};
  }

  DataType small_;
  std::unordered_map<const Object*, Expr> let_values_;
  std::unordered_map<const Object*, Stored> done_;
};

}  // namespace

DataType mixed_precision_type(const pass::PassContext& context) {
  constexpr const char* kKey = "relay.ToMixedPrecision.mixed_precision_type";
  const auto value = context.config.get(kKey);
  if (!value) return DataType::float_(16);
  if (value->is<std::string>() && value->as<std::string>() == "float16") return DataType::float_(16);
  if (value->is<std::string>() && value->as<std::string>() == "bfloat16") return DataType::parse("bfloat16");
  throw_user_error("{} must be \"float16\" or \"bfloat16\", got {}", kKey, repr(*value));
}

IRModule to_mixed_precision(const IRModule& module, DataType type) {
  return rewrite_bodies(module, [&](const Expr& body) { return Shrinker(type).run(body); });
}

}  // namespace headrace::passes
