#include "passes/nn/precision_lists.h"

#include "ir/op_handle.h"
#include "object/function.h"
#include "object/repr.h"

namespace headrace::passes {

namespace {

// Where the time goes, and where the sums are kept in float32 by the kernels themselves.
constexpr std::string_view kAlways[] = {
    "nn.batch_matmul",     "nn.conv1d", "nn.conv1d_transpose", "nn.conv2d", "nn.conv2d_transpose", "nn.conv3d",
    "nn.conv3d_transpose", "nn.dense",  "nn.matmul",
};

// Ops whose values are near their operands, or one of them.
constexpr std::string_view kFollow[] = {
    "abs",
    "add",
    "adv_index",
    "annotation.checkpoint",
    "annotation.compiler_begin",
    "annotation.compiler_end",
    "annotation.stop_fusion",
    "broadcast_to",
    "broadcast_to_like",
    "ceil",
    "clip",
    "concatenate",
    "contrib_reverse_reshape",
    "copy",
    "device_copy",
    "divide",
    "expand_dims",
    "floor",
    "full_like",
    "gather",
    "gather_nd",
    "image.dilation2d",
    "image.resize2d",
    "layout_transform",
    "matrix_set_diag",
    "max",
    "maximum",
    "meshgrid",
    "min",
    "minimum",
    "multiply",
    "nearbyint",
    "negative",
    "nn.adaptive_max_pool1d",
    "nn.adaptive_max_pool2d",
    "nn.adaptive_max_pool3d",
    "nn.avg_pool1d",
    "nn.avg_pool2d",
    "nn.avg_pool3d",
    "nn.batch_flatten",
    "nn.batch_norm",
    "nn.batch_to_space_nd",
    "nn.bias_add",
    "nn.depth_to_space",
    "nn.dilate",
    "nn.dropout",
    "nn.global_max_pool2d",
    "nn.leaky_relu",
    "nn.max_pool1d",
    "nn.max_pool2d",
    "nn.max_pool3d",
    "nn.mirror_pad",
    "nn.pad",
    "nn.prelu",
    "nn.relu",
    "nn.space_to_batch_nd",
    "nn.space_to_depth",
    "nn.upsampling",
    "nn.upsampling3d",
    "on_device",
    "ones_like",
    "repeat",
    "reshape",
    "reshape_like",
    "reverse",
    "reverse_sequence",
    "round",
    "scatter_elements",
    "scatter_nd",
    "sequence_mask",
    "sigmoid",
    "sign",
    "slice_like",
    "sliding_window",
    "sort",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "strided_set",
    "strided_slice",
    "subtract",
    "take",
    "tanh",
    "tile",
    "topk",
    "transpose",
    "trilu",
    "trunc",
    "vision.yolo_reorg",
    "where",
    "zeros_like",
};

// Ops whose range or rounding matters (coordinates, too), ops that add up many numbers, and ops whose results have a
// dtype of their own.
constexpr std::string_view kNever[] = {
    "dft",
    "nn.contrib_dense_pack",
    "nn.sparse_add",
    "nn.sparse_dense",
    "nn.sparse_transpose",
    "sparse_fill_empty_rows",
    "sparse_to_dense",
    "stft",
    "acos",
    "acosh",
    "arange",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "call_dps",
    "cast",
    "cast_like",
    "collapse_sum_like",
    "collapse_sum_to",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "einsum",
    "erf",
    "exp",
    "extern.onnx",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "floor_divide",
    "floor_mod",
    "full",
    "image.affine_grid",
    "image.crop_and_resize",
    "image.grid_sample",
    "image.resize1d",
    "image.resize3d",
    "log",
    "log10",
    "log2",
    "mean",
    "memory.alloc_storage",
    "memory.copy",
    "memory.kill",
    "memory.view",
    "mod",
    "nn.adaptive_avg_pool1d",
    "nn.adaptive_avg_pool2d",
    "nn.adaptive_avg_pool3d",
    "nn.avg_pool2d_grad",
    "nn.conv2d_backward_weight",
    "nn.correlation",
    "nn.cross_entropy",
    "nn.cross_entropy_with_logits",
    "nn.deformable_conv2d",
    "nn.fast_softmax",
    "nn.global_avg_pool2d",
    "nn.group_norm",
    "nn.gru",
    "nn.instance_norm",
    "nn.l2_normalize",
    "nn.layer_norm",
    "nn.log_softmax",
    "nn.lrn",
    "nn.lstm",
    "nn.max_pool2d_grad",
    "nn.nll_loss",
    "nn.recurrent_steps",
    "nn.rnn",
    "nn.softmax",
    "one_hot",
    "ones",
    "power",
    "prod",
    "qnn.abs",
    "qnn.add",
    "qnn.avg_pool2d",
    "qnn.batch_matmul",
    "qnn.concatenate",
    "qnn.contrib_dense_pack",
    "qnn.conv2d",
    "qnn.conv2d_transpose",
    "qnn.dense",
    "qnn.dequantize",
    "qnn.erf",
    "qnn.exp",
    "qnn.hardswish",
    "qnn.leaky_relu",
    "qnn.log",
    "qnn.mul",
    "qnn.quantize",
    "qnn.requantize",
    "qnn.rsqrt",
    "qnn.sigmoid",
    "qnn.simulated_dequantize",
    "qnn.simulated_quantize",
    "qnn.softmax",
    "qnn.sqrt",
    "qnn.subtract",
    "qnn.tanh",
    "random.multinomial",
    "random.normal",
    "random.uniform",
    "reinterpret",
    "rsqrt",
    "sin",
    "sinh",
    "sum",
    "tan",
    "trunc_divide",
    "trunc_mod",
    "unique",
    "variance",
    "vision.all_class_non_max_suppression",
    "vision.get_valid_counts",
    "vision.multibox_prior",
    "vision.multibox_transform_loc",
    "vision.non_max_suppression",
    "vision.roi_align",
    "vision.roi_pool",
    "zeros",
};

// Reads the answer of a user's function: a category, or a list of a category, the dtype of sums and that of the result.
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

using CategoryIndex = std::unordered_map<const OpNode*, PrecisionCategory>;

CategoryIndex make_category_index() {
  CategoryIndex index;
  const auto add = [&](const auto& list, PrecisionCategory category) {
    for (const std::string_view name : list) index.emplace(&OpHandle(name).node(), category);
  };
  add(kAlways, PrecisionCategory::always);
  add(kFollow, PrecisionCategory::follow);
  add(kNever, PrecisionCategory::never);
  return index;
}

std::optional<PrecisionCategory> listed(const OpNode& op) {
  static const CategoryIndex index = make_category_index();
  const auto found = index.find(&op);
  return found == index.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<PrecisionCategory> precision_category(const relay::Call& call, DataType small) {
  const OpNode& op = *call->as_op();
  const Value* rule = op.find(kPrecisionKey);
  if (rule == nullptr || rule->is_none()) return listed(op);
  if (!rule->is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is not a function but {}", kPrecisionAttr, op.name, repr(*rule));
  const std::string name = small.to_string();
  return from_answer(*call, rule->as<PackedFunc>()(call, name), name);
}

}  // namespace headrace::passes
