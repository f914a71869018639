#include "tools/headrace/guilty_op.h"

#include "base/exit_code.h"
#include "driver/explain.h"
#include "load/artifact.h"
#include "load/run.h"

namespace headrace::tools {

namespace {

Bisection search_plans(GuiltyOpSearch search) {
  driver::CompileOptions& options = search.options;
  const std::optional<partition::Plan> plan = driver::explain(search.model, options, true).plan;
  // A plan says all that these say.
  options.plan.clear();
  options.costs.clear();
  options.overrides.clear();
  options.placement = driver::Placement::order;
  const bool has_progress = options.progress != nullptr;
  options.progress = {};
  int number = 0;
  const auto is_right = [&](const partition::Plan& tried) {
    if (has_progress) fmt::print(stderr, "\r\033[Klooking for the guilty op: compile {}", ++number);
    options.plan_text = partition::print_plan(tried);
    search.sets.ours = load::run(*make_compiled(search.model, options, search.threads), search.inputs);
    return search.is_right(compare_outputs(search.sets, search.tolerance));
  };
  const Bisection found = bisect(*plan, is_right);
  if (has_progress) fmt::print(stderr, "\r\033[K");
  return found;
}

}  // namespace

std::shared_ptr<executors::Executor> make_compiled(const driver::Model& model, const driver::CompileOptions& options,
                                                   int threads) {
  const auto artifact = driver::open_compiled(driver::compile_to_memory(model, options), "the compiled model");
  return load::make_executor(artifact, artifact::kDefaultProgram, {.threads = threads});
}

Bisection find_guilty_op(const GuiltyOpSearch& search) {
  try {
    return search_plans(search);
  } catch (const Error& error) {
    if (exit_code_of(error) == HR_INTERNAL) throw;
    return {.failure = error.message()};
  }
}

}  // namespace headrace::tools
