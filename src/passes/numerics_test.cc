// The numeric policy (docs/numerics.md): how far each level may change floating-point results. Programs with constants
// and data of any magnitude and sign, in every float dtype, against the exact value.
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "kit/property.h"
#include "kit/files.h"
#include "object/structural_equal.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/tests/random_programs.h"

namespace headrace::passes {
namespace {

// The numbers of a float dtype: half a unit in the last place of 1, the smallest of full precision, the largest.
struct FloatRange {
  DataType dtype;
  double rounding, smallest_normal, largest;
  int most_exponent;  // drawn magnitudes go from 2^-n to a little beyond 2^n

  double smallest() const { return smallest_normal * 2 * rounding; }
};

const FloatRange kRanges[] = {{DataType::float_(16), 0x1p-11, 0x1p-14, 65504, 15},
                              {DataType::bfloat16(), 0x1p-8, 0x1p-126, 0x1.fep127, 127},
                              {DataType::float_(32), 0x1p-24, 0x1p-126, 0x1.fffffep127, 127},
                              {DataType::float_(64), 0x1p-53, 0x1p-1022, 0x1.fffffffffffffp1023, 1023}};

// A number of that dtype, as a double: of a magnitude near 1, anywhere in the range, or past its ends.
double draw(kit::Random& random, const FloatRange& range, bool with_specials) {
  static constexpr double kSpecials[] = {0.0, 1.0, NAN, INFINITY};
  double value = 1 + random.uniform();
  const float kind = random.uniform();
  if (kind < 0.15f) {
    value = with_specials ? kSpecials[random.index(std::size(kSpecials))] : 0.0;
  } else if (kind < 0.5f) {
    value = std::ldexp(value, static_cast<int>(random.integer(-4, 4)));
  } else {
    value = std::ldexp(value, static_cast<int>(random.integer(-range.most_exponent - 8, range.most_exponent)));
  }
  const relay::Constant rounded = relay::make_scalar(random.chance(0.5f) ? value : -value, range.dtype);
  return element_as_double(rounded->data.tensor(), 0);
}

NDArray tensor_of(const Shape& shape, const FloatRange& range, kit::Random& random, bool with_specials) {
  const NDArray data = NDArray::empty(shape, range.dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i) set_element(data.tensor(), i, draw(random, range, with_specials));
  return data;
}

// Constants are seldom far from 1, since most that are would not be folded.
NDArray constant_of(const Shape& shape, FloatRange range, kit::Random& random) {
  if (random.chance(0.8f)) range.most_exponent = 3;
  return tensor_of(shape, range, random, false);
}

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

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::vector<double> results_of(const IRModule& module, const std::vector<NDArray>& inputs) {
  std::vector<double> values;
  for (const NDArray& result : interp::run_main(module, inputs)) {
    for (int64_t i = 0; i < result.num_elements(); ++i) values.push_back(element_as_double(result.tensor(), i));
  }
  return values;
}

// ---- two constants, one after the other

constexpr std::string_view kAddAdd = "add, add", kSubSub = "subtract, subtract", kSubAdd = "subtract, add",
                           kAddSub = "add, subtract", kMulMul = "multiply, multiply";
constexpr std::string_view kForms[] = {kAddAdd, kSubSub, kSubAdd, kAddSub, kMulMul};

struct TwoConstants {
  uint64_t seed = 0;
  const FloatRange* range = nullptr;
  std::string_view form;
  double c = 0, d = 0;

