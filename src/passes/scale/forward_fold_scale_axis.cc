#include "passes/scale/forward_fold_scale_axis.h"

#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/scale/channel_scale.h"
#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// Where an op with weights reads its data's channels.
struct Reader {
  size_t data_axis = 0;
  size_t weight_axis = 0;
  size_t weight_rank = 0;
};

std::optional<Reader> conv_reader(const CallNode& call) {
  const auto& attrs = call.attrs_as<ops::ConvAttrs>();
  const NDArray weights = constant_data(call.args[1]);
  if (!weights || attrs.data_layout.size() != 4 || attrs.kernel_layout.size() != 4) return std::nullopt;
  const size_t channels = attrs.data_layout.find('C');
  const size_t inputs = attrs.kernel_layout.find('I'), outputs = attrs.kernel_layout.find('O');
  if (attrs.groups == 1) return Reader{channels, inputs, 4};
  // Depthwise: one output of each input.
  const bool is_depthwise = weights.shape()[outputs] == attrs.groups && weights.shape()[inputs] == 1;
  return is_depthwise && !attrs.transposed ? std::optional(Reader{channels, outputs, 4}) : std::nullopt;
}

std::optional<Reader> reader_of(const CallNode& call, size_t data_rank) {
  const OpNode* op = call.as_op();
  if (op == nullptr) return std::nullopt;
  if (op->name == "nn.conv2d" || op->name == "nn.conv2d_transpose") return conv_reader(call);
  if (op->name == "nn.dense") return Reader{data_rank - 1, 1, 2};
  if (op->name != "nn.matmul") return std::nullopt;
  const auto& attrs = call.attrs_as<ops::MatmulAttrs>();
  return Reader{data_rank - (attrs.transpose_a ? 2 : 1), attrs.transpose_b ? size_t{1} : size_t{0}, 2};
}

bool is_zero_padding(const CallNode& call) {
  const NDArray value = call.args.size() == 2 ? constant_data(call.args[1]) : NDArray();
  const bool is_constant = call.attrs_as<ops::PadAttrs>().pad_mode == "constant";
  return is_constant && value && element_as_double(value.tensor(), 0) == 0;
}

// Windows slide over other axes than the scale's.
template <typename T>
bool pools_beside(const CallNode& call, const Scale& scale) {
  const T& attrs = call.attrs_as<T>();
  const bool keeps_layout = attrs.out_layout.empty() || attrs.out_layout == attrs.layout;
  return scale.is_uniform() || (keeps_layout && attrs.layout.find('C') == scale.axis);
}

// f(x * s) == f(x) * s
bool lets_through(const CallNode& call, const Scale& scale) {
  const std::string_view op = call.as_op()->name;
  if (op == "nn.relu" || op == "nn.leaky_relu") return scale.is_positive();
  if (op == "nn.max_pool2d") return scale.is_positive() && pools_beside<ops::PoolAttrs>(call, scale);
  if (op == "nn.avg_pool2d") return pools_beside<ops::PoolAttrs>(call, scale);
  if (op == "nn.global_avg_pool2d") return pools_beside<ops::GlobalPool2DAttrs>(call, scale);
  // Padding of the channels would leave more channels than factors.
  return op == "nn.pad" && is_zero_padding(call) &&
         (scale.is_uniform() || call.attrs_as<ops::PadAttrs>().pad_width[scale.axis] == Shape{0, 0});
}

class ForwardFolder {
 public:
  ForwardFolder(const Expr& body, const pass::PassContext& context) : context_(context), uses_(body) {}

  Expr rewrite(const Expr& before, const Expr& after) {
    const auto* call = before.as<CallNode>();
    const auto* data = call == nullptr || call->args.empty() || !call->args[0]->has_checked_type()
                           ? nullptr
                           : call->args[0]->checked_type().as<TensorTypeNode>();
    Expr result = after;
    if (data != nullptr && data->dtype.is_float()) {
      const auto reader = reader_of(*call, data->shape.size());
      const Expr folded = reader ? fold(*after.as<CallNode>(), *reader) : Expr();
      if (folded) result = folded;
    }
    uses_.take_over(before, result);
    if (before->has_checked_type()) types_.emplace(result.object(), before->checked_type());
    return result;
  }

 private:
  // The reader with scaled weights and unscaled data; null when there is no scale on the way.
  Expr fold(const CallNode& reader, const Reader& where) const {
    std::vector<const CallNode*> way;
    Expr bottom = reader.args[0];
    while (true) {
      const auto* call = bottom.as<CallNode>();
      if (call == nullptr || call->as_op() == nullptr || !uses_.is_single(bottom)) return {};
      if (call->as_op()->name == "multiply") break;
      if (!may_let_through(*call)) return {};
      way.push_back(call);
      bottom = call->args[0];
    }
    for (const size_t side : {size_t{1}, size_t{0}}) {
      if (Expr folded = fold_factors(reader, where, way, *bottom.as<CallNode>(), side)) return folded;
    }
    return {};
  }

  static bool may_let_through(const CallNode& call) {
    static constexpr std::string_view kOps[] = {"nn.relu",       "nn.leaky_relu",        "nn.max_pool2d",
                                                "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.pad"};
    return std::find(std::begin(kOps), std::end(kOps), call.as_op()->name) != std::end(kOps);
  }

  Expr fold_factors(const CallNode& reader, const Reader& where, const std::vector<const CallNode*>& way,
                    const CallNode& product, size_t side) const {
    const NDArray factors = constant_data(product.args[side]), weights = constant_data(reader.args[1]);
    const auto from = types_.find(product.args[1 - side].object()), to = types_.find(ref(&product).object());
    const bool is_typed = from != types_.end() && to != types_.end();
    if (!factors || !weights || !is_typed || !relay::same_type(from->second, to->second)) return {};
    const auto scale = read_scale(factors, to->second.as<TensorTypeNode>()->shape.size());
    if (!scale || weights.shape().size() != where.weight_rank || weights.dtype() != factors.dtype()) return {};
    const bool is_along = scale->is_uniform() || (scale->axis == where.data_axis &&
                                                  weights.shape()[where.weight_axis] == factors.num_elements());
    if (!is_along) return {};
    for (const CallNode* call : way) {
      if (!lets_through(*call, *scale)) return {};
    }
    const Expr scaled = multiplied(reader.args[1], scale->along(where.weight_axis, where.weight_rank), context_);
    return scaled ? rebuilt(reader, way, product.args[1 - side], scaled) : Expr();
  }

  static Expr rebuilt(const CallNode& reader, const std::vector<const CallNode*>& way, Expr data, const Expr& weights) {
    const auto with_data = [&](const CallNode& call) {
      return copy_with(call, [&](CallNode& copy) { copy.args.set(0, data); });
    };
    for (size_t i = way.size(); i-- > 0;) data = with_data(*way[i]);
    return copy_with(*with_data(reader), [&](CallNode& copy) { copy.args.set(1, weights); });
  }

  const pass::PassContext& context_;
  UseCounts uses_;
  std::unordered_map<const Object*, Type> types_;
};

}  // namespace

IRModule forward_fold_scale_axis(const IRModule& module, const pass::PassContext& context) {
  return rewrite_bodies(module, [&](const Expr& body) {
    ForwardFolder folder(body, context);
    return relay::rewrite_post_order(
        body, [&](const Expr& before, const Expr& after) { return folder.rewrite(before, after); });
  });
}

}  // namespace headrace::passes
