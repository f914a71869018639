// FoldScaleAxis and its halves over random networks with constants and data of any magnitude, in float16, bfloat16 and
// float32: how far results may be from those of exact arithmetic (docs/numerics.md).
//
// How it works: each network has companions, the same calls in float64. One computes the exact results. Others compute
// with magnitudes instead of numbers: the sum of the magnitudes of each result's terms, or that sum after each op has
// added the most that underflow takes from its result. Ops that let scales through enlarge no difference of their data
// (relu, slopes of at most 1, maxima, means), so that an error is at most what the companions make of it.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "kit/property.h"
#include "passes/tests/numerics_testing.h"
#include "passes/tests/scaled_network.h"

namespace headrace::passes {
namespace {

using relay::CallNode;
using relay::ConstantNode;

// ---- companions in float64

// The numbers that a companion computes with.
struct CompanionForm {
  bool has_magnitudes = false;
  double limit = INFINITY;    // magnitudes from here on count as infinite
  double each_adds = 0;       // added to the result of each op
  double each_mean_adds = 0;  // added to the results of average pools and of ops with slopes
  double weights_add = 0;     // added to each weight, as a part of the tensor's largest
};

bool is_call_of(const CallNode& call, std::initializer_list<std::string_view> names) {
  const std::string_view name = call.as_op()->name;
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_weights(const CallNode& call) {
  return is_call_of(call, {"nn.dense", "nn.matmul", "nn.conv2d", "nn.conv2d_transpose"});
}

double largest_of(const NDArray& data) {
  double largest = 0;
  for (const double value : numbers_in(data))
    largest = std::isnan(value) ? INFINITY : std::max(largest, std::abs(value));
  return largest;
}

class CompanionMaker {
 public:
  explicit CompanionMaker(const CompanionForm& form) : form_(form) {}

  IRModule make(const IRModule& module) {
    Array<relay::Var> params;
    for (const relay::Var& param : main_of(module).params) {
      const Shape shape = param->checked_type().as<TensorTypeNode>()->concrete_shape();
      params.push_back(relay::make_var(param->name_hint, make_tensor_type(shape, DataType::float_(64))));
      made_.emplace(param.object(), bounded(params.back()));
    }
    relay::post_order(main_of(module).body, [&](const Expr& e) {
      if (const auto* call = e.as<CallNode>()) made_.emplace(e.object(), companion(*call));
      if (const auto* tuple = e.as<relay::TupleNode>()) {
        Array<Expr> fields;
        for (const Expr& field : tuple->items) fields.push_back(made_.at(field.object()));
        made_.emplace(e.object(), relay::make_tuple(fields));
      }
    });
    return typed_main(params, made_.at(main_of(module).body.object()));
  }

 private:
  static Expr number(double value) { return relay::make_scalar(value, DataType::float_(64)); }

  Expr constant(const NDArray& data, double added) const {
    const NDArray wide = NDArray::empty(data.shape(), DataType::float_(64));
    for (int64_t i = 0; i < data.num_elements(); ++i) {
      const double value = element_as_double(data.tensor(), i);
      set_element(wide.tensor(), i, (form_.has_magnitudes ? std::abs(value) : value) + added);
    }
    return relay::make_constant(wide);
  }
  Expr argument(const CallNode& call, size_t i) const {
    const auto* value = call.args[i].as<ConstantNode>();
    if (value == nullptr) return made_.at(call.args[i].object());
    const bool is_weight = i == 1 && has_weights(call);
    return constant(value->data, is_weight ? form_.weights_add * largest_of(value->data) : 0);
  }
  // Counts what reaches the limit as infinite, as it may overflow.
  Expr bounded(const Expr& value) const {
    if (form_.limit == INFINITY) return value;
    return ops::where(ops::binary("less", value, number(form_.limit)), value, number(INFINITY));
  }
  Expr companion(const CallNode& call) const {
    Array<Expr> args;
    for (size_t i = 0; i < call.args.size(); ++i) args.push_back(argument(call, i));
    if (!form_.has_magnitudes) return relay::make_call(call.op, args, call.attrs);
    const bool has_slope = is_call_of(call, {"nn.leaky_relu", "nn.prelu"});
    const bool is_passed = has_slope || is_call_of(call, {"nn.relu", "tanh"});
    Expr value = is_passed                        ? args[0]
                 : is_call_of(call, {"subtract"}) ? ops::add(args[0], args[1])
                                                  : Expr(relay::make_call(call.op, args, call.attrs));
    const bool is_mean = has_slope || is_call_of(call, {"nn.avg_pool2d"});
    const double added = form_.each_adds + (is_mean ? form_.each_mean_adds : 0);
    if (added != 0) value = ops::add(value, number(added));
    return bounded(value);
  }

  const CompanionForm& form_;
  std::unordered_map<const Object*, Expr> made_;
};

std::vector<double> companion_results(const IRModule& module, const NDArray& input, const CompanionForm& form) {
  const NDArray wide = NDArray::empty(input.shape(), DataType::float_(64));
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    const double value = element_as_double(input.tensor(), i);
    set_element(wide.tensor(), i, form.has_magnitudes ? std::abs(value) : value);
  }
  return numbers_of_results(CompanionMaker(form).make(module), {wide});
}

// ---- networks of any magnitude

// Draws numbers that are near 1, or near 1/16 in large tensors, near another power of two, or anywhere in the range;
// positive ones if `low` is above 0. Zeros are rare, since no scale with a zero moves past an addition.
NDArray numbers_for_network(const Shape& shape, float low, const FloatRange& range, kit::Random& random) {
  const float kind = random.uniform();
  const int64_t usual = num_elements(shape) > kScaledChannels ? -4 : 0;
  const int64_t middle = kind < 0.6f ? usual : random.integer(-range.most_exponent - 8, range.most_exponent);
  const int64_t spread = kind < 0.9f ? 2 : random.integer(3, range.most_exponent);
  const NDArray data = NDArray::empty(shape, range.dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    const auto exponent =
        static_cast<int>(std::min<int64_t>(middle + random.integer(-spread, spread), range.most_exponent));
    const double value = low <= 0 && random.chance(0.05f) ? 0 : std::ldexp(1.0 + random.uniform(), exponent);
    set_element(data.tensor(), i, low <= 0 && random.chance(0.5f) ? -value : value);
    if (!std::isfinite(element_as_double(data.tensor(), i))) set_element(data.tensor(), i, range.largest);
  }
  return data;
}

struct AnyNetwork {
  uint64_t seed = 0;
  int layers = 1;
  const FloatRange* range = nullptr;

