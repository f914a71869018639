#include <headrace/c_api.h>

#include <deque>
#include <new>

#include "backends/plugin/run/plugin.h"
#include "base/exit_code.h"
#include "load/artifact.h"

using headrace::exit_code_of;
using headrace::Expected;
using headrace::Refusal;
using headrace::UserError;
using headrace::artifact::Program;
using headrace::artifact::TensorSpec;

struct hr_artifact {
  std::shared_ptr<const headrace::load::Artifact> artifact;
};

struct hr_executor {
  std::shared_ptr<headrace::executors::Executor> executor;
  mutable std::deque<headrace::executors::FallbackEvent> fallbacks = {};  // those that clients asked for: they stay
};

namespace {

// The thread's last failure, with the strings that hr_error points to.
struct LastError {
  std::string message;
  std::string op;
  std::string span;
  std::string backend;
  hr_error view{.code = HR_OK, .reason = HR_REASON_NONE, .message = "", .op = "", .span = "", .backend = ""};
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

// Without memory for the sentence there is still a code.
hr_status fail(hr_status code, hr_reason reason, std::string_view message, std::string_view op = {},
               std::string_view span = {}) noexcept {
  LastError& last = last_error();
  last.view = {.code = code, .reason = reason, .message = "out of memory", .op = "", .span = "", .backend = ""};
  try {
    last.message = message;
    last.op = op;
    last.span = span;
    last.view.message = last.message.c_str();
    last.view.op = last.op.c_str();
    last.view.span = last.span.c_str();
  } catch (...) {
  }
  return code;
}

hr_status fail(const Refusal& refusal) noexcept {
  return fail(exit_code_of(refusal.code), refusal.code, refusal.message);
}

// The one guard: runs `body`, which gives an hr_status, and turns what it throws into a code.
template <typename Body>
hr_status guard(Body body) noexcept {
  try {
    return body();
  } catch (const headrace::Error& error) {
    return fail(exit_code_of(error), HR_REASON_NONE, error.message(), error.where().op, error.where().place);
  } catch (const std::bad_alloc& error) {
    return fail(exit_code_of(error), HR_REASON_SYSTEM, "out of memory");
  } catch (const std::exception& error) {
    return fail(exit_code_of(error), HR_REASON_NONE, error.what());
  } catch (...) {
    return fail(HR_INTERNAL, HR_REASON_NONE, "an exception of unknown type");
  }
}

hr_status usage(std::string_view message) noexcept { return fail(HR_USAGE, HR_REASON_NONE, message); }

hr_status no_such(const char* what, int32_t index, size_t count) {
  return usage(fmt::format("there is no {} {}: there are {}", what, index, count));
}

bool is_index(int32_t index, size_t count) { return index >= 0 && static_cast<size_t>(index) < count; }

const char* program_name(const char* name) { return name != nullptr ? name : headrace::artifact::kDefaultProgram; }

// Gives `use` the program of that name.
template <typename Use>
hr_status with_program(const hr_artifact* artifact, const char* name, Use use) noexcept {
  return guard([&] {
    if (artifact == nullptr) return usage("the artifact is NULL");
    const Program* program = headrace::artifact::find_program(artifact->artifact->manifest(), program_name(name));
    if (program == nullptr) {
      return fail(HR_USER, HR_REASON_NOT_FOUND,
                  fmt::format("'{}' has no program '{}'", artifact->artifact->library->name(), program_name(name)));
    }
    return use(*program);
  });
}

hr_status tensor_info(const std::vector<TensorSpec>& specs, const char* what, int32_t index, hr_tensor_info* info) {
  if (info == nullptr) return usage("the place for the result is NULL");
  if (!is_index(index, specs.size())) return no_such(what, index, specs.size());
  const TensorSpec& spec = specs[static_cast<size_t>(index)];
  *info = {.name = spec.name.c_str(),
           .dtype = spec.dtype.raw(),
           .ndim = static_cast<int32_t>(spec.shape.size()),
           .shape = spec.shape.data()};
  return HR_OK;
}

hr_status give_count(size_t count, int32_t* result) {
  if (result == nullptr) return usage("the place for the result is NULL");
  *result = static_cast<int32_t>(count);
  return HR_OK;
}

hr_status fail(const headrace::executors::Status& status) noexcept {
  return fail(HR_USER, status.reason, status.message, status.op);
}

using Setter = headrace::executors::Status (headrace::executors::Executor::*)(size_t, const DLTensor&) noexcept;

hr_status set_tensor(hr_executor* executor, int32_t index, const DLTensor* tensor, Setter setter) noexcept {
  if (executor == nullptr || tensor == nullptr) return usage("the executor or the tensor is NULL");
  return guard([&] {
    if (index < 0) return usage(fmt::format("there is no tensor {}", index));
    const headrace::executors::Status status = (executor->executor.get()->*setter)(static_cast<size_t>(index), *tensor);
    return status.ok() ? HR_OK : fail(status);
  });
}

// Reads the options of a client that was compiled with this version of hr_executor_options or an earlier one.
headrace::executors::ExecutorOptions read_options(const hr_executor_options* options) {
  headrace::executors::ExecutorOptions read;
  if (options == nullptr) return read;
  if (options->size < HR_EXECUTOR_OPTIONS_SIZE_1)
    throw headrace::UsageError("hr_executor_options.size is not sizeof(hr_executor_options)");
  read.threads = options->threads;
  if (options->size < HR_EXECUTOR_OPTIONS_SIZE_2) return read;
  if (options->size >= sizeof(hr_executor_options)) read.region_timeout_seconds = options->region_timeout_seconds;
  if (options->fallback != HR_FALLBACK_NATIVE && options->fallback != HR_FALLBACK_NONE)
    throw headrace::UsageError("hr_executor_options.fallback is not an hr_fallback_mode");
  using headrace::executors::Fallback;
  read.fallback = options->fallback == HR_FALLBACK_NONE ? Fallback::none : Fallback::native;
  if (options->num_cpus == 0) return read;
  if (options->num_cpus < 0 || options->cpus == nullptr)
    throw headrace::UsageError("hr_executor_options.cpus is not a list of num_cpus processors");
  read.cpus.assign(options->cpus, options->cpus + options->num_cpus);
  return read;
}

}  // namespace

uint32_t hr_c_api_version(void) noexcept { return HR_C_API_VERSION; }

const hr_error* hr_last_error(void) noexcept { return &last_error().view; }

hr_status hr_artifact_open(const char* path, hr_artifact** artifact) noexcept {
  return guard([&] {
    if (path == nullptr || artifact == nullptr) return usage("the path or the place for the result is NULL");
    *artifact = nullptr;
    Expected<std::shared_ptr<const headrace::load::Artifact>> opened = headrace::load::open_artifact(path);
    if (!opened) return fail(opened.refusal());
    *artifact = new hr_artifact{std::move(opened.value())};
    return HR_OK;
  });
}

void hr_artifact_close(hr_artifact* artifact) noexcept { delete artifact; }

hr_status hr_artifact_num_programs(const hr_artifact* artifact, int32_t* count) noexcept {
  return guard([&] {
    if (artifact == nullptr) return usage("the artifact is NULL");
    return give_count(artifact->artifact->manifest().programs.size(), count);
  });
}

hr_status hr_artifact_program_name(const hr_artifact* artifact, int32_t index, const char** name) noexcept {
  return guard([&] {
    if (artifact == nullptr || name == nullptr) return usage("the artifact or the place for the result is NULL");
    const std::vector<Program>& programs = artifact->artifact->manifest().programs;
    if (!is_index(index, programs.size())) return no_such("program", index, programs.size());
    *name = programs[static_cast<size_t>(index)].name.c_str();
    return HR_OK;
  });
}

hr_status hr_artifact_num_inputs(const hr_artifact* artifact, const char* program, int32_t* count) noexcept {
  return with_program(artifact, program, [&](const Program& found) { return give_count(found.inputs.size(), count); });
}

hr_status hr_artifact_num_outputs(const hr_artifact* artifact, const char* program, int32_t* count) noexcept {
  return with_program(artifact, program, [&](const Program& found) { return give_count(found.outputs.size(), count); });
}

hr_status hr_artifact_input_info(const hr_artifact* artifact, const char* program, int32_t index,
                                 hr_tensor_info* info) noexcept {
  return with_program(artifact, program,
                      [&](const Program& found) { return tensor_info(found.inputs, "input", index, info); });
}

hr_status hr_artifact_output_info(const hr_artifact* artifact, const char* program, int32_t index,
                                  hr_tensor_info* info) noexcept {
  return with_program(artifact, program,
                      [&](const Program& found) { return tensor_info(found.outputs, "output", index, info); });
}

hr_status hr_executor_create(hr_artifact* artifact, const char* program, const hr_executor_options* options,
                             hr_executor** executor) noexcept {
  return guard([&] {
    if (artifact == nullptr || executor == nullptr) return usage("the artifact or the place for the result is NULL");
    *executor = nullptr;
    Expected<std::shared_ptr<headrace::executors::Executor>> made =
        headrace::load::try_make_executor(artifact->artifact, program_name(program), read_options(options));
    if (!made) return fail(made.refusal());
    *executor = new hr_executor{std::move(made.value())};
    return HR_OK;
  });
}

void hr_executor_destroy(hr_executor* executor) noexcept { delete executor; }

hr_status hr_executor_set_input(hr_executor* executor, int32_t index, const DLTensor* tensor) noexcept {
  return set_tensor(executor, index, tensor, &headrace::executors::Executor::set_input);
}

hr_status hr_executor_set_input_zero_copy(hr_executor* executor, int32_t index, const DLTensor* tensor) noexcept {
  return set_tensor(executor, index, tensor, &headrace::executors::Executor::bind_input);
}

hr_status hr_executor_set_output_zero_copy(hr_executor* executor, int32_t index, const DLTensor* tensor) noexcept {
  return set_tensor(executor, index, tensor, &headrace::executors::Executor::bind_output);
}

hr_status hr_executor_run(hr_executor* executor) noexcept {
  if (executor == nullptr) return usage("the executor is NULL");
  const headrace::executors::Status status = executor->executor->run();
  return status.ok() ? HR_OK : fail(status);
}

hr_status hr_executor_get_output(const hr_executor* executor, int32_t index, DLTensor* view) noexcept {
  return guard([&] {
    if (executor == nullptr || view == nullptr) return usage("the executor or the place for the result is NULL");
    const headrace::executors::Executor& found = *executor->executor;
    const size_t count = found.outputs().size();
    if (!is_index(index, count)) return no_such("output", index, count);
    if (!found.has_output(static_cast<size_t>(index))) {
      return usage(fmt::format("output '{}' was not computed yet: call hr_executor_run first, which must succeed",
                               found.outputs()[static_cast<size_t>(index)].name));
    }
    *view = found.output(static_cast<size_t>(index));
    return HR_OK;
  });
}

hr_status hr_load_backend(const char* path) noexcept {
  return guard([&] {
    if (path == nullptr) return usage("the path of the backend is NULL");
    headrace::backends::plugin::open_plugin(path);
    return HR_OK;
  });
}

hr_status hr_executor_num_fallbacks(const hr_executor* executor, int32_t* count) noexcept {
  return guard([&] {
    if (executor == nullptr) return usage("the executor is NULL");
    return give_count(executor->executor->metrics().fallbacks, count);
  });
}

hr_status hr_executor_get_fallback(const hr_executor* executor, int32_t index, hr_fallback* fallback) noexcept {
  return guard([&] {
    if (executor == nullptr || fallback == nullptr) return usage("the executor or the place for the result is NULL");
    const std::vector<headrace::executors::FallbackEvent> events = executor->executor->fallbacks();
    if (!is_index(index, events.size())) return no_such("fallback", index, events.size());
    for (size_t i = executor->fallbacks.size(); i < events.size(); ++i) executor->fallbacks.push_back(events[i]);
    const headrace::executors::FallbackEvent& event = executor->fallbacks[static_cast<size_t>(index)];
    *fallback = {.region = event.region.c_str(),
                 .backend = event.backend.c_str(),
                 .reason = event.reason,
                 .message = event.message.c_str(),
                 .run = event.run};
    return HR_OK;
  });
}
