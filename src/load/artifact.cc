#include "load/artifact.h"

#include <set>
#include <utility>

#include "executors/graph/graph_executor.h"
#include "load/all_loaders.h"
#include "load/external_call.h"

namespace headrace::load {
namespace {

using artifact::Manifest;
using artifact::Program;
using artifact::Step;
using runtime::Library;
using runtime::Module;

// The module at the top of the import tree: it only holds the file's modules together.
class RootBody : public runtime::ModuleBody {
 public:
  std::string_view type_key() const override { return "artifact"; }
  PackedFunc get_function(const std::string&, const Module&) override { return {}; }
};

// Returns what a user does where the backend is missing: what a placement on it says, or that there is a fallback.
std::string without_backend(const Library& library, const std::string& backend) {
  for (const Program& program : library.manifest().programs) {
    for (const artifact::Placement& placement : program.placement) {
      if (placement.backend == backend && placement.region.empty() && !placement.message.empty())
        return placement.message;
    }
  }
  return "install that backend, or compile the model without it";
}

// A kind that ops were placed on is a backend. Any other is that of a module that a user imported.
std::string missing_loader(const Library& library, const std::string& kind) {
  bool is_backend = false;
  for (const Program& program : library.manifest().programs) {
    for (const artifact::Placement& placement : program.placement) is_backend |= placement.backend == kind;
  }
  if (is_backend)
    return fmt::format("'{}' needs the backend '{}', which this runtime does not have; {}", library.name(), kind,
                       without_backend(library, kind));
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
                  library.name(), artifact::callee_of(step.action), program.name,
                  step.op.empty() ? "" : fmt::format(" for {}", step.op))};
}

void check_threads(int32_t threads) {
  if (threads < 0 || threads > runtime::kMaxWorkers)
    throw_user_error("{} threads were asked for; ask for 1 to {}, or 0 for the artifact's default", threads,
                     runtime::kMaxWorkers);
}

std::shared_ptr<runtime::ThreadPool> choose_pool(const executors::ExecutorOptions& options, const Manifest& manifest) {
  check_threads(options.threads);
  if (options.pool != nullptr) return options.pool;
  if (!options.cpus.empty()) {
    const auto all = static_cast<int32_t>(std::min(options.cpus.size(), size_t{runtime::kMaxWorkers}));
    return std::make_shared<runtime::ThreadPool>(options.threads > 0 ? options.threads : all, options.cpus);
  }
  if (options.threads > 0) return runtime::shared_pool(options.threads);
  return runtime::shared_pool(manifest.default_threads > 0 ? std::min(manifest.default_threads, runtime::kMaxWorkers)
                                                           : runtime::num_processors());
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

namespace {

// An executor with all that it borrows.
struct LoadedExecutor {
  std::shared_ptr<const Artifact> artifact;
  std::vector<PackedFunc> imports;  // of external steps, in order of steps
  std::unique_ptr<executors::GraphExecutor> executor;
};

Refusal kernel_missing(const Library& library, const Program& program, const std::string& symbol) {
  return {HR_REASON_SYMBOL_MISSING,
          fmt::format("'{}' does not have the kernel '{}' that its program '{}' calls; compile the model again",
                      library.name(), symbol, program.name)};
}

// Finds what each step calls. Callees point into `loaded.imports`, which does not grow any more afterwards.
Expected<std::vector<executors::Callee>> resolve(const Program& program, LoadedExecutor& loaded) {
  const Library& library = *loaded.artifact->library;
  std::vector<executors::Callee> callees;
  loaded.imports.reserve(program.graph.steps.size());
  for (const Step& step : program.graph.steps) {
    executors::Callee callee;
    if (const auto* kernel = std::get_if<artifact::KernelCall>(&step.action)) {
      callee.kernel = reinterpret_cast<hr_kernel>(library.symbol(kernel->symbol));
      if (callee.kernel == nullptr) return kernel_missing(library, program, kernel->symbol);
    } else if (const auto* external = std::get_if<artifact::ExternalCall>(&step.action)) {
      const PackedFunc function = find_import(loaded.artifact->root, external->function);
      if (!function) return import_missing(library, program, step);
      loaded.imports.push_back(function);
      callee.external = external_call(loaded.imports.back());
    }
    callees.push_back(callee);
  }
  return callees;
}

// Refuses a program that needs memory elsewhere than on this process's CPU.
std::optional<Refusal> device_refusal(const Program& program, const std::string& name) {
  const artifact::Location here;
  const auto refuse = [&](const artifact::Location& location) {
    return Refusal{
        HR_REASON_DEVICE_MISSING,
        fmt::format("'{}' has the program '{}' with memory at {}, and this runtime has the CPU's, {}; run it "
                    "where that device and its runtime are, or compile the model for the CPU",
                    name, program.name, artifact::to_string(location), artifact::to_string(here))};
  };
  for (const auto* specs : {&program.inputs, &program.outputs}) {
    for (const artifact::TensorSpec& spec : *specs) {
      if (spec.location != here) return refuse(spec.location);
    }
  }
  for (const artifact::Arena& arena : program.memory.arenas) {
    if (arena.location != here) return refuse(arena.location);
  }
  for (const artifact::Entry& entry : program.graph.entries) {
    if (entry.location != here) return refuse(entry.location);
  }
  return std::nullopt;
}

}  // namespace

Expected<std::shared_ptr<executors::Executor>> try_make_executor(std::shared_ptr<const Artifact> artifact,
                                                                 const std::string& program_name,
                                                                 const executors::ExecutorOptions& options) {
  const Library& library = *artifact->library;
  const Manifest& manifest = library.manifest();
  const Program* program = artifact::find_program(manifest, program_name);
  if (program == nullptr) {
    return Refusal{HR_REASON_NOT_FOUND, fmt::format("'{}' has no program '{}'; it has {}", library.name(), program_name,
                                                    program_names(manifest))};
  }
  if (std::optional<Refusal> refusal = runtime::cpu_refusal(*program, library.name())) return *std::move(refusal);
  if (std::optional<Refusal> refusal = device_refusal(*program, library.name())) return *std::move(refusal);
  std::shared_ptr<runtime::ThreadPool> pool = choose_pool(options, manifest);
  const auto loaded = std::make_shared<LoadedExecutor>();
  loaded->artifact = std::move(artifact);
  const Expected<std::vector<executors::Callee>> callees = resolve(*program, *loaded);
  if (!callees) return callees.refusal();
  std::vector<const std::byte*> weights;
  for (size_t i = 0; i < manifest.weights.size(); ++i) weights.push_back(library.weight(i));
  loaded->executor = std::make_unique<executors::GraphExecutor>(
      executors::GraphParts{.program = *program, .callees = callees.value(), .weights = weights}, std::move(pool));
  return std::shared_ptr<executors::Executor>(loaded, loaded->executor.get());
}

std::shared_ptr<executors::Executor> make_executor(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                                   const executors::ExecutorOptions& options) {
  return try_make_executor(std::move(artifact), program, options).value_or_throw();
}

}  // namespace headrace::load
