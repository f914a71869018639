// Random networks for the tests of FoldScaleAxis and its halves: weights, scales and biases in any layout, of any sign,
// before and after what lets scales through and what does not.
#pragma once

#include <functional>

#include "kit/random.h"
#include "object/structural_equal.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

inline constexpr int64_t kScaledChannels = 4;

// Weights are small, so that values stay about as large as they are and rounding is not magnified.
inline NDArray random_tensor(const Shape& shape, float low, float high, kit::Random& random) {
  NDArray data = NDArray::empty(shape, DataType::float_(32));
  const float size = shape.size() == 4 && data.num_elements() <= 144 ? 0.15f : 1;
  for (int64_t i = 0; i < data.num_elements(); ++i) data.data<float>()[i] = size * random.uniform(low, high);
  return data;
}

// The numbers of a network: small ones of float32, about half of them variables, unless a test says otherwise.
struct NetworkNumbers {
  DataType dtype = DataType::float_(32);
  bool has_variables = true;  // weights, factors and added operands may be parameters
  // Draws the elements of a constant; positive ones if `low` is above 0.
  std::function<NDArray(const Shape& shape, float low, kit::Random& random)> constant =
      [](const Shape& shape, float low, kit::Random& random) { return random_tensor(shape, low, 1.5f, random); };
};

// Makes networks of products with weights, scales before and after them, and ops between that let scales through or do
// not.
class ScaledNetwork {
 public:
  explicit ScaledNetwork(uint64_t seed, NetworkNumbers numbers = {})
      : random_(seed), numbers_(std::move(numbers)), channels_last_(random_.chance(0.4f)) {}

  IRModule make(int layers) {
    const bool is_matrix = random_.chance(0.3f);
    rank_ = is_matrix ? 2 : 4;
    axis_ = is_matrix || channels_last_ ? rank_ - 1 : 1;
    Shape shape(rank_, 5);
    shape[0] = 2;
    shape[axis_] = kScaledChannels;
    Expr value = parameter(shape);
    for (int i = 0; i < layers; ++i) value = layer(value);
    const IRModule module = make_module();
    // Sometimes what a layer reads is a result, too.
    const Expr body = random_.chance(0.2f) ? Expr(relay::make_tuple({value, kept_})) : value;
    module->add_function(make_global_var("main"), relay::make_function(params_, body));
    return relay::infer_type(module);
  }

 private:
  Expr parameter(const Shape& shape) {
    const auto type = make_tensor_type(shape, numbers_.dtype);
    params_.push_back(relay::make_var(fmt::format("p{}", params_.size()), type));
    return params_.back();
  }
  // Makes a constant or, as often, a variable; `low` above 0 makes constants positive.
  Expr operand(const Shape& shape, float low) {
    if (numbers_.has_variables && random_.chance(0.5f)) return parameter(shape);
    return relay::make_constant(numbers_.constant(shape, low, random_));
  }
  // Makes an operand of one value, or of one value a channel, in one of the shapes that broadcast along the channels.
  Expr vector(float low) {
    if (random_.chance(0.15f)) return operand({}, low);
    Shape shape(rank_ - axis_, 1);
    shape[0] = kScaledChannels;
    if (random_.chance(0.3f)) shape.insert(shape.begin(), axis_, 1);
    return operand(shape, low);
  }

