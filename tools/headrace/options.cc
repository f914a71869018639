#include "tools/headrace/options.h"

#include <unistd.h>

#include <cstdio>

#include "driver/cost_cache.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

void ModelOptions::add_to(CLI::App& verb, const std::string& what_models) {
  verb.add_option("model", path, what_models)->required()->type_name("FILE");
  const auto add = [&](const char* name, auto& value, const char* what) {
    CLI::Option* option = verb.add_option(name, value, what);
    options_.push_back(option);
    return option;
  };
  add("--shape", shapes, "Shape of an input, as x=1,3,224,224 (x=scalar for a scalar); may be repeated")
      ->type_name("NAME=DIMS")
      ->allow_extra_args(false);
  add("--dim", dims, "Size of a dimension that an ONNX model names, as batch=1; may be repeated")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  add("--bind", bound, "An input that is compiled in as a constant, from a .npy file; may be repeated")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  add("--input-weights", weights, "Data of a relay text's constants (safetensors, headrace-opt --weights)")
      ->type_name("FILE");
  CLI::Option* whole = add("--target", target,
                           "What to compile for, as \"llvm -mcpu=x86-64-v3 -mattr=+fma\", its JSON form or a tag "
                           "(headrace targets lists them; default: llvm, this machine)")
                           ->type_name("TARGET");
  target_option_ = whole;
  add("--target-cpu", cpu, "Processor to compile for, by LLVM's name (default: this machine's)")
      ->type_name("CPU")
      ->excludes(whole);
  add("--target-features", features, "Processor features to add or remove, as +avx2,-avx512f")
      ->type_name("LIST")
      ->excludes(whole);
  takes_opt_level(add("-O,--opt-level", opt_level, kOptLevelHelp))->capture_default_str();
  takes(add("--jobs", jobs, "Threads that compile (0: one per processor); the result does not depend on it"),
        {0, runtime::kMaxWorkers, 2});
  takes_passes(add("--disable-pass", disabled_passes, kDisablePassHelp));
  add("--config", config,
      "An option of a pass (headrace-opt --list-passes), as relay.FuseOps.max_depth=4; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_backends_to(verb);
}

void ModelOptions::add_backends_to(CLI::App& verb) {
  const auto add = [&](const char* name, auto& value, const char* what) {
    options_.push_back(verb.add_option(name, value, what));
    return verb.get_option(name);
  };
  add("--backends", backends,
      "Backends beside the native one, in the order of their priority, as onednn,ccompiler; a name that is given twice "
      "counts where it is first, and empty names between commas are left out")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  takes_word(add("--placement", placement,
                 "How backends are chosen: order (each op goes to the first that takes it) or cost (the plan of least "
                 "cost)")
                 ->capture_default_str()
                 ->type_name("HOW"),
             "placement", {"order", "cost"});
  takes_path(
      add("--costs", costs,
          "Measured costs for --placement cost, or of --plan: a file of headrace profile -o, or 'cache' for those "
          "that headrace profile --backends keeps"),
      "FILE");
  add("--backend-option", backend_options,
      "An option of a backend, as ccompiler.cc=clang; may be repeated for other options")
      ->allow_extra_args(false)
      ->type_name("NAME.KEY=VALUE");
  takes_path(add("--plan", plan,
                 "Put each op where this file says (headrace explain --save-plan writes one), on the file's backends"),
             "FILE");
  add("--place", overrides,
      "Put the ops whose names match on a backend or on native, as 'layer4.*=native'; the first match decides")
      ->allow_extra_args(false)
      ->type_name("PATTERN=BACKEND");
}

std::vector<std::string> ModelOptions::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

FileUses ModelOptions::files(const Common& common) const {
  FileUses uses;
  uses.add_inputs("the model", {path, weights});
  uses.add_inputs("the model", files_of("--bind", bound));
  if (costs != driver::kCachedCosts) uses.add_inputs("the table of costs", {costs});
  uses.add_inputs("the plan", {plan});
  uses.add_inputs("a backend", common.plugins);
  return uses;
}

driver::LoadOptions ModelOptions::load_options(const driver::CompileOptions& compile) const {
  driver::LoadOptions options{
      .shapes = parse_shapes(shapes), .dims = parse_dims(dims), .backends = driver::possible_backends(compile)};
  options.weights = weights;
  for (const std::string& text : bound) {
    const auto [name, file] = split_assignment("--bind", text);
    if (!options.bound.emplace(name, read_tensor(file)).second)
      throw UsageError(fmt::format("--bind: input '{}' is given twice", name));
  }
  return options;
}

// The last '=' divides: names of ops may hold others.
static partition::PlaceOverride parse_override(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw UsageError(fmt::format("--place: '{}' is not a PATTERN=BACKEND, as 'layer4.*=native'", text));
  return {.pattern = text.substr(0, equals), .backend = text.substr(equals + 1)};
}

driver::CompileOptions ModelOptions::compile_options(const Common& common) const {
  driver::CompileOptions options;
  options.target = target_option_->count() == 0 ? driver::llvm_target(cpu, features) : parse_target(target);
  options.passes.opt_level = opt_level;
  options.jobs = jobs;
  options.threads = threads;
  options.passes.disabled_pass = disabled_passes;
  driver::register_all();  // passes declare their options
  options.passes.config = parse_config(config);
  options.backends = backends;
  options.costs = costs;
  options.placement = driver::read_placement("--placement", placement);
  for (const std::string& text : backend_options) {
    const auto [name, value] = split_assignment("--backend-option", text);
    const size_t dot = name.find('.');
    if (dot == std::string::npos || dot == 0 || dot + 1 == name.size())
      throw UsageError(fmt::format("--backend-option: '{}' names no option; write NAME.KEY=VALUE", text));
    Map<std::string, Value>& own = options.backend_options[name.substr(0, dot)];
    if (own.contains(name.substr(dot + 1)))
      throw UsageError(fmt::format("--backend-option: '{}' is given twice", name));
    own.set(name.substr(dot + 1), Value(value));
  }
  options.plan = plan;
  driver::read_plan_file(options);
  for (const std::string& text : overrides) options.overrides.push_back(parse_override(text));
  if (!common.quiet && isatty(STDERR_FILENO) != 0) {
    options.progress = [](std::string_view stage, int index, int count) {
      fmt::print(stderr, "\r\033[K[{}/{}] {}{}", index + 1, count, stage, index + 1 == count ? "\r\033[K" : "");
      std::fflush(stderr);
    };
  }
  return options;
}

}  // namespace headrace::tools
