#include "partition/op_costs.h"

#include <cmath>

#include "partition/op_work.h"
#include "partition/place.h"

namespace headrace::partition {

namespace {

constexpr double kMaxSeconds = 1000;

std::string callee_name(const relay::CallNode& call) {
  return call.as_op() != nullptr ? call.as_op()->name : "a composite function";
}

}  // namespace

std::vector<LabelSeconds> OpCosts::of(const relay::CallNode& call) const {
  std::vector<LabelSeconds> costs{
      {kNative, std::min(native_seconds(call, model_.machine, model_.threads), kMaxSeconds)}};
  for (const auto& backend : backends_) {
    if (!verdict_of(*backend, call).ok()) continue;
    const double seconds = backend->cost(call, model_.machine, model_.threads);
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kMaxSeconds)
      throw_at(call.span, "compile",
               fmt::format("the backend '{}' says that {} costs {} seconds; a cost must be from 0 to {}",
                           backend->name(), callee_name(call), seconds, kMaxSeconds));
    costs.push_back({std::string(backend->name()), seconds});
  }
  return costs;
}

std::string show_cost(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} us", seconds * 1e6);
}

}  // namespace headrace::partition
