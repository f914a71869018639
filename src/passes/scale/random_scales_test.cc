// FoldScaleAxis and its halves over random networks: weights, scales and biases that are constants or variables, in any
// layout, of any sign, before and after what lets scales through and what does not.
#include "kit/property.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/random_programs.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

constexpr int64_t kScaledChannels = 4;

// Weights are small, so that values stay about as large as they are and rounding is not magnified.
NDArray random_tensor(const Shape& shape, float low, float high, kit::Random& random) {
  NDArray data = NDArray::empty(shape, DataType::float_(32));
  const float size = shape.size() == 4 && data.num_elements() <= 144 ? 0.15f : 1;
  for (int64_t i = 0; i < data.num_elements(); ++i) data.data<float>()[i] = size * random.uniform(low, high);
  return data;
}

class ScaledNetwork {
 public:
  explicit ScaledNetwork(uint64_t seed) : random_(seed), channels_last_(random_.chance(0.4f)) {}

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
    const auto type = make_tensor_type(shape, DataType::float_(32));
    params_.push_back(relay::make_var(fmt::format("p{}", params_.size()), type));
    return params_.back();
  }
  // A constant or, as often, a variable; `low` above 0 makes constants positive.
  Expr operand(const Shape& shape, float low) {
    if (random_.chance(0.5f)) return parameter(shape);
    return relay::make_constant(random_tensor(shape, low, 1.5f, random_));
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
    switch (random_.integer(0, 7)) {
      case 0:
        return ops::relu(value);
      case 1:
        return ops::add(value, vector(-1));
      case 2:
        return ops::subtract(vector(-1), value);
      case 3:
        return ops::bias_add(value, operand({kScaledChannels}, -1), static_cast<int64_t>(axis_));
      case 4:
        return rank_ == 4 ? pooled(value) : ops::leaky_relu(value, 0.5);
      case 5:
        return random_.chance(0.3f) ? ops::unary("tanh", value) : value;
      default:
        return value;
    }
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

  // Weights, which give as many channels of the same planes.
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
    attrs.padding = {1, 1};
    const int64_t inputs = c / attrs.groups;
    const Shape shape = attrs.kernel_layout == "OIHW" ? Shape{c, inputs, 3, 3} : Shape{3, 3, inputs, c};
    return ops::conv2d(value, operand(shape, -1), attrs);
  }

  kit::Random random_;
  bool channels_last_;
  size_t rank_ = 0, axis_ = 0;  // rank of the values, and axis of their channels
  Array<relay::Var> params_;
  Expr kept_;
};

// Multiplications whose operand has a size that no weight or scale has: those of values.
int products_of_values(const IRModule& module) {
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

struct NetworkCase {
  uint64_t seed = 0;
  int layers = 1;
};

std::optional<std::string> check_scales(const char* pass, const NetworkCase& network, int& moved) {
  const IRModule before = ScaledNetwork(network.seed).make(network.layers), after = run_pass(pass, before);
  moved += products_of_values(before) - products_of_values(after);
  kit::Random random(network.seed);
  std::vector<NDArray> inputs;
  for (const relay::Var& param : before->lookup("main").cast<relay::FunctionNode>()->params)
    inputs.push_back(random_tensor(*as_shape(param->checked_type().as<TensorTypeNode>()->shape), -1, 1, random));
  const auto want = interp::run_main(before, inputs), got = interp::run_main(after, inputs);
  for (size_t r = 0; r < want.size(); ++r) {
    for (int64_t i = 0; i < want[r].num_elements(); ++i) {
      const double x = element_as_double(want[r].tensor(), i), y = element_as_double(got[r].tensor(), i);
      if (!(std::abs(x - y) <= kRounding * std::max(1.0, std::abs(x))))
        return fmt::format("result {}[{}]: {} became {}\nafter:\n{}", r, i, x, y, relay::print_module(after));
    }
  }
  return std::nullopt;
}

class RandomScales : public testing::TestWithParam<const char*> {};

TEST_P(RandomScales, KeepTheResults) {
  ops::register_all_ops();
  int moved = 0;
  kit::Property<NetworkCase> property;
  property.runs_ci = 200;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    return NetworkCase{random.next(), static_cast<int>(random.integer(1, 3))};
  };
  property.shrink = [](const NetworkCase& network) {
    return network.layers > 1 ? std::vector<NetworkCase>{{network.seed, network.layers - 1}}
                              : std::vector<NetworkCase>{};
  };
  property.show = [](const NetworkCase& network) {
    return relay::print_module(ScaledNetwork(network.seed).make(network.layers));
  };
  property.check = [&](const NetworkCase& network) { return check_scales(GetParam(), network, moved); };
  EXPECT_TRUE(kit::holds(property));
  if (!kit::options().seed) {
    EXPECT_GT(moved, kit::detail::runs_of(property) / 2) << "few scales were moved";
  }
}

INSTANTIATE_TEST_SUITE_P(RandomPrograms, RandomScales,
                         testing::Values("FoldScaleAxis", "BackwardFoldScaleAxis", "ForwardFoldScaleAxis"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headrace::passes
