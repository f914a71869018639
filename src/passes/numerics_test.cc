// The numeric policy (docs/numerics.md): how far each level may change floating-point results. Programs with constants
// and data of any magnitude and sign, in every float dtype, against the exact value.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "kit/files.h"
#include "kit/property.h"
#include "object/structural_equal.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/numerics_testing.h"
#include "passes/tests/random_programs.h"

namespace headrace::passes {
namespace {

IRModule module_of(const Array<relay::Var>& params, const Expr& body) {
  const IRModule module = make_module();
  module->add_function(make_global_var("main"), relay::make_function(params, body));
  return relay::infer_type(module);
}

pass::PassContext context_of(int32_t level) {
  pass::PassContext context = typed_context();
  context.opt_level = level;
  return context;
}

// ---- constants of one value, and along an axis

constexpr int64_t kSide = 4;  // programs of two constants read kSide x kSide numbers

// Draws the values of one constant. Most vectors are of one sign, since sums with other ones are never joined.
NDArray drawn_operand(const Shape& shape, const FloatRange& range, kit::Random& random) {
  if (shape.empty()) return drawn_tensor(shape, range, random, false);
  const NDArray data = drawn_constant(shape, range, random);
  if (random.chance(0.3f)) return data;
  const double sign = random.chance(0.5f) ? 1 : -1;
  for (int64_t i = 0; i < data.num_elements(); ++i)
    set_element(data.tensor(), i, std::copysign(element_as_double(data.tensor(), i), sign));
  return data;
}

// Returns the element that a scalar, a row or a column has for element `i` of a matrix with rows of kSide.
double element_beside(const NDArray& operand, int64_t i) {
  const int64_t at = operand.num_elements() == 1 ? 0 : operand.shape().size() == 2 ? i / kSide : i % kSide;
  return element_as_double(operand.tensor(), at);
}

bool all_are(const NDArray& data, double value) {
  const std::vector<double> values = numbers_in(data);
  return std::all_of(values.begin(), values.end(), [&](double element) { return element == value; });
}

bool any_has_sign(const NDArray& data, double sign) {
  const std::vector<double> values = numbers_in(data);
  return std::any_of(values.begin(), values.end(), [&](double element) { return element * sign > 0; });
}

// Returns the data with each element replaced.
template <typename Change>
NDArray changed(const NDArray& data, Change&& change) {
  const NDArray result = NDArray::empty(data.shape(), data.dtype());
  for (int64_t i = 0; i < data.num_elements(); ++i)
    set_element(result.tensor(), i, change(element_as_double(data.tensor(), i)));
  return result;
}

// ---- two constants, one after the other

constexpr std::string_view kBias = "nn.bias_add", kBiasAdd = "nn.bias_add, add", kMulMul = "multiply, multiply";
constexpr std::string_view kForms[] = {"add, add", "subtract, subtract", "subtract, add", "add, subtract", kBiasAdd,
                                       kMulMul};

struct TwoConstants {
  uint64_t seed = 0;
  const FloatRange* range = nullptr;
  std::string_view form;
  NDArray c{}, d{};          // each a scalar, a row [kSide], or a column [kSide, 1]; a bias is no scalar
  bool comes_first = false;  // d is the first operand of its op, where that commutes

