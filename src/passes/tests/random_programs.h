// Helpers of the tests that hold passes to properties over random programs.
#pragma once

#include "kit/property.h"
#include "kit/relay_programs.h"
#include "object/structural_equal.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

struct Program {
  uint64_t seed = 0;
  int steps = 0;
  bool functional = true;
  int64_t channels = kit::ProgramSize().channels;
  IRModule module() const {
    return kit::random_program(seed, {.steps = steps, .functional = functional, .channels = channels});
  }
};

inline kit::Property<Program> property_of_programs(std::function<std::optional<std::string>(const Program&)> check,
                                                   bool functional = true,
                                                   int64_t channels = kit::ProgramSize().channels) {
  kit::Property<Program> property;
  property.runs_ci = 60;
  property.runs_full = 20000;
  property.generate = [functional, channels](kit::Random& random) {
    return Program{random.next(), static_cast<int>(random.integer(1, 30)), functional, channels};
  };
  property.shrink = [](const Program& p) {
    std::vector<Program> smaller;
    for (const int steps : {p.steps / 2, p.steps - 2, p.steps - 1}) {
      if (steps >= 0 && steps < p.steps) smaller.push_back({p.seed, steps, p.functional, p.channels});
    }
    return smaller;
  };
  property.show = [](const Program& p) { return relay::print_module(p.module()); };
  property.check = std::move(check);
  return property;
}

inline std::optional<std::string> not_equal(const IRModule& a, const IRModule& b) {
  const auto mismatch = first_mismatch(Value(a), Value(b));
  if (!mismatch) return std::nullopt;
  return fmt::format("at {}: {} ({} / {})", mismatch->path, mismatch->reason, mismatch->left, mismatch->right);
}

inline std::optional<std::string> text_differs(const IRModule& module) {
  const std::string text = relay::print_module(module);
  const IRModule again = relay::parse_module(text);
  if (auto difference = not_equal(module, again)) return *difference + "\n" + text;
  if (relay::print_module(again) != text) return "it prints differently after parsing:\n" + text;
  return std::nullopt;
}

// Values are at most about 10; motifs magnify rounding by less than 100.
inline constexpr double kRounding = 1e-4;

// Returns nothing when both modules compute the same results, up to `tolerance`; 0: to the last bit.
inline std::optional<std::string> results_differ(const IRModule& a, const IRModule& b, uint64_t seed,
                                                 double tolerance) {
  kit::Random random(seed);
  const auto inputs = kit::random_inputs(a, random);
  const auto want = interp::run_main(a, inputs), got = interp::run_main(b, inputs);
  if (want.size() != got.size()) return "another number of results";
  for (size_t r = 0; r < want.size(); ++r) {
    if (want[r].shape() != got[r].shape() || want[r].dtype() != got[r].dtype()) return "another type of result";
    for (int64_t i = 0; i < want[r].num_elements(); ++i) {
      const double x = element_as_double(want[r].tensor(), i), y = element_as_double(got[r].tensor(), i);
      if (!(std::abs(x - y) <= tolerance)) return fmt::format("result {}[{}]: {} became {}", r, i, x, y);
    }
  }
  return std::nullopt;
}

}  // namespace headrace::passes
