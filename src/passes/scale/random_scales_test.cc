// FoldScaleAxis and its halves over random networks: weights, scales and biases that are constants or variables, in any
// layout, of any sign, before and after what lets scales through and what does not.
#include "passes/tests/random_programs.h"
#include "passes/tests/scaled_network.h"

namespace headrace::passes {
namespace {

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