  std::string first() const { return std::string(form.substr(0, form.find(','))); }
  std::string second() const { return std::string(form.substr(form.find(' ') + 1)); }
  // The signs with which the two are added.
  double sign_of_c() const { return first() == "subtract" ? -1 : 1; }
  double sign_of_d() const { return second() == "subtract" ? -1 : 1; }
  bool are_opposed() const {
    return (any_has_sign(c, sign_of_c()) && any_has_sign(d, -sign_of_d())) ||
           (any_has_sign(c, -sign_of_c()) && any_has_sign(d, sign_of_d()));
  }
  // Returns whether a law of one constant removes an op.
  bool is_trivial() const {
    const auto one_is = [&](double value) { return all_are(c, value) || all_are(d, value); };
    return one_is(0) || one_is(1) || one_is(-1);
  }
  Expr inner(const Expr& x) const {
    if (first() != kBias) return ops::binary(first(), x, relay::make_constant(c));
    return ops::bias_add(x, relay::make_constant(c.reshaped({kSide})), c.shape().size() == 2 ? 0 : 1);
  }
  IRModule module() const {
    ops::register_all_ops();
    const relay::Var x = relay::make_var("x", make_tensor_type({kSide, kSide}, range->dtype));
    const Expr last = relay::make_constant(d);
    const bool swaps = comes_first && second() != "subtract";
    return module_of({x}, swaps ? ops::binary(second(), last, inner(x)) : ops::binary(second(), inner(x), last));
  }
};

TwoConstants draw_constants(kit::Random& random) {
  const Shape shapes[] = {{kSide}, {kSide, 1}, {}};
  TwoConstants drawn{.seed = random.next(),
                     .range = &kFloatRanges[random.index(std::size(kFloatRanges))],
                     .form = kForms[random.index(std::size(kForms))]};
  const size_t kind = random.index(drawn.first() == kBias ? 2 : 3);
  drawn.c = drawn_operand(shapes[kind], *drawn.range, random);
  const float relation = random.uniform();
  if (relation < 0.25f) {
    drawn.d = drawn.c;
  } else if (relation < 0.4f) {
    drawn.d = changed(drawn.c, [](double value) { return -value; });
  } else if (relation < 0.5f) {
    drawn.d = changed(drawn.c, [](double value) { return value == 0 ? 0 : 1 / value; });
  } else {
    drawn.d = drawn_operand(shapes[random.chance(0.5f) ? kind : random.index(3)], *drawn.range, random);
  }
  drawn.comes_first = random.chance(0.5f);
  return drawn;
}

// A sum differs by a few roundings of its largest term. A product differs by a few roundings, or by the digits that a
// first product out of the dtype's range lost, where the data is nearer than 2^32 to the end of that range.
bool is_near(const TwoConstants& p, int64_t i, double x, double want, double got) {
  if (are_same_bits(want, got) || want == got) return true;
  const FloatRange& r = *p.range;
  const double c = element_beside(p.c, i), d = element_beside(p.d, i);
  if (p.form != kMulMul) {
    const double scale = std::abs(x) + std::abs(c) + std::abs(d);
    if (scale >= r.largest / 4) return true;  // at the end of the range either may overflow
    return std::abs(want - got) <= 4 * r.rounding * scale + 2 * r.smallest();
  }
  const bool at_the_end = std::abs(x) >= r.largest * 0x1p-33 || std::abs(x) <= r.smallest_normal * 0x1p33;
  const double exact = d == 0 || c == 0 ? 0 : x * c * d;
  const bool one_way = (std::abs(c) <= 1 && std::abs(d) <= 1) || (std::abs(c) >= 1 && std::abs(d) >= 1);
  if (!one_way && at_the_end && r.dtype != DataType::float_(16)) return true;
  if (std::abs(exact) >= r.largest / 2) return true;
  // A first product that is subnormal is off by half of the smallest number, which the second factor enlarges.
  return std::abs(want - got) <= 4 * r.rounding * std::abs(want) + 2 * r.smallest() * std::max(1.0, std::abs(d));
}

using JoinedForms = std::map<std::pair<std::string_view, bool>, int>;  // by form, and whether one is a vector

std::optional<std::string> check_constants(const TwoConstants& p, JoinedForms& joined) {
  const auto calls = [&](const IRModule& module) {
    return count_calls(module, p.second()) + (p.second() == p.first() ? 0 : count_calls(module, p.first()));
  };
  const IRModule before = p.module(), after = run_pass("SimplifyExpr", before, context_of(3));
  if (not_equal(before, run_pass("SimplifyExpr", before, context_of(2))) && !p.is_trivial())
    return "level 2 rewrites it";
  const bool joins = calls(after) < calls(before);
  if (p.form != kMulMul && joins && p.are_opposed() && !p.is_trivial())
    return fmt::format("constants of opposite signs were added\n{}", relay::print_module(after));
  const bool has_vector = p.c.num_elements() + p.d.num_elements() > 2;
  joined[{p.form, has_vector}] += joins && !p.is_trivial() ? 1 : 0;
  kit::Random random(p.seed);
  const NDArray x = drawn_tensor({kSide, kSide}, *p.range, random, true);
  const std::vector<double> want = numbers_of_results(before, {x}), got = numbers_of_results(after, {x});
  for (size_t i = 0; i < want.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double data = element_as_double(x.tensor(), at);
    if (!is_near(p, at, data, want[i], got[i]))
      return fmt::format("x = {}: {} became {}\n{}", data, want[i], got[i], relay::print_module(after));
  }
  return std::nullopt;
}

TEST(Numerics, TwoConstantsAreJoinedWithinTheStatedError) {
  JoinedForms joined;
  kit::Property<TwoConstants> property;
  property.runs_ci = 3000;
  property.runs_full = 300000;
  property.generate = draw_constants;
  property.show = [](const TwoConstants& p) {
    return fmt::format("of {}:\n{}", p.range->dtype, relay::print_module(p.module()));
  };
  property.check = [&](const TwoConstants& p) { return check_constants(p, joined); };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  for (const std::string_view form : kForms) {
    for (const bool has_vector : {false, true}) {
      if (form == kBiasAdd && !has_vector) continue;  // a bias is a vector
      EXPECT_GT((joined[{form, has_vector}]), kit::options().size == kit::TestSize::kFew ? 0 : 10)
          << form << (has_vector ? " with a vector" : " of scalars") << ": few constants were joined";
    }
  }
}

// ---- powers, roots, and products of sums

// A law that rounds differently: a program of %x and constants b, c and d, and the units of roundoff that the page
// allows, of the result or of the sum of the magnitudes of two products.
struct RoundingLaw {
  std::string_view body;
  double units;
  bool of_products = false;
};
constexpr RoundingLaw kRoundingLaws[] = {{"power(%x, {two})", 2},
                                         {"power(%x, {three})", 4},
                                         {"power(%x, {minus})", 2},
                                         {"divide({one}, sqrt(%x))", 2},
                                         {"divide({c}, sqrt(%x))", 4},
                                         {"multiply(add(%x, {c}), {d})", 4, true},
                                         {"multiply(add(multiply(%x, {b}), {c}), {d})", 6, true}};

struct DrawnRounding {
  const RoundingLaw* law = nullptr;
  const FloatRange* range = nullptr;
  NDArray b{}, c{}, d{};  // each a scalar or a row [kSide]
  uint64_t seed = 0;

