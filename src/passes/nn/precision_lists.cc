#include "passes/nn/precision_lists.h"

#include "object/function.h"
#include "object/repr.h"

namespace headrace::passes {

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

// Whose range or rounding matters, what adds up many numbers, and what makes tensors of a type of its own.
constexpr std::string_view kNever[] = {
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "einsum",
    "erf",
    "exp",
    "fast_erf",
    "fast_exp",
    "floor_divide",
    "floor_mod",
    "full",
    "log",
    "log10",
    "log2",
    "mean",
    "mod",
    "nn.batch_norm",
    "nn.cross_entropy",
    "nn.cross_entropy_with_logits",
    "nn.fast_softmax",
    "nn.group_norm",
    "nn.instance_norm",
    "nn.l2_normalize",
    "nn.layer_norm",
    "nn.log_softmax",
    "nn.lrn",
    "nn.nll_loss",
    "nn.softmax",
    "ones",
    "power",
    "prod",
    "random.multinomial",
    "random.normal",
    "random.uniform",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "sum",
    "tan",
    "trunc_divide",
    "trunc_mod",
    "variance",
    "zeros",
};

// What the function of a user says: a category, or a list of one, of the type that sums are kept in, and of the
// result's.
PrecisionCategory from_answer(const relay::CallNode& call, const Value& answer, const std::string& small) {
  const bool is_list = answer.is<Array<Value>>();
  const Array<Value> list = is_list ? answer.as<Array<Value>>() : Array<Value>{answer};
  const bool is_known =
      !list.empty() && list[0].is<int64_t>() && list[0].as<int64_t>() >= 0 && list[0].as<int64_t>() <= 2;
  if (!is_known || list.size() > 3)
    throw_at(
        call.span, call.as_op()->name,
        fmt::format("its {} gives {}; it gives 0 (always), 1 (follow) or 2 (never), or a list of that, the type that "
                    "sums are kept in, and the result's",
                    kPrecisionAttr, repr(answer)));
  const auto category = static_cast<PrecisionCategory>(list[0].as<int64_t>());
  const bool has_sums =
      list.size() < 2 ||
      (list[1].is<std::string>() && (list[1].as<std::string>() == "float32" || list[1].as<std::string>() == small));
  if (category != PrecisionCategory::never && !has_sums)
    throw_at(call.span, call.as_op()->name,
             fmt::format("its {} wants sums in {}; they are kept in float32, and a rule may say that or {}",
                         kPrecisionAttr, repr(list[1]), small));
  const bool is_small = list.size() < 3 || (list[2].is<std::string>() && list[2].as<std::string>() == small);
  if (category != PrecisionCategory::never && !is_small)
    throw_at(call.span, call.as_op()->name,
             fmt::format("its {} wants results of {}; what computes in {} gives it too", kPrecisionAttr, repr(list[2]),
                         small));
  return category;
}

std::optional<PrecisionCategory> listed(std::string_view op) {
  const auto is_in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), op) != std::end(list);
  };
  if (is_in(kAlways)) return PrecisionCategory::always;
  if (is_in(kFollow)) return PrecisionCategory::follow;
  if (is_in(kNever)) return PrecisionCategory::never;
  return {};
}

}  // namespace

std::optional<PrecisionCategory> precision_category(const relay::Call& call, DataType small) {
  const OpNode& op = *call->as_op();
  const Value* rule = op.find(OpKey<Value>{kPrecisionAttr});
  if (rule == nullptr || rule->is_none()) return listed(op.name);
  if (!rule->is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is no function but {}", kPrecisionAttr, op.name, repr(*rule));
  const std::string name = small.to_string();
  return from_answer(*call, rule->as<PackedFunc>()(call, name), name);
}

}  // namespace headrace::passes