  std::string first() const { return std::string(form.substr(0, form.find(','))); }
  std::string second() const { return std::string(form.substr(form.find(' ') + 1)); }
  // The signs with which the two are added.
  double signed_c() const { return first() == "subtract" ? -c : c; }
  double signed_d() const { return second() == "subtract" ? -d : d; }
  IRModule module() const {
    ops::register_all_ops();
    const relay::Var x = relay::make_var("x", make_tensor_type({16}, range->dtype));
    const Expr inner = ops::binary(first(), x, relay::make_scalar(c, range->dtype));
    return module_of({x}, ops::binary(second(), inner, relay::make_scalar(d, range->dtype)));
  }
};

TwoConstants draw_constants(kit::Random& random) {
  TwoConstants drawn{random.next(), &kRanges[random.index(std::size(kRanges))],
                     kForms[random.index(std::size(kForms))]};
  drawn.c = draw(random, *drawn.range, false);
  drawn.d = random.chance(0.25f) ? drawn.c : random.chance(0.25f) ? -drawn.c : draw(random, *drawn.range, false);
  if (random.chance(0.1f) && drawn.c != 0) drawn.d = 1 / drawn.c;
  const relay::Constant d = relay::make_scalar(drawn.d, drawn.range->dtype);
  drawn.d = element_as_double(d->data.tensor(), 0);
  return drawn;
}

// A sum differs by a few roundings of its largest term. A product differs by a few roundings, or by what a first
// product out of the dtype's range lost, where the data is nearer than 2^32 to the end of that range.
bool is_near(const TwoConstants& p, double x, double want, double got) {
  if (same_bits(want, got) || want == got) return true;
  const FloatRange& r = *p.range;
  if (p.form != kMulMul) {
    const double scale = std::abs(x) + std::abs(p.c) + std::abs(p.d);
    if (scale >= r.largest / 4) return true;  // at the end of the range either may overflow
    return std::abs(want - got) <= 4 * r.rounding * scale + 2 * r.smallest();
  }
  const double first = std::abs(x * p.c);
  const bool at_the_end = std::abs(x) >= r.largest * 0x1p-33 || std::abs(x) <= r.smallest_normal * 0x1p33;
  const double exact = p.d == 0 || p.c == 0 ? 0 : x * p.c * p.d;
  const bool one_way = (std::abs(p.c) <= 1 && std::abs(p.d) <= 1) || (std::abs(p.c) >= 1 && std::abs(p.d) >= 1);
  if (!one_way && at_the_end && r.dtype != DataType::float_(16)) return true;
  if (std::abs(exact) >= r.largest / 2 || first >= r.largest / 2) return true;
  // A first product that is subnormal is off by half of the smallest number, which the second factor enlarges.
  return std::abs(want - got) <= 4 * r.rounding * std::abs(want) + 2 * r.smallest() * std::max(1.0, std::abs(p.d));
}

std::optional<std::string> check_constants(const TwoConstants& p, int& joined) {
  const IRModule before = p.module(), after = run_pass("SimplifyExpr", before, context_of(3));
  if (not_equal(before, run_pass("SimplifyExpr", before, context_of(2))) && p.c != 0 && p.d != 0 && p.c != 1 &&
      p.d != 1)
    return "level 2 rewrites it";
  const bool joins = count_calls(after, p.second()) + count_calls(after, p.first()) <
                     count_calls(before, p.second()) + count_calls(before, p.first());
  const bool trivial = p.c == 0 || p.d == 0 || p.c == 1 || p.d == 1 || p.c == -1 || p.d == -1;
  if (p.form != kMulMul && joins && p.signed_c() * p.signed_d() < 0 && !trivial)
    return fmt::format("constants of opposite signs were added\n{}", relay::print_module(after));
  joined += joins && !trivial ? 1 : 0;
  kit::Random random(p.seed);
  const NDArray x = tensor_of({16}, *p.range, random, true);
  const std::vector<double> want = results_of(before, {x}), got = results_of(after, {x});
  for (size_t i = 0; i < want.size(); ++i) {
    const double data = element_as_double(x.tensor(), static_cast<int64_t>(i));
    if (!is_near(p, data, want[i], got[i]))
      return fmt::format("x = {}: {} became {}\n{}", data, want[i], got[i], relay::print_module(after));
  }
  return std::nullopt;
}

TEST(Numerics, TwoConstantsAreJoinedWithinTheStatedError) {
  int joined = 0;
  kit::Property<TwoConstants> property;
  property.runs_ci = 2000;
  property.runs_full = 200000;
  property.generate = draw_constants;
  property.show = [](const TwoConstants& p) {
    return fmt::format("({}) of {}: c = {}, d = {}", p.form, p.range->dtype, p.c, p.d);
  };
  property.check = [&](const TwoConstants& p) { return check_constants(p, joined); };
  EXPECT_TRUE(kit::holds(property));
  if (!kit::options().seed) {
    EXPECT_GT(joined, kit::options().size == kit::TestSize::kFew ? 10 : 100) << "few constants were joined";
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
  double b = 1, c = 1, d = 1;
  uint64_t seed = 0;

  bool has_b() const { return law->body.find("{b}") != std::string_view::npos; }
  IRModule module() const {
    const auto literal = [&](double value) { return fmt::format("const(Tensor[(), {}], [{}])", range->dtype, value); };
    return read(
        fmt::format("def @main(%x: Tensor[(32), {}]) {{{{ {} }}}}", range->dtype,
                    fmt::format(fmt::runtime(law->body), fmt::arg("two", literal(2)), fmt::arg("three", literal(3)),
                                fmt::arg("minus", literal(-1)), fmt::arg("one", literal(1)), fmt::arg("b", literal(b)),
                                fmt::arg("c", literal(c)), fmt::arg("d", literal(d)))));
  }
};

// The most that the page allows for an element; nothing where a number between overflows or loses digits to underflow,
// or is near that.
std::optional<double> allowed_rounding(const DrawnRounding& p, double x, double want) {
  const double u = p.range->rounding, tiny = 2 * p.range->smallest();
  if (!p.law->of_products) return p.law->units * u * std::abs(want) + tiny;
  const double data = p.has_b() ? x * p.b : x;
  for (const double between : {data, data * p.d, p.c * p.d, p.b * p.d, (data + p.c) * p.d}) {
    const double size = std::abs(between);
    if (size >= p.range->largest / 16 || (size != 0 && size <= 16 * p.range->smallest_normal)) return std::nullopt;
  }
  return p.law->units * u * (std::abs(data * p.d) + std::abs(p.c * p.d)) + tiny;
}

std::optional<std::string> check_rounding(const DrawnRounding& p, int& rewritten) {
  const IRModule before = p.module(), after = run_pass("SimplifyExpr", before);  // by name: all laws
  rewritten += not_equal(before, after) ? 1 : 0;
  kit::Random random(p.seed);
  const NDArray x = tensor_of({32}, *p.range, random, true);
  const std::vector<double> want = results_of(before, {x}), got = results_of(after, {x});
  for (size_t i = 0; i < want.size(); ++i) {
    const double data = element_as_double(x.tensor(), static_cast<int64_t>(i));
    if (same_bits(want[i], got[i]) || want[i] == got[i]) continue;
    const std::optional<double> allowed = allowed_rounding(p, data, want[i]);
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
                        .range = &kRanges[random.index(std::size(kRanges))]};
    for (double* constant : {&drawn.b, &drawn.c, &drawn.d}) {
      const NDArray value = constant_of({1}, *drawn.range, random);
      *constant = element_as_double(value.tensor(), 0);
    }
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
    const std::vector<double> want = results_of(before, {x});
    EXPECT_NE(want[0], 0.3f) << body;
    for (const int32_t level : {0, 1, 2, 3, 4}) {
      const IRModule after = pass::run_passes(canonical(), before, context_of(level));
      EXPECT_EQ(results_of(after, {x}), want) << body << " at level " << level << "\n" << relay::print_module(after);
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
    EXPECT_EQ(results_of(after, {x}), results_of(before, {x})) << body << "\n" << relay::print_module(after);
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
    Drawn drawn{tensor_of(data, *range, random, true), constant_of({kOutputs, kTerms}, *range, random),
                constant_of({channels}, *range, random), constant_of({channels}, *range, random)};
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
  const std::vector<double> want = results_of(before, {drawn.x}), got = results_of(after, {drawn.x});
  for (int64_t i = 0; i < 2 * kOutputs; ++i) {
    const auto at = static_cast<size_t>(p.place(i / kOutputs, i % kOutputs, kOutputs));
    const double was = want[at], is = got[at];
    const Exact exact = exact_result(p, drawn, i / kOutputs, i % kOutputs);
    const long double data = data_of_row(p, drawn, i / kOutputs);
    // From infinite data, and near the largest number, a term that disappears or is new may overflow.
    if (was == is || same_bits(was, is) || !(std::max(exact.magnitude, data) < p.range->largest / 16)) continue;
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
                         .range = &kRanges[random.index(std::size(kRanges))],
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
