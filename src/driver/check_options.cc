#include "driver/check_options.h"

#include "driver/target.h"
#include "pass/config.h"
#include "passes/pipeline.h"
#include "runtime/thread_pool.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

constexpr int32_t kMaxOptLevel = 3, kMaxThreads = runtime::kMaxWorkers;
static_assert(kMaxTargetCores == kMaxThreads, "a target's cores are threads of an artifact");

void check_range(std::string_view option, int64_t value, int64_t max, std::string_view meaning) {
  if (value < 0 || value > max) throw_user_error("{} is {}; it goes from 0 ({}) to {}", option, value, meaning, max);
}

// `purpose` is what the names are for: "leave out".
void check_names(const std::vector<std::string>& names, std::string_view purpose) {
  if (names.empty()) return;
  std::vector<std::string> known;
  for (const auto& list : {passes::canonical(), passes::native(), tir_passes::pipeline()}) {
    for (const pass::Pass& pass : list) known.push_back(pass.info.name);
  }
  for (const std::string& name : names) {
    const auto is_it = [&](std::string_view other) { return pass::same_pass_name(name, other); };
    if (std::none_of(known.begin(), known.end(), is_it))
      throw_user_error("there is no pass '{}' to {}; the passes are {}", name, purpose, fmt::join(known, ", "));
  }
}

void check_disabled(const std::vector<std::string>& disabled) {
  for (const std::string& name : disabled) {
    if (pass::same_pass_name(name, "FuseOps"))
      throw_user_error("pass FuseOps makes the kernels and cannot be left out; with opt level 0 it joins no ops");
  }
  check_names(disabled, "leave out");
}

}  // namespace

void check_options(const CompileOptions& options) {
  check_target(options.target);
  check_range("the opt level", options.opt_level, kMaxOptLevel, "each op by itself");
  check_range("the number of threads", options.threads, kMaxThreads, "one a processor");
  check_range("the number of jobs", options.jobs, kMaxThreads, "one a processor");
  if (options.weights_limit_bytes < 0)
    throw_user_error("the limit of the weights in the artifact is {} bytes; give 0 (all beside it) or more",
                     options.weights_limit_bytes);
  check_disabled(options.disabled_passes);
  check_names(options.required_passes, "require: a build runs its own lists");
  pass::check_config(options.config);
}

}  // namespace headrace::driver