  bool has_b() const { return law->body.find("{b}") != std::string_view::npos; }
  IRModule module() const {
    const auto literal = [&](const NDArray& data) {
      return fmt::format("const(Tensor[({}), {}], [{}])", fmt::join(data.shape(), ", "), range->dtype,
                         fmt::join(numbers_in(data), ", "));
    };
    const auto number = [&](double value) { return literal(relay::make_scalar(value, range->dtype)->data); };
    return read(
        fmt::format("def @main(%x: Tensor[(8, {}), {}]) {{{{ {} }}}}", kSide, range->dtype,
                    fmt::format(fmt::runtime(law->body), fmt::arg("two", number(2)), fmt::arg("three", number(3)),
                                fmt::arg("minus", number(-1)), fmt::arg("one", number(1)), fmt::arg("b", literal(b)),
                                fmt::arg("c", literal(c)), fmt::arg("d", literal(d)))));
  }
};

// The most that the page allows for an element; nothing where a number between overflows or loses digits to underflow,
// or is near that.
std::optional<double> allowed_rounding(const DrawnRounding& p, int64_t i, double x, double want) {
  const double u = p.range->rounding, tiny = 2 * p.range->smallest();
  if (!p.law->of_products) return p.law->units * u * std::abs(want) + tiny;
  const double b = element_beside(p.b, i), c = element_beside(p.c, i), d = element_beside(p.d, i);
  const double data = p.has_b() ? x * b : x;
  for (const double between : {data, data * d, c * d, b * d, (data + c) * d}) {
    const double size = std::abs(between);
    if (size >= p.range->largest / 16 || (size != 0 && size <= 16 * p.range->smallest_normal)) return std::nullopt;
  }
  return p.law->units * u * (std::abs(data * d) + std::abs(c * d)) + tiny;
}

std::optional<std::string> check_rounding(const DrawnRounding& p, int& rewritten) {
  const IRModule before = p.module(), after = run_pass("SimplifyExpr", before);  // by name: all laws
  rewritten += not_equal(before, after) ? 1 : 0;
  kit::Random random(p.seed);
  const NDArray x = drawn_tensor({8, kSide}, *p.range, random, true);
  const std::vector<double> want = numbers_of_results(before, {x}), got = numbers_of_results(after, {x});
  for (size_t i = 0; i < want.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double data = element_as_double(x.tensor(), at);
    if (are_same_bits(want[i], got[i]) || want[i] == got[i]) continue;
    const std::optional<double> allowed = allowed_rounding(p, at, data, want[i]);
    if (allowed && !(std::abs(want[i] - got[i]) <= *allowed))
      return fmt::format("x = {}: {} became {}\n{}", data, want[i], got[i], relay::print_module(after));
  }
  return std::nullopt;
}

TEST(Numerics, LawsRoundWithinTheStatedError) {
  int rewritten = 0;
  kit::Property<DrawnRounding> property;
  property.runs_ci = 1000;
  property.runs_full = 100000;
  property.generate = [](kit::Random& random) {
    DrawnRounding drawn{.law = &kRoundingLaws[random.index(std::size(kRoundingLaws))],
                        .range = &kFloatRanges[random.index(std::size(kFloatRanges))]};
    for (NDArray* constant : {&drawn.b, &drawn.c, &drawn.d})
      *constant = drawn_constant(random.chance(0.5f) ? Shape{} : Shape{kSide}, *drawn.range, random);
    drawn.seed = random.next();
    return drawn;
  };
  property.show = [](const DrawnRounding& p) { return relay::print_module(p.module()); };
  property.check = [&](const DrawnRounding& p) { return check_rounding(p, rewritten); };
  EXPECT_TRUE(kit::holds(property));
  if (!kit::options().seed && kit::options().size != kit::TestSize::kList) {
    EXPECT_GT(rewritten, kit::options().size == kit::TestSize::kFew ? 60 : 500) << "few programs were rewritten";
  }
}

// ---- what programs do on purpose

// Adding 1.5 * 2^23 and taking it away rounds a float32 to an integer, ties to even.
constexpr const char* kMagic[] = {
    "subtract(add(%x, 12582912f), 12582912f)",
    "add(add(%x, 12582912f), -12582912f)",
    "add(subtract(%x, 12582912f), 12582912f)",
    "subtract(12582912f, subtract(12582912f, %x))",
    "add(nn.bias_add(%x, const(Tensor[(4), float32], [12582912, 12582912, 12582912, 12582912])), -12582912f)",
    "multiply(subtract(add(divide(%x, 0.5f), 12582912f), 12582912f), 0.5f)",
};

TEST(Numerics, RoundingByALargeConstantStaysAtEveryLevel) {
  const NDArray x = NDArray::empty({1, 4}, DataType::float_(32));
  const float values[] = {0.3f, 2.5f, -7.75f, 1000.49f};
  std::copy(std::begin(values), std::end(values), x.data<float>());
  for (const char* body : kMagic) {
    const IRModule before = read(fmt::format("def @main(%x: Tensor[(1, 4), float32]) {{ {} }}", body));
    const std::vector<double> want = numbers_of_results(before, {x});
    EXPECT_NE(want[0], 0.3f) << body;
    for (const int32_t level : {0, 1, 2, 3, 4}) {
      const IRModule after = pass::run_passes(canonical(), before, context_of(level));
      EXPECT_EQ(numbers_of_results(after, {x}), want) << body << " at level " << level << "\n"
                                                      << relay::print_module(after);
    }
  }
}

TEST(Numerics, ScalesDoNotMovePastARoundingByALargeConstant) {
  const std::string weights = "const(Tensor[(1, 4), float32], [1, 1, 1, 1])";
  const NDArray x = NDArray::empty({1, 4}, DataType::float_(32));
  const float values[] = {0.3f, 2.5f, -7.75f, 100.49f};
  std::copy(std::begin(values), std::end(values), x.data<float>());
  for (const std::string& body :
       {"nn.dense(subtract(add(multiply(%x, 10f), 12582912f), 12582912f), " + weights + ")",
        "multiply(subtract(add(nn.dense(%x, " + weights + "), 12582912f), 12582912f), 0.1f)",
        "nn.dense(subtract(12582912f, subtract(12582912f, multiply(%x, 10f))), " + weights + ")",
        "multiply(subtract(12582912f, subtract(12582912f, nn.dense(%x, " + weights + "))), 0.1f)"}) {
    const IRModule before = read(fmt::format("def @main(%x: Tensor[(1, 4), float32]) {{ {} }}", body));
    const IRModule after = pass::run_passes(canonical(), before, context_of(3));
    EXPECT_EQ(numbers_of_results(after, {x}), numbers_of_results(before, {x})) << body << "\n"
                                                                               << relay::print_module(after);
  }
}

// ---- scales that move into weights

constexpr int64_t kTerms = 4, kOutputs = 3;
constexpr double kSlope = 0.25;

// The op between a product and its scale, beside a bias.
enum class Rectifier : uint8_t { none, relu, leaky, prelu };

// A dense product, or a convolution with windows of one element, with a scale before or after it, and perhaps a bias
// and a rectifier between.
struct ScaledProduct {
  uint64_t seed = 0;
  const FloatRange* range = nullptr;
  bool is_forward = false, is_conv = false, has_bias = false;
  Rectifier rectifier = Rectifier::none;

