// FoldScaleAxis and its halves over random networks that round by a large constant, which is added and subtracted
// again. All other numbers are small multiples of powers of two, so that moving a scale into weights is exact: a result
// that differs in any bit comes from a scale that moved past the constants and changed the spacing they round to.
#include "kit/property.h"
#include "passes/tests/numerics_testing.h"
#include "passes/tests/scaled_network.h"

namespace headrace::passes {
namespace {

constexpr int64_t kRoundedRows = 3;

struct RoundingNetwork {
  uint64_t seed = 0;
};

class RoundingNetworkMaker {
 public:
  explicit RoundingNetworkMaker(uint64_t seed) : random_(seed) {
    dtype_ = DataType::float_(random_.chance(0.5f) ? 32 : 64);
    // 1.5 times the number from which on floating-point numbers are `spacing` apart.
    const double spacing = std::ldexp(1, static_cast<int>(random_.integer(-1, 3)));
    constant_ = (dtype_.bits() == 32 ? 0x1.8p23 : 0x1.8p52) * spacing;
    if (random_.chance(0.5f)) constant_ = -constant_;
  }

  IRModule make() {
    const relay::Var x = relay::make_var("x", make_tensor_type({kRoundedRows, kScaledChannels}, dtype_));
    Expr value = x;
    if (random_.chance(0.5f)) value = product(value);
    value = between(scaled(between(value)));
    value = rounded(value);
    value = between(scaled(between(value)));
    if (random_.chance(0.6f)) value = product(value);
    return typed_main({x}, value);
  }
  NDArray input() {
    const NDArray x = NDArray::empty({kRoundedRows, kScaledChannels}, dtype_);
    for (int64_t i = 0; i < x.num_elements(); ++i)
      set_element(x.tensor(), i, 0.25 * static_cast<double>(random_.integer(-16, 16)));
    return x;
  }

 private:
  Expr constants(const Shape& shape, const std::function<double()>& draw) {
    const NDArray data = NDArray::empty(shape, dtype_);
    for (int64_t i = 0; i < data.num_elements(); ++i) set_element(data.tensor(), i, draw());
    return relay::make_constant(data);
  }
  Shape vector_shape() { return random_.chance(0.4f) ? Shape{} : Shape{kScaledChannels}; }
  Expr product(const Expr& value) {
    const auto weight = [this] { return static_cast<double>(random_.integer(-3, 3)); };
    return ops::dense(value, constants({kScaledChannels, kScaledChannels}, weight));
  }
  Expr scaled(const Expr& value) {
    static constexpr double kFactors[] = {0.75, 1.5, 2, 3, 5};
    if (random_.chance(0.3f)) return value;
    return ops::multiply(value, constants(vector_shape(), [this] { return kFactors[random_.index(5)]; }));
  }
  Expr between(const Expr& value) { return random_.chance(0.3f) ? ops::relu(value) : value; }

  // Adds the constant and takes it away again, in one of the forms that do so.
  Expr rounded(const Expr& value) {
    const auto constant = [this](double sign) { return constants(vector_shape(), [&] { return sign * constant_; }); };
    const auto biased = [&](const Expr& data, double sign) {
      const Expr bias = constants({kScaledChannels}, [&] { return sign * constant_; });
      return random_.chance(0.3f) ? ops::bias_add(data, bias, 1) : ops::add(data, constant(sign));
    };
    switch (random_.integer(0, 3)) {
      case 0:
        return biased(biased(value, 1), -1);
      case 1:
        return ops::subtract(biased(value, 1), constant(1));
      case 2:
        return ops::subtract(constant(1), ops::subtract(constant(1), value));
      default:
        return ops::subtract(ops::subtract(constant(1), value), constant(1));
    }
  }

  kit::Random random_;
  DataType dtype_;
  double constant_ = 0;
};

class RoundingConstants : public testing::TestWithParam<const char*> {};

TEST_P(RoundingConstants, KeepEveryBit) {
  ops::register_all_ops();
  int moved = 0;
  kit::Property<RoundingNetwork> property;
  property.runs_ci = 1000;
  property.runs_full = 100000;
  property.generate = [](kit::Random& random) { return RoundingNetwork{random.next()}; };
  property.show = [](const RoundingNetwork& network) {
    return relay::print_module(RoundingNetworkMaker(network.seed).make());
  };
  property.check = [&](const RoundingNetwork& network) -> std::optional<std::string> {
    RoundingNetworkMaker maker(network.seed);
    const IRModule before = maker.make(), after = run_pass(GetParam(), before);
    const NDArray x = maker.input();
    moved += products_of_values(before) - products_of_values(after);
    const auto was = numbers_of_results(before, {x}), is = numbers_of_results(after, {x});
    for (size_t i = 0; i < was.size(); ++i) {
      if (was[i] != is[i])
        return fmt::format("result {}: {} became {}\n{}", i, was[i], is[i], relay::print_module(after));
    }
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  EXPECT_GT(moved, kit::detail::runs_of(property) / 4) << "few scales were moved";
}

INSTANTIATE_TEST_SUITE_P(RandomPrograms, RoundingConstants,
                         testing::Values("FoldScaleAxis", "BackwardFoldScaleAxis", "ForwardFoldScaleAxis"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headrace::passes