  Expr layer(Expr value) {
    value = between(scaled(between(value)));
    kept_ = value;
    Expr result = product(value);
    if (random_.chance(0.2f)) result = ops::add(result, product(value));
    return between(scaled(between(result)));
  }
  Expr scaled(const Expr& value) {
    if (random_.chance(0.2f)) return value;
    const Expr factors = vector(random_.chance(0.7f) ? 0.25f : -1.0f);
    return random_.chance(0.5f) ? ops::multiply(value, factors) : ops::multiply(factors, value);
  }
  Expr between(const Expr& value) {
    switch (random_.integer(0, 8)) {
      case 0:
        return ops::relu(value);
      case 1:
        return ops::add(value, vector(-1));
      case 2:
        return ops::subtract(vector(-1), value);
      case 3:
        return ops::bias_add(value, operand({kScaledChannels}, -1), static_cast<int64_t>(axis_));
      case 4:
        return rank_ == 4 ? pooled(value) : value;
      case 5:
        return random_.chance(0.3f) ? ops::unary("tanh", value) : value;
      case 6:
        return random_.chance(0.5f) ? ops::leaky_relu(value, 0.5) : prelu(value);
      default:
        return value;
    }
  }
  Expr prelu(const Expr& value) {
    const NDArray slopes = NDArray::empty({kScaledChannels}, numbers_.dtype);
    for (int64_t i = 0; i < slopes.num_elements(); ++i) set_element(slopes.tensor(), i, 0.25);
    return ops::prelu(value, relay::make_constant(slopes), static_cast<int64_t>(axis_));
  }
  // Makes a pool whose result has the same size.
  Expr pooled(const Expr& value) {
    ops::MaxPool2DAttrs most;
    ops::AvgPool2DAttrs mean;
    most.pool_size = mean.pool_size = {3, 3};
    most.padding = mean.padding = {1, 1};
    most.layout = mean.layout = channels_last_ ? "NHWC" : "NCHW";
    return random_.chance(0.5f) ? ops::max_pool(value, most) : ops::avg_pool(value, mean);
  }

  // Makes a border of zeros around the planes.
  Expr padded(const Expr& value) {
    Array<Shape> widths;
    for (size_t i = 0; i < rank_; ++i) widths.push_back(i == 0 || i == axis_ ? Shape{0, 0} : Shape{1, 1});
    return ops::pad(value, widths, relay::make_scalar(0, numbers_.dtype));
  }

  // Makes a product with weights, which gives as many channels of the same planes.
  Expr product(const Expr& value) {
    const int64_t c = kScaledChannels;
    if (rank_ == 2 && random_.chance(0.5f)) return ops::dense(value, operand({c, c}, -1));
    if (rank_ == 2) {
      ops::MatmulAttrs attrs;
      attrs.transpose_b = random_.chance(0.5f);
      return ops::matmul(value, operand({c, c}, -1), attrs);
    }
    const std::string layout = channels_last_ ? "NHWC" : "NCHW";
    if (random_.chance(0.2f)) {
      ops::Conv2DTransposeAttrs attrs;
      attrs.data_layout = layout;
      attrs.padding = {1, 1};
      return ops::conv2d_transpose(value, operand({c, c, 3, 3}, -1), attrs);
    }
    static constexpr int64_t kGroups[] = {1, 1, 2, kScaledChannels};
    ops::Conv2DAttrs attrs;
    attrs.groups = kGroups[random_.index(4)];
    attrs.data_layout = layout;
    attrs.kernel_layout = random_.chance(0.5f) ? "OIHW" : "HWIO";
    const bool pads = random_.chance(0.3f);
    if (!pads) attrs.padding = {1, 1};
    const int64_t inputs = c / attrs.groups;
    const Shape shape = attrs.kernel_layout == "OIHW" ? Shape{c, inputs, 3, 3} : Shape{3, 3, inputs, c};
    return ops::conv2d(pads ? padded(value) : value, operand(shape, -1), attrs);
  }

  kit::Random random_;
  NetworkNumbers numbers_;
  bool channels_last_;
  size_t rank_ = 0, axis_ = 0;  // rank of the values, and axis of their channels
  Array<relay::Var> params_;
  Expr kept_;
};

// Counts the multiplications whose operand has a size that no weight or scale has: those of values.
inline int products_of_values(const IRModule& module) {
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  const Type type = main->params[0]->checked_type();
  int count = 0;
  relay::post_order(main, [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    const bool is_product = call != nullptr && call->as_op() != nullptr && call->as_op()->name == "multiply";
    count += is_product && structural_equal(Value(call->checked_type()), Value(type)) ? 1 : 0;
  });
  return count;
}

}  // namespace headrace::passes
