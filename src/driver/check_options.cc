#include "driver/check_options.h"

#include "driver/all_passes.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "pass/config.h"
#include "pass/known_passes.h"
#include "runtime/thread_pool.h"

namespace headrace::driver {

namespace {

constexpr int32_t kMaxThreads = runtime::kMaxWorkers;
static_assert(kMaxTargetCores == kMaxThreads, "a target's cores are threads of an artifact");

void check_range(std::string_view option, int64_t value, int64_t max, std::string_view meaning) {
  if (value < 0 || value > max) throw_user_error("{} is {}; it goes from 0 ({}) to {}", option, value, meaning, max);
}

void check_disabled(const std::vector<std::string>& disabled) {
  for (const std::string& name : disabled) {
    if (get_pass("FuseOps").info.is_called(name))
      throw_user_error("pass FuseOps makes the kernels and cannot be left out; with opt level 0 it joins no ops");
  }
  pass::check_pass_names(disabled, pass::NamedTo::disable);
}

}  // namespace

void check_placement(const CompileOptions& options) {
  const bool has_plan = !options.plan.empty() || options.plan_text;
  if (!options.costs.empty() && options.placement != Placement::cost && !has_plan)
    throw_user_error(
        "the costs in '{}' have no effect without placement by cost; ask for it (--placement cost, in Python "
        "placement=\"cost\"), or leave the costs out",
        options.costs);
  if (has_plan && options.placement == Placement::cost)
    throw_user_error("the plan '{}' says where ops go, and so does placement by cost; leave one out", options.plan);
}

static bool names_backends(const CompileOptions& options) {
  return !options.backends.empty() || !options.target->list("extern").empty();
}

void check_options(const CompileOptions& options) {
  register_all();
  check_target(options.target);
  if (options.placement == Placement::cost && !names_backends(options))
    throw_user_error(
        "placement by cost chooses between native code and backends, and no backend is named; name backends (on the "
        "command line by --backends, in Python by backends=), or leave the placement out");
  pass::check_opt_level(options.passes.opt_level);
  check_range("the number of threads", options.threads, kMaxThreads, "one a processor");
  check_range("the number of jobs", options.jobs, kMaxThreads, "one a processor");
  if (options.weights_limit_bytes < 0)
    throw_user_error("the limit of the weights in the artifact is {} bytes; give 0 (all beside it) or more",
                     options.weights_limit_bytes);
  check_disabled(options.passes.disabled_pass);
  check_placement(options);
  pass::check_pass_names(options.passes.required_pass, pass::NamedTo::require);
  pass::check_config(options.passes.config);
}

}  // namespace headrace::driver
