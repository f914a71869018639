#include <gtest/gtest.h>

#include <cmath>

#include "interp/interp.h"
#include "kit/native_kernels.h"
#include "kit/random.h"
#include "lower/compute_rule.h"
#include "lower/fuse_stages.h"
#include "lower/lower_function.h"
#include "lower/rules/rule_cases.h"
#include "relay/infer_type.h"
#include "tir_passes/pipeline.h"

namespace headrace::lower {

namespace {

uint64_t seed_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

NDArray fill(const In& in, kit::Random& random) {
  NDArray array = NDArray::empty(in.shape, in.dtype);
  const double specials[] = {std::nan(""), INFINITY, -INFINITY, 0.0, -0.0};
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    if (!in.dtype.is_float()) {
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

// The first element that differs, or an empty string.
std::string difference(const NDArray& got, const NDArray& want, double tolerance) {
  if (got.shape() != want.shape() || got.dtype() != want.dtype()) return "another shape or dtype";
  double magnitude = 1;
  const bool real = want.dtype().is_float();
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

void RuleCases::check() const {
  std::vector<std::vector<NDArray>> wanted;
  for (const Case& c : cases_) wanted.push_back(interp::run_main(make_module(c.function), c.inputs));
  for (const int bits : {128, 256, 512}) {
    if (bits <= kit::NativeKernels::vector_bits()) check_width(bits, wanted);
  }
}

void RuleCases::check_width(int vector_bits, const std::vector<std::vector<NDArray>>& wanted) const {
  const ScheduleOptions options{vector_bits, vector_bits == 512 ? 32 : 16, vector_bits > 128};
  std::vector<tir::PrimFunc> functions;
  for (size_t i = 0; i < cases_.size(); ++i) {
    SCOPED_TRACE(cases_[i].name);
    const tir::Compute compute = fuse_stages(compute_of(cases_[i].function));
    functions.push_back(tir_passes::run_pipeline(schedule(compute, fmt::format("case{}", i), options)));
  }
  const kit::NativeKernels kernels(functions);
  for (size_t i = 0; i < cases_.size(); ++i) {
    const std::vector<NDArray> got = kernels.run(i, cases_[i].inputs);
    ASSERT_EQ(got.size(), wanted[i].size()) << cases_[i].name;
    for (size_t k = 0; k < got.size(); ++k) {
      EXPECT_EQ(difference(got[k].reshaped(wanted[i][k].shape()), wanted[i][k], cases_[i].tolerance), "")
          << cases_[i].name << ", result " << k << ", vectors of " << vector_bits << " bits";
    }
  }
}

}  // namespace headrace::lower
