#include <gtest/gtest.h>

#include <cmath>

#include "interp/interp.h"
#include "interp/tir_interp.h"
#include "kit/native_kernels.h"
#include "kit/options.h"
#include "kit/random.h"
#include "lower/compute_rule.h"
#include "lower/lower_function.h"
#include "lower/rules/tests/rule_cases.h"
#include "object/structural_equal.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "tir/parse.h"
#include "tir/post_order.h"
#include "tir/print.h"
#include "tir/verify.h"
#include "tir_passes/lower_math.h"
#include "tir_passes/pipeline.h"

namespace headrace::lower {

namespace {

// More cases than this share the widths of vectors between them, unless all is asked for.
constexpr size_t kFewCases = 45;
// Cases whose loops take longer to interpret (a second, without optimisation) run natively only, unless all is asked
// for.
constexpr int64_t kLongWork = 300'000;

uint64_t seed_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

NDArray fill(const In& in, kit::Random& random) {
  NDArray array = NDArray::empty(in.shape, in.dtype);
  const double specials[] = {std::nan(""), INFINITY, -INFINITY, 0.0, -0.0};
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    if (!in.dtype.is_float() && !in.dtype.is_narrow_float()) {
      set_element_int(array.tensor(), i,
                      random.integer(static_cast<int64_t>(std::ceil(in.low)), static_cast<int64_t>(in.high)));
    } else if (in.has_specials && random.chance(0.25F)) {
      set_element(array.tensor(), i, specials[random.index(5)]);
    } else {
      set_element(array.tensor(), i, in.low + (in.high - in.low) * static_cast<double>(random.uniform()));
    }
  }
  return array;
}

// Why `function` breaks the rules of the loop IR or does not come back from its text; empty when neither.
std::string text_or_rule_error(const tir::PrimFunc& function) {
  const std::vector<std::string> breaches = tir::find_breaches(function);
  if (!breaches.empty()) return fmt::format("{}", fmt::join(breaches, "\n"));
  const std::string text = tir::print_function(function);
  const auto mismatch = first_mismatch(Value(function), Value(tir::parse_function(text)));
  return mismatch ? fmt::format("{}: {}\n{}", mismatch->path, mismatch->reason, text) : "";
}

// Numbers that running `s` computes, about.
int64_t work_of(const tir::Stmt& s) {
  int64_t work = 0;
  for (const PrimExpr& e : tir::post_order(tir::expressions_of(s))) work += e->dtype.lanes();
  for (const tir::Stmt& inner : tir::statements_of(s)) work += work_of(inner);
  const auto* loop = s.as<tir::ForNode>();
  return loop == nullptr ? work : work * as_int(loop->extent).value_or(1);
}

// Interprets the loops. Runs parallel loops in reverse order.
std::vector<NDArray> interpret(const tir::PrimFunc& function, const std::vector<NDArray>& inputs) {
  std::vector<NDArray> lines;
  for (const NDArray& input : inputs) lines.push_back(input.reshaped({input.num_elements()}));
  return interp::run_prim_func(function, lines, {.reverse_parallel = true});
}

// The first element that differs, or an empty string.
std::string difference(const NDArray& got, const NDArray& want, double tolerance) {
  if (got.shape() != want.shape() || got.dtype() != want.dtype()) return "another shape or dtype";
  double magnitude = 1;
  const bool real = want.dtype().is_float() || want.dtype().is_narrow_float();
  for (int64_t i = 0; real && i < want.num_elements(); ++i) {
    const double value = std::abs(element_as_double(want.tensor(), i));
    if (std::isfinite(value)) magnitude = std::max(magnitude, value);
  }
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (!real) {
      const int64_t a = element_as_int(got.tensor(), i), b = element_as_int(want.tensor(), i);
      if (a != b) return fmt::format("element {}: got {}, wanted {}", i, a, b);
      continue;
    }
    const double a = element_as_double(got.tensor(), i), b = element_as_double(want.tensor(), i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= tolerance * magnitude)) return fmt::format("element {}: got {}, wanted {}", i, a, b);
  }
  return {};
}

}  // namespace

void RuleCases::add(std::string name, const std::vector<In>& inputs, const Build& build, double tolerance) {
  register_all_rules();
  kit::Random random(seed_of(name));
  std::vector<Expr> args;
  Array<relay::Var> params;
  std::vector<NDArray> arrays;
  for (const In& in : inputs) {
    arrays.push_back(fill(in, random));
    params.push_back(relay::make_var(fmt::format("x{}", params.size()), make_tensor_type(in.shape, in.dtype)));
    args.push_back(params.back());
  }
  const Expr function = relay::infer_type(relay::make_function(params, build(args)));
  cases_.push_back({std::move(name), function.cast<relay::FunctionNode>(), arrays, tolerance});
}