  IRModule module() const {
    const auto constant = [this](const Shape& shape, float low, kit::Random& random) {
      return numbers_for_network(shape, low, *range, random);
    };
    return ScaledNetwork(seed, {.dtype = range->dtype, .has_variables = false, .constant = constant}).make(layers);
  }
  // Infinity and NaN reach most results of a network, so that few inputs have them.
  NDArray input(const Shape& shape) const {
    kit::Random random(seed);
    const NDArray x = numbers_for_network(shape, -1, *range, random);
    while (random.chance(0.3f)) {
      const int64_t at = random.integer(0, x.num_elements() - 1);
      set_element(x.tensor(), at, random.chance(0.5f) ? INFINITY : NAN);
    }
    return x;
  }
};

// Returns how many units of roundoff the ops of a network may differ by, of the sum of its terms' magnitudes. Products
// and means of the 16-bit dtypes add up in float32. Twice as many, for the constants of the new program are rounded.
double units_of_network(const IRModule& module, const FloatRange& range) {
  const double sum_unit = std::min(1.0, kFloatRanges[2].rounding / range.rounding);
  double units = 0;
  relay::post_order(main_of(module).body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    if (call == nullptr) return;
    const auto* weights = has_weights(*call) ? call->args[1].as<ConstantNode>() : nullptr;
    const double terms = weights != nullptr ? static_cast<double>(weights->data.num_elements() / kScaledChannels) : 9;
    units += 1 + terms * sum_unit;
  });
  return 2 * units;
}

struct Extremes {
  bool has_infinite = false;      // a constant is infinite or NaN
  bool has_large_addend = false;  // a constant that is added reaches the limit
};
Extremes extremes_of(const IRModule& module, double limit) {
  Extremes extremes;
  relay::post_order(main_of(module).body, [&](const Expr& e) {
    const auto* call = e.as<CallNode>();
    if (call == nullptr) return;
    for (const Expr& arg : call->args) {
      const auto* constant = arg.as<ConstantNode>();
      const double largest = constant == nullptr ? 0 : largest_of(constant->data);
      extremes.has_infinite |= !std::isfinite(largest);
      extremes.has_large_addend |= largest >= limit && is_call_of(*call, {"add", "subtract", "nn.bias_add"});
    }
  });
  return extremes;
}

struct NetworkCounts {
  int moved = 0, compared = 0;  // scales that moved, and finite results of networks where some did
};

std::optional<std::string> check_network(const char* pass, const AnyNetwork& network, NetworkCounts& counts) {
  const FloatRange& range = *network.range;
  const IRModule before = network.module(), after = run_pass(pass, before);
  const int moved = products_of_values(before) - products_of_values(after);
  if (moved == 0) return std::nullopt;
  counts.moved += moved;
  const double limit = range.largest / 256;  // pools and sums of a new program exceed those of the old one by less
  const Extremes extremes = extremes_of(after, limit);
  if (extremes.has_infinite) return "a constant overflowed\n" + relay::print_module(after);
  if (extremes.has_large_addend) return std::nullopt;  // the page says so: a bias divided by a small scale
  const NDArray x = network.input(main_of(before).params[0]->checked_type().as<TensorTypeNode>()->concrete_shape());
  const auto magnitudes_in = [&](const IRModule& module, CompanionForm form) {
    form.has_magnitudes = true;
    return companion_results(module, x, form);
  };
  const double tiny = 4 * range.smallest();  // lost by a sum of two products with biases, all of them subnormal
  const auto exact = companion_results(before, x, {}), terms = magnitudes_in(before, {.limit = limit}),
             terms_and_tiny = magnitudes_in(before, {.each_adds = tiny}), new_terms = magnitudes_in(after, {}),
             new_terms_and_tiny = magnitudes_in(after, {.each_mean_adds = tiny, .weights_add = 0x1p-48});
  const auto was = numbers_of_results(before, {x}), is = numbers_of_results(after, {x});
  const double units = units_of_network(before, range);
  for (size_t i = 0; i < exact.size(); ++i) {
    if (!std::isfinite(terms[i])) continue;  // near the largest number either program may overflow
    ++counts.compared;
    const double own = units * range.rounding * terms[i] + (terms_and_tiny[i] - terms[i]);
    const double allowed = own + (new_terms_and_tiny[i] - new_terms[i]);
    if (!(std::abs(was[i] - exact[i]) <= own))
      return fmt::format("result {}: the bound is wrong, {} is {}", i, exact[i], was[i]);
    if (std::abs(is[i] - exact[i]) <= allowed) continue;
    return fmt::format("result {}: {} became {}, exactly {}, of terms of {}\n{}", i, was[i], is[i], exact[i], terms[i],
                       relay::print_module(after));
  }
  return std::nullopt;
}

class ScaleNumerics : public testing::TestWithParam<const char*> {};

TEST_P(ScaleNumerics, AnyNetworkIsWithinTheStatedError) {
  ops::register_all_ops();
  NetworkCounts counts;
  kit::Property<AnyNetwork> property;
  property.runs_ci = 200;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    return AnyNetwork{random.next(), static_cast<int>(random.integer(1, 2)), &kFloatRanges[random.index(3)]};
  };
  property.shrink = [](const AnyNetwork& network) {
    return network.layers > 1 ? std::vector<AnyNetwork>{{network.seed, network.layers - 1, network.range}}
                              : std::vector<AnyNetwork>{};
  };
  property.show = [](const AnyNetwork& network) { return relay::print_module(network.module()); };
  property.check = [&](const AnyNetwork& network) { return check_network(GetParam(), network, counts); };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  const int runs = kit::detail::runs_of(property);
  EXPECT_GT(counts.moved, runs / 2) << "few scales were moved";
  EXPECT_GT(counts.compared, runs * 20) << "few results were compared";
}

INSTANTIATE_TEST_SUITE_P(RandomPrograms, ScaleNumerics,
                         testing::Values("FoldScaleAxis", "BackwardFoldScaleAxis", "ForwardFoldScaleAxis"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace headrace::passes
