#include "plan/program.h"

#include <algorithm>

#include "ops/call_fusion.h"
#include "relay/function_attrs.h"

namespace headrace::plan {

void drop_unused_functions(Program& program) {
  std::vector<std::optional<size_t>> places(program.functions.size());
  std::vector<std::pair<GlobalVar, relay::Function>> kept;
  for (Step& step : program.steps) {
    if (!step.function) continue;
    std::optional<size_t>& place = places[*step.function];
    if (!place) {
      place = kept.size();
      kept.push_back(program.functions[*step.function]);
    }
    step.function = place;
  }
  program.functions = std::move(kept);
}

std::optional<std::string> import_of(const GlobalVar& name, const relay::FunctionNode& function) {
  if (relay::compiler_of(function)) return relay::symbol_of(function).value_or(name->name_hint);
  if (const std::string* external = ops::external_of(function.body)) return *external;
  return std::nullopt;
}

int64_t span_bytes(const View& view) {
  const auto item = static_cast<int64_t>(view.type->dtype.bytes());
  if (view.strides.empty()) return num_elements(view.shape) * item;
  int64_t last = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 0) return 0;
    last += (view.shape[i] - 1) * view.strides[i];
  }
  return (last + 1) * item;
}

std::vector<Lifetime> lifetimes_of(const Program& program) {
  std::vector<Lifetime> lifetimes(program.bases.size());
  const auto use = [&](size_t view, size_t step) {
    Lifetime& lifetime = lifetimes[program.views[view].base];
    lifetime.first = std::min(lifetime.first, step);
    lifetime.last = std::max(lifetime.last, step);
  };
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const auto* views : {&program.steps[i].inputs, &program.steps[i].outputs}) {
      for (const size_t view : *views) use(view, i);
    }
  }
  for (const BoundedOutput& bounded : program.bounded_outputs) use(bounded.extent, program.steps.size());
  return lifetimes;
}

}  // namespace headrace::plan