void RuleCases::add_text(std::string name, std::string_view program, const std::vector<NDArray>& inputs,
                         double tolerance) {
  register_all_rules();
  const Expr function = relay::infer_type(relay::parse_expr(program));
  cases_.push_back({std::move(name), function.cast<relay::FunctionNode>(), inputs, tolerance});
}

void RuleCases::add_text(std::string name, std::string_view program, const std::vector<In>& inputs, double tolerance) {
  kit::Random random(seed_of(name));
  std::vector<NDArray> arrays;
  for (const In& in : inputs) arrays.push_back(fill(in, random));
  add_text(std::move(name), program, arrays, tolerance);
}

void RuleCases::check() const {
  std::vector<int> widths;
  for (const int bits : {128, 256, 512}) {
    if (bits <= kit::NativeKernels::vector_bits()) widths.push_back(bits);
  }
  const kit::TestSize size = kit::options().size;
  const bool is_short = cases_.size() <= kFewCases;
  const bool all_widths = size == kit::TestSize::kFull || (is_short && size != kit::TestSize::kFew);
  for (size_t k = 0; k < widths.size(); ++k) {
    std::vector<const Case*> chosen;
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (all_widths || (i % widths.size() == k && (is_short || kit::is_chosen(i / widths.size()))))
        chosen.push_back(&cases_[i]);
    }
    check_width(widths[k], chosen);
  }
}

void RuleCases::check_as_c() const {
  const cost::Machine machine{.vector_bits = 256, .vector_registers = 16, .has_fma = true};
  std::vector<const Case*> cases;
  for (size_t i = 0; i < cases_.size(); ++i) {
    if (kit::is_chosen(i)) cases.push_back(&cases_[i]);
  }
  std::vector<tir::PrimFunc> loops;
  for (const Case* c : cases)
    loops.push_back(lower_function(c->function, fmt::format("case{}", loops.size()), machine));
  // Some warnings need -O1. Sanitizers see the writer of the C and not the C.
  const bool is_few = kit::options().size == kit::TestSize::kFew;
  const kit::NativeKernels kernels(loops, fmt::format("-std=c11 {} -Wall -Werror", is_few ? "-O0" : "-O1"));
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = *cases[i];
    const std::vector<NDArray> want = interp::run_main(make_module(c.function), c.inputs);
    const std::vector<NDArray> got = kernels.run(i, c.inputs);
    ASSERT_EQ(got.size(), want.size()) << c.name;
    // To the bit what native code computes, whose passes keep every bit but for LowerMath's functions.
    const bool is_long = work_of(loops[i]->body) > kLongWork;
    const auto after = is_long ? got : interpret(tir_passes::lower_math(loops[i]), c.inputs);
    for (size_t k = 0; k < got.size(); ++k) {
      EXPECT_EQ(difference(got[k].reshaped(want[k].shape()), want[k], c.tolerance), "") << c.name << ", result " << k;
      EXPECT_EQ(difference(got[k], after[k], 0), "") << c.name << ", against interpreted loops";
    }
  }
}

void RuleCases::check_width(int vector_bits, const std::vector<const Case*>& cases) const {
  const cost::Machine machine{
      .vector_bits = vector_bits, .vector_registers = vector_bits == 512 ? 32 : 16, .has_fma = vector_bits > 128};
  std::vector<tir::PrimFunc> loops, functions;
  for (const Case* c : cases) {
    SCOPED_TRACE(c->name);
    loops.push_back(lower_function(c->function, fmt::format("case{}", functions.size()), machine));
    functions.push_back(tir_passes::run_pipeline(loops.back()));
    EXPECT_EQ(text_or_rule_error(loops.back()), "");
    EXPECT_EQ(text_or_rule_error(functions.back()), "");
  }
  const kit::NativeKernels kernels(functions);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = *cases[i];
    const std::vector<NDArray> want = interp::run_main(make_module(c.function), c.inputs);
    const std::vector<NDArray> got = kernels.run(i, c.inputs);
    ASSERT_EQ(got.size(), want.size()) << c.name;
    const bool is_long = kit::options().size != kit::TestSize::kFull && work_of(functions[i]->body) > kLongWork;
    const std::vector<NDArray> before = is_long ? got : interpret(loops[i], c.inputs),
                               after = is_long ? got : interpret(functions[i], c.inputs);
    for (size_t k = 0; k < got.size(); ++k) {
      EXPECT_EQ(difference(got[k].reshaped(want[k].shape()), want[k], c.tolerance), "")
          << c.name << ", result " << k << ", vectors of " << vector_bits << " bits";
      EXPECT_EQ(difference(before[k].reshaped(want[k].shape()), want[k], c.tolerance), "") << c.name << ", as loops";
      EXPECT_EQ(difference(after[k], got[k], 0), "") << c.name << ", native against interpreted loops";
    }
  }
}

}  // namespace headrace::lower
