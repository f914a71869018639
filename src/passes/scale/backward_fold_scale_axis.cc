#include "passes/scale/backward_fold_scale_axis.h"

#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/scale/channel_scale.h"
#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

class ScaleFolder {
 public:
  ScaleFolder(const Expr& body, const pass::PassContext& context) : context_(context), uses_(body) {}

  Expr rewrite(const Expr& before, const Expr& after) {
    const Expr result = fold(before, after);
    uses_.take_over(before, result);
    return result;
  }

 private:
  Expr fold(const Expr& before, const Expr& after) {
    const auto* call = after.as<CallNode>();
    if (call == nullptr || call->as_op() == nullptr || call->as_op()->name != "multiply") return after;
    const auto* type = before->checked_type().as<TensorTypeNode>();
    if (type == nullptr || !type->dtype.is_float()) return after;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const NDArray factors = constant_data(call->args[side]);
      const Expr data = before.as<CallNode>()->args[1 - side];
      if (!factors || !relay::same_type(before->checked_type(), data->checked_type())) continue;
      const auto scale = read_scale(factors, type->shape.size());
      if (!scale) continue;
      if (Expr scaled = push(call->args[1 - side], *scale)) return scaled;
    }
    return after;
  }

  // `expr` times the scale, without a multiplication that remains; null when that cannot be.
  Expr push(const Expr& top, const Scale& scale) {
    // Down to the op with weights, then up again with what is scaled.
    std::vector<const CallNode*> way;
    Expr bottom = top;
    Expr scaled;
    while (!scaled) {
      const auto* call = bottom.as<CallNode>();
      if (call == nullptr || call->as_op() == nullptr || !uses_.is_single(bottom)) return {};
      scaled = scale_weights(*call, scale);
      if (scaled) break;
      if (!lets_through(*call, scale)) return {};
      way.push_back(call);
      bottom = call->args[data_side(*call)];
    }
    uses_.add_single(scaled);
    for (size_t i = way.size(); i-- > 0;) {
      scaled = pass_through(*way[i], scaled, scale);
      if (!scaled) return {};
      uses_.add_single(scaled);
    }
    return scaled;
  }

  // The argument that is scaled when the call is: addition takes its constant on either side.
  static size_t data_side(const CallNode& call) {
    return call.as_op()->name == "add" && call.args[0].is<ConstantNode>() ? 1 : 0;
  }

  static bool lets_through(const CallNode& call, const Scale& scale) {
    const std::string_view op = call.as_op()->name;
    if (op == "nn.relu" || op == "nn.leaky_relu" || op == "nn.prelu") return scale.is_positive();
    if (op == "nn.bias_add") {
      const size_t axis = ops::normal_axis(call.attrs_as<ops::BiasAddAttrs>().axis, scale.rank);
      return call.args[1].is<ConstantNode>() && (scale.is_uniform() || axis == scale.axis);
    }
    if (op != "add" && op != "subtract") return false;
    const NDArray added = constant_data(call.args[1 - data_side(call)]);
    const auto axis = added ? varying_axis(added.shape(), scale.rank) : std::nullopt;
    return axis && (*axis == scale.rank || scale.is_uniform() || *axis == scale.axis);
  }

  // The call of scaled data, with what it adds scaled; null when that cannot be.
  Expr pass_through(const CallNode& call, const Expr& data, const Scale& scale) const {
    const size_t side = data_side(call);
    Array<Expr> args = call.args;
    args.set(side, data);
    const std::string_view op = call.as_op()->name;
    if (op == "nn.bias_add" || op == "add" || op == "subtract") {
      const Expr factors = op == "nn.bias_add" ? scale.along(0, 1) : scale.along(scale.axis, scale.rank);
      const Expr added = multiplied(call.args[1 - side], factors, context_);
      if (!added) return {};
      args.set(1 - side, added);
    }
    return copy_with(call, [&](CallNode& copy) { copy.args = args; });
  }

  // The call with scaled weights, where it is an op with weights whose output the scale is along; else null.
  Expr scale_weights(const CallNode& call, const Scale& scale) const {
    const std::string_view op = call.as_op()->name;
    if (op == "nn.conv2d" || op == "nn.conv2d_transpose") return scale_conv(call, scale);
    if (op == "nn.dense") return scale_matrix(call, scale, 0);
    if (op == "nn.matmul") return scale_matrix(call, scale, call.attrs_as<ops::MatmulAttrs>().transpose_b ? 0 : 1);
    return {};
  }

  Expr scale_conv(const CallNode& call, const Scale& scale) const {
    const auto& attrs = call.attrs_as<ops::ConvAttrs>();
    if (attrs.transposed && attrs.groups != 1) return {};
    const size_t channels = (attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout).find('C');
    const size_t outputs = attrs.kernel_layout.find('O');
    if (!scale.is_uniform() && (scale.axis != channels || scale.rank != 4)) return {};
    return with_weights(call, scale, outputs, 4);
  }

  Expr scale_matrix(const CallNode& call, const Scale& scale, size_t outputs) const {
    if (!scale.is_uniform() && scale.axis + 1 != scale.rank) return {};
    return with_weights(call, scale, outputs, 2);
  }

  Expr with_weights(const CallNode& call, const Scale& scale, size_t axis, size_t rank) const {
    const NDArray weights = constant_data(call.args[1]);
    if (!weights || weights.shape().size() != rank || weights.dtype() != scale.factors.dtype()) return {};
    // One output channel broadcast to several is not along the weights.
    if (!scale.is_uniform() && weights.shape()[axis] != scale.factors.num_elements()) return {};
    Array<Expr> args = call.args;
    const Expr scaled = multiplied(call.args[1], scale.along(axis, rank), context_);
    if (!scaled) return {};
    args.set(1, scaled);
    return copy_with(call, [&](CallNode& copy) { copy.args = args; });
  }

  const pass::PassContext& context_;
  UseCounts uses_;
};

}  // namespace

IRModule backward_fold_scale_axis(const IRModule& module, const pass::PassContext& context) {
  return rewrite_bodies(module, [&](const Expr& body) {
    ScaleFolder folder(body, context);
    return relay::rewrite_post_order(
        body, [&](const Expr& before, const Expr& after) { return folder.rewrite(before, after); });
  });
}

}  // namespace headrace::passes
