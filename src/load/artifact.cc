#include "load/artifact.h"

#include <set>
#include <utility>

#include "load/all_loaders.h"
#include "load/external_call.h"

namespace headrace::load {
namespace {

using artifact::Manifest;
using artifact::Program;
using artifact::Step;
using artifact::StepKind;
using runtime::Library;
using runtime::Module;

// The module at the top of the import tree: it only holds the file's modules together.
class RootBody : public runtime::ModuleBody {
 public:
  std::string_view type_key() const override { return "artifact"; }
  PackedFunc get_function(const std::string&, const Module&) override { return {}; }
};

// A kind that ops were placed on is a backend, and the placements may say what to do without it. Any other is that of a
// module that a user imported.
std::string missing_loader(const Library& library, const std::string& kind) {
  bool is_backend = false;
  std::string hint = "install that backend, or compile the model without it";
  for (const Program& program : library.manifest().programs) {
    for (const artifact::Placement& placement : program.placement) {
      if (placement.backend != kind) continue;
      if (!std::exchange(is_backend, true) && !placement.message.empty()) hint = placement.message;
    }
  }
  if (is_backend)
    return fmt::format("'{}' needs the backend '{}', which this runtime does not have; {}", library.name(), kind, hint);
  return fmt::format(
      "'{}' has a module of the kind '{}', which nothing here loads; register the function {}{} (register_func in "
      "Python, register_module_loader in C++), or load the library that does, first",
      library.name(), kind, runtime::kLoadBinaryPrefix, kind);
}

// A loader's word on its blob says nothing of the file.
Module make_module(const Library& library, const std::string& kind, const std::string& blob) {
  const auto explain = [&](const Error& error) {
    return fmt::format("'{}': its external module of kind '{}' cannot be loaded: {}", library.name(), kind,
                       error.message());
  };
  try {
    return runtime::load_from_binary(kind, blob);
  } catch (const MissingError& error) {
    throw MissingError(explain(error), error.where());
  } catch (const UserError& error) {
    throw UserError(explain(error), error.where());
  }
}

Expected<Module> load_external(const Library& library, size_t index) {
  const artifact::ExternalModule& external = library.manifest().modules[index];
  const Expected<std::string> blob = library.blob(index);
  if (!blob) return blob.refusal();
  Module module = make_module(library, external.loader, blob.value());
  if (!module) return Refusal{HR_REASON_BACKEND_MISSING, missing_loader(library, external.loader)};
  return module;
}

Expected<Module> load_modules(const Library& library) {
  const std::vector<artifact::ExternalModule>& rows = library.manifest().modules;
  std::vector<Module> modules;
  std::set<int32_t> imported;
  for (size_t i = 0; i < rows.size(); ++i) {
    Expected<Module> module = load_external(library, i);
    if (!module) return module.refusal();
    modules.push_back(module.value());
    imported.insert(rows[i].imports.begin(), rows[i].imports.end());
  }
  const Module root(std::make_unique<RootBody>());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int32_t import : rows[i].imports) modules[i].Import(modules[static_cast<size_t>(import)]);
    if (!imported.contains(static_cast<int32_t>(i))) root.Import(modules[i]);
  }
  return root;
}

Expected<std::shared_ptr<const Artifact>> make_artifact(Expected<std::shared_ptr<const Library>> library) {
  if (!library) return library.refusal();
  register_all_loaders();
  Expected<Module> root = load_modules(*library.value());
  if (!root) return root.refusal();
  return std::shared_ptr<const Artifact>(
      std::make_shared<Artifact>(Artifact{std::move(library.value()), std::move(root.value())}));
}

// A function of the file's external modules, else one of the process; null when neither has it.
PackedFunc find_import(const Module& root, const std::string& name) {
  const PackedFunc function = root.GetFunction(name, true);
  return function ? function : find_global(name);
}

Refusal import_missing(const Library& library, const Program& program, const Step& step) {
  return {
      HR_REASON_SYMBOL_MISSING,
      fmt::format("'{}' needs the function '{}', which its program '{}' calls{}: no module of the file and no global "
                  "function of this process provides it; register it (register_func in Python, register_global in "
                  "C++) or load the library that does, first",
                  library.name(), step.callee, program.name, step.op.empty() ? "" : fmt::format(" for {}", step.op))};
}

int32_t num_threads(int32_t asked, const Manifest& manifest) {
  if (asked < 0 || asked > runtime::kMaxWorkers)
    throw_user_error("{} threads were asked for; ask for 1 to {}, or 0 for the artifact's default", asked,
                     runtime::kMaxWorkers);
  if (asked > 0) return asked;
  return manifest.default_threads > 0 ? std::min(manifest.default_threads, runtime::kMaxWorkers)
                                      : runtime::num_processors();
}

std::string program_names(const Manifest& manifest) {
  std::vector<std::string_view> names;
  for (const Program& program : manifest.programs) names.push_back(program.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Expected<std::shared_ptr<const Artifact>> open_artifact(const std::string& path) {
  return make_artifact(Library::open(path));
}

Expected<std::shared_ptr<const Artifact>> open_artifact(Descriptor descriptor, const std::string& name) {
  return make_artifact(Library::open(std::move(descriptor), name));
}

std::optional<Refusal> Executor::resolve(const Program& program) {
  const Library& library = *artifact_->library;
  // Callees point into imports_, which must not grow any more then.
  imports_.reserve(program.graph.steps.size());
  for (const Step& step : program.graph.steps) {
    executors::Callee callee;
    if (step.kind == StepKind::kKernel) {
      callee.kernel = reinterpret_cast<hr_kernel>(library.symbol(step.callee));
      if (callee.kernel == nullptr)
        return Refusal{
            HR_REASON_SYMBOL_MISSING,
            fmt::format("'{}' does not have the kernel '{}' that its program '{}' calls; compile the model again",
                        library.name(), step.callee, program.name)};
    } else if (step.kind == StepKind::kExternal) {
      const PackedFunc function = find_import(artifact_->root, step.callee);
      if (!function) return import_missing(library, program, step);
      imports_.push_back(function);
      callee.external = external_call(imports_.back());
    }
    callees_.push_back(callee);
  }
  return std::nullopt;
}

Expected<std::shared_ptr<Executor>> Executor::make(std::shared_ptr<const Artifact> artifact,
                                                   const std::string& program_name, int32_t threads) {
  const Library& library = *artifact->library;
  const Manifest& manifest = library.manifest();
  const Program* program = artifact::find_program(manifest, program_name);
  if (program == nullptr) {
    return Refusal{HR_REASON_NOT_FOUND, fmt::format("'{}' has no program '{}'; it has {}", library.name(), program_name,
                                                    program_names(manifest))};
  }
  if (std::optional<Refusal> refusal = runtime::cpu_refusal(*program, library.name())) return *std::move(refusal);
  const int32_t workers = num_threads(threads, manifest);
  std::shared_ptr<Executor> executor(new Executor(std::move(artifact)));
  if (std::optional<Refusal> refusal = executor->resolve(*program)) return *std::move(refusal);
  std::vector<const std::byte*> weights;
  for (size_t i = 0; i < manifest.weights.size(); ++i) weights.push_back(library.weight(i));
  executor->runner_ =
      std::make_unique<executors::GraphRunner>(*program, executor->callees_, weights, runtime::shared_pool(workers));
  return executor;
}

std::shared_ptr<Executor> make_executor(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                        int32_t threads) {
  return Executor::make(std::move(artifact), program, threads).value_or_throw();
}

}  // namespace headrace::load