  struct Drawn {
    NDArray x, weights, scale, bias;  // x [2, kTerms], or [1, kTerms, 1, 2]
  };
  Drawn draw_all() const {
    kit::Random random(seed);
    const int64_t channels = is_forward ? kTerms : kOutputs;
    const Shape data = is_conv ? Shape{1, kTerms, 1, 2} : Shape{2, kTerms};
    Drawn drawn{drawn_tensor(data, *range, random, true), drawn_constant({kOutputs, kTerms}, *range, random),
                drawn_constant({channels}, *range, random), drawn_constant({channels}, *range, random)};
    for (int64_t i = 0; rectifier != Rectifier::none && i < channels; ++i)
      set_element(drawn.scale.tensor(), i, std::abs(element_as_double(drawn.scale.tensor(), i)));
    return drawn;
  }
  Expr rectified(const Expr& value) const {
    if (rectifier == Rectifier::relu) return ops::relu(value);
    if (rectifier == Rectifier::leaky) return ops::leaky_relu(value, kSlope);
    if (rectifier == Rectifier::none) return value;
    const NDArray slopes = NDArray::empty({is_forward ? kTerms : kOutputs}, range->dtype);
    for (int64_t i = 0; i < slopes.num_elements(); ++i) set_element(slopes.tensor(), i, kSlope);
    return ops::prelu(value, relay::make_constant(slopes));
  }
  IRModule module(const Drawn& drawn) const {
    ops::register_all_ops();
    const relay::Var x = relay::make_var("x", make_tensor_type(drawn.x.shape(), range->dtype));
    const auto vector = [&](const NDArray& data) {
      return relay::make_constant(is_conv ? data.reshaped({data.num_elements(), 1, 1}) : data);
    };
    const auto product = [&](const Expr& data) {
      const Shape windows{kOutputs, kTerms, 1, 1};
      return is_conv ? ops::conv2d(data, relay::make_constant(drawn.weights.reshaped(windows)), {})
                     : ops::dense(data, relay::make_constant(drawn.weights));
    };
    const auto between = [&](Expr value) {
      if (has_bias) value = ops::add(value, vector(drawn.bias));
      return rectified(value);
    };
    if (is_forward) return module_of({x}, product(between(ops::multiply(x, vector(drawn.scale)))));
    return module_of({x}, ops::multiply(between(product(x)), vector(drawn.scale)));
  }
  // Where element `k` of one of the two rows lies in the data, or in the results, of `count` elements each.
  int64_t place(int64_t row, int64_t k, int64_t count) const { return is_conv ? k * 2 + row : row * count + k; }
};

// A result in exact arithmetic, as far as long double is, and the sum of the magnitudes of its terms.
struct Exact {
  long double value = 0, magnitude = 0;
};

Exact exact_result(const ScaledProduct& p, const ScaledProduct::Drawn& drawn, int64_t row, int64_t out) {
  const auto at = [](const NDArray& data, int64_t i) {
    return static_cast<long double>(element_as_double(data.tensor(), i));
  };
  const auto between = [&](Exact inner, int64_t channel) {
    const long double bias = p.has_bias ? at(drawn.bias, channel) : 0;
    inner = {inner.value + bias, inner.magnitude + std::abs(bias)};
    const long double slope = p.rectifier == Rectifier::none || inner.value >= 0 ? 1
                              : p.rectifier == Rectifier::relu                   ? 0
                                                                                 : static_cast<long double>(kSlope);
    inner.value *= slope;
    return inner;
  };
  const auto times = [](Exact inner, long double factor) {
    return Exact{inner.value * factor, inner.magnitude * std::abs(factor)};
  };
  Exact sum;
  for (int64_t k = 0; k < kTerms; ++k) {
    const long double x = at(drawn.x, p.place(row, k, kTerms));
    Exact term{x, std::abs(x)};
    if (p.is_forward) term = between(times(term, at(drawn.scale, k)), k);
    term = times(term, at(drawn.weights, out * kTerms + k));
    sum = {sum.value + term.value, sum.magnitude + term.magnitude};
  }
  return p.is_forward ? sum : times(between(sum, out), at(drawn.scale, out));
}

// The sum of the magnitudes that the weights of a folded product read, with biases that were divided by the scale.
long double data_of_row(const ScaledProduct& p, const ScaledProduct::Drawn& drawn, int64_t row) {
  const auto at = [](const NDArray& data, int64_t i) {
    return static_cast<long double>(std::abs(element_as_double(data.tensor(), i)));
  };
  long double data = 0;
  for (int64_t k = 0; k < kTerms; ++k) {
    data += at(drawn.x, p.place(row, k, kTerms));
    if (p.is_forward && p.has_bias && at(drawn.scale, k) != 0) data += at(drawn.bias, k) / at(drawn.scale, k);
  }
  return data;
}

// The largest weight after a fold. Those 2^48 times smaller may lose their digits to underflow (is_good_weight).
long double largest_weight(const ScaledProduct& p, const ScaledProduct::Drawn& drawn) {
  long double largest = 0;
  for (int64_t i = 0; i < kOutputs * kTerms; ++i) {
    const double weight = element_as_double(drawn.weights.tensor(), i);
    const double scale = element_as_double(drawn.scale.tensor(), p.is_forward ? i % kTerms : i / kTerms);
    largest = std::max(largest, std::abs(static_cast<long double>(weight) * scale));
  }
  return largest;
}

// After a fold each result is that of exact arithmetic up to a few roundings of its terms, or what it was before.
std::optional<std::string> check_scaled(const ScaledProduct& p, int& moved) {
  const ScaledProduct::Drawn drawn = p.draw_all();
  const IRModule before = p.module(drawn), after = pass::run_passes(canonical(), before, context_of(3));
  moved += count_calls(after, "multiply") < count_calls(before, "multiply") ? 1 : 0;
  const std::vector<double> want = numbers_of_results(before, {drawn.x}), got = numbers_of_results(after, {drawn.x});
  for (int64_t i = 0; i < 2 * kOutputs; ++i) {
    const auto at = static_cast<size_t>(p.place(i / kOutputs, i % kOutputs, kOutputs));
    const double was = want[at], is = got[at];
    const Exact exact = exact_result(p, drawn, i / kOutputs, i % kOutputs);
    const long double data = data_of_row(p, drawn, i / kOutputs);
    // From infinite data, and near the largest number, a term that disappears or is new may overflow.
    if (was == is || are_same_bits(was, is) || !(std::max(exact.magnitude, data) < p.range->largest / 16)) continue;
    const long double weight = largest_weight(p, drawn);
    const bool slopes = p.is_forward && (p.rectifier == Rectifier::leaky || p.rectifier == Rectifier::prelu);
    const long double allowed = 16 * p.range->rounding * exact.magnitude + 16 * p.range->smallest() +
                                0x1p-48L * weight * data +
                                (slopes ? kTerms * p.range->smallest() * weight : 0);  // small data times a slope
    if (std::abs(is - exact.value) <= allowed || std::abs(was - is) <= static_cast<double>(allowed)) continue;
    return fmt::format("result {}: {} became {}, exactly {} of {}\n{}", i, was, is, static_cast<double>(exact.value),
                       static_cast<double>(exact.magnitude), relay::print_module(after));
  }
  return std::nullopt;
}

TEST(Numerics, ScalesMoveIntoWeightsWithinTheStatedError) {
  int moved = 0;
  kit::Property<ScaledProduct> property;
  property.runs_ci = 1000;
  property.runs_full = 100000;
  property.generate = [](kit::Random& random) {
    return ScaledProduct{.seed = random.next(),
                         .range = &kFloatRanges[random.index(std::size(kFloatRanges))],
                         .is_forward = random.chance(0.5f),
                         .is_conv = random.chance(0.5f),
                         .has_bias = random.chance(0.5f),
                         .rectifier = static_cast<Rectifier>(random.index(4))};
  };
  property.show = [](const ScaledProduct& p) { return relay::print_module(p.module(p.draw_all())); };
  property.check = [&](const ScaledProduct& p) { return check_scaled(p, moved); };
  EXPECT_TRUE(kit::holds(property));
  if (!kit::options().seed) {
    EXPECT_GT(moved, kit::options().size == kit::TestSize::kFew ? 10 : 50) << "few scales were moved";
  }
}

// ---- levels and passes

// Below level 3 the lists change no bit but the sign of a zero; batch norm, which SimplifyInference unpacks, is left
// out.
TEST(Numerics, BelowLevel3ResultsAreEqual) {
  EXPECT_TRUE(kit::holds(property_of_programs([](const Program& p) -> std::optional<std::string> {
    const IRModule before = p.module();
    for (const int32_t level : {0, 1, 2}) {
      pass::PassContext context = context_of(level);
      context.disabled_pass = {"SimplifyInference"};
      const IRModule after = pass::run_passes(native({}), pass::run_passes(canonical(), before, context), context);
      if (auto failure = results_differ(before, after, p.seed, 0))
        return fmt::format("level {}: {}\nafter:\n{}", level, *failure, relay::print_module(after));
    }
    return std::nullopt;
  })));
}

// The names in the first column of the page's table under "By pass".
std::set<std::string> passes_of_the_page() {
  std::istringstream page(kit::read_file(HEADRACE_SOURCE_DIR "/docs/numerics.md"));
  std::set<std::string> names;
  bool is_there = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) is_there = line == "## By pass";
    if (is_there && line.starts_with("| `")) names.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

TEST(Numerics, ThePageListsThePassesThatRound) {
  std::set<std::string> rounding;
  for (const auto& list : {canonical(), by_name(), native({})}) {
    for (const pass::Pass& pass : list) {
      if (pass.info.rounds) rounding.insert(pass.info.name);
    }
  }
  EXPECT_EQ(passes_of_the_page(), rounding);
}

}  // namespace
}  // namespace headrace::passes
