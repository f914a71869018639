#include "load/artifact.h"

#include <set>
#include <utility>

#include "executors/graph/graph_executor.h"
#include "load/all_loaders.h"
#include "load/entry_check.h"
#include "load/external_call.h"
#include "runtime/loader_finder.h"

namespace headrace::load {
namespace {

using artifact::Manifest;
using artifact::Program;
using artifact::Region;
using artifact::Step;
using runtime::Library;
using runtime::Module;
using LibraryPtr = std::shared_ptr<const Library>;

// The module at the top of the import tree: it only holds the file's modules together.
class RootBody : public runtime::ModuleBody {
 public:
  std::string_view type_key() const override { return "artifact"; }
  PackedFunc get_function(const std::string&, const Module&) override { return {}; }
};

// A module that a region needs belongs to the region's backend. Any other is one that a user imported.
std::string missing_loader(const Library& library, size_t index) {
  const std::string& kind = library.manifest().modules[index].loader;
  for (const Region& region : library.manifest().regions) {
    if (region.module == static_cast<int32_t>(index))
      return fmt::format(
          "'{}' needs the backend '{}', and this runtime has no loader for modules of the kind '{}'; {}, or compile "
          "the model without it",
          library.name(), region.backend, kind,
          kind.starts_with(runtime::kPythonKindPrefix)
              ? "it is in Python: install its package or give its file (--plugin FILE.py), and use `python -m "
                "headrace` or "
                "headrace.load"
              : "load its library (--plugin, headrace.load_backend in Python), or install it");
  }
  return fmt::format(
      "'{}' has a module of the kind '{}', for which no loader is registered; register the function {}{} "
      "(register_func in "
      "Python, register_module_loader in C++), or load the library that does, first",
      library.name(), kind, runtime::kLoadBinaryPrefix, kind);
}

// Returns the version of the backend that made a module for regions; empty if no region has it.
std::string recorded_version(const Manifest& manifest, size_t index) {
  for (const Region& region : manifest.regions) {
    if (region.module != static_cast<int32_t>(index)) continue;
    for (const artifact::Backend& backend : manifest.backends) {
      if (backend.name == region.backend) return backend.version;
    }
  }
  return "";
}

// A loader's word on its blob says nothing of the file.
Module make_module(const Library& library, const std::string& kind, const runtime::SavedModule& saved) {
  const auto explain = [&](const Error& error) {
    return fmt::format("'{}': its external module of kind '{}' cannot be loaded: {}", library.name(), kind,
                       error.message());
  };
  try {
    return runtime::load_from_binary(kind, saved);
  } catch (const MissingError& error) {
    throw MissingError(explain(error), error.where());
  } catch (const UserError& error) {
    throw UserError(explain(error), error.where());
  }
}

Expected<Module> load_external(const LibraryPtr& library, size_t index) {
  const artifact::ExternalModule& external = library->manifest().modules[index];
  const Expected<std::string> blob = library->blob(index);
  if (!blob) return blob.refusal();
  runtime::SavedModule saved{.bytes = blob.value(), .version = recorded_version(library->manifest(), index)};
  for (const int64_t weight : external.constants)
    saved.constants.push_back(view_weight(library, static_cast<size_t>(weight)));
  Module module = make_module(*library, external.loader, saved);
  if (!module) return Refusal{HR_REASON_BACKEND_MISSING, missing_loader(*library, index)};
  return module;
}

// Returns for each module whether the file can be used without it: it is there for regions alone, which all have a
// native form, or for such a module.
std::vector<bool> may_be_missing(const Manifest& manifest) {
  std::vector<bool> may(manifest.modules.size(), false), is_imported = may, must = may;
  for (const Region& region : manifest.regions) {
    if (region.module < 0) continue;
    (region.fallback.empty() ? must : may)[static_cast<size_t>(region.module)] = true;
  }
  // Importers come before their imports.
  for (size_t i = 0; i < may.size(); ++i) {
    may[i] = may[i] && !must[i];
    for (const int32_t import : manifest.modules[i].imports) {
      const auto at = static_cast<size_t>(import);
      may[at] = may[i] && (may[at] || !is_imported[at]);
      must[at] = must[at] || !may[i];
      is_imported[at] = true;
    }
  }
  return may;
}

// Loads a module that the file can be used without: an error of its loader is a refusal, too.
Expected<Module> load_or_refuse(const LibraryPtr& library, size_t index) {
  try {
    return load_external(library, index);
  } catch (const MissingError& error) {
    return Refusal{HR_REASON_BACKEND_MISSING, error.what()};
  } catch (const UserError& error) {
    return Refusal{HR_REASON_BACKEND_FAILED, error.what()};
  }
}

// Loads the modules of the file, each with its imports. A module is a refusal where it or one of its imports cannot be
// loaded and the file can be used without it; where it cannot, that is the refusal of the whole.
Expected<std::vector<Expected<Module>>> load_modules(const LibraryPtr& library) {
  const std::vector<artifact::ExternalModule>& rows = library->manifest().modules;
  const std::vector<bool> may_miss = may_be_missing(library->manifest());
  std::vector<Expected<Module>> modules;
  for (size_t i = 0; i < rows.size(); ++i) {
    modules.push_back(may_miss[i] ? load_or_refuse(library, i) : load_external(library, i));
    if (!modules[i] && !may_miss[i]) return modules[i].refusal();
  }
  for (size_t i = rows.size(); i-- > 0;) {
    for (const int32_t import : rows[i].imports) {
      const Expected<Module>& imported = modules[static_cast<size_t>(import)];
      if (!imported) modules[i] = imported.refusal();
      if (modules[i]) modules[i].value().Import(imported.value());
    }
  }
  return modules;
}

// Makes the module that imports those of the file which no other imports.
Module root_of(const Manifest& manifest, const std::vector<Expected<Module>>& modules) {
  std::set<int32_t> imported;
  for (const artifact::ExternalModule& row : manifest.modules) imported.insert(row.imports.begin(), row.imports.end());
  const Module root(std::make_unique<RootBody>());
  for (size_t i = 0; i < modules.size(); ++i) {
    if (modules[i] && !imported.contains(static_cast<int32_t>(i))) root.Import(modules[i].value());
  }
  return root;
}

Expected<std::shared_ptr<const Artifact>> make_artifact(Expected<LibraryPtr> library) {
  if (!library) return library.refusal();
  register_all_loaders();
  Expected<std::vector<Expected<Module>>> modules = load_modules(library.value());
  if (!modules) return modules.refusal();
  Module root = root_of(library.value()->manifest(), modules.value());
  return std::shared_ptr<const Artifact>(
      std::make_shared<Artifact>(Artifact{std::move(library.value()), std::move(modules.value()), std::move(root)}));
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

void check_region_timeout(double seconds) {
  if (!(seconds >= 0 && seconds <= executors::kMaxRegionTimeout))
    throw_user_error("a time limit of {} seconds for regions; give one from 0 (none) to {}", seconds,
                     executors::kMaxRegionTimeout);
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

NDArray view_weight(const std::shared_ptr<const runtime::Library>& library, size_t index) {
  const artifact::Weight& weight = library->manifest().weights[index];
  // The cast is safe: the memory is mapped for reading, and who gets a view only reads it.
  auto* data = const_cast<std::byte*>(library->weight(index));
  return NDArray::view(data, Shape(weight.shape.begin(), weight.shape.end()), weight.dtype,
                       [library] { static_cast<void>(library); })
      .as_read_only();
}

Expected<std::shared_ptr<const Artifact>> open_artifact(const std::string& path) {
  return make_artifact(Library::open(path));
}

Expected<std::shared_ptr<const Artifact>> open_artifact(Descriptor descriptor, const std::string& name) {
  return make_artifact(Library::open(std::move(descriptor), name));
}

Expected<std::shared_ptr<const Artifact>> open_artifact(Descriptor descriptor, const artifact::ElfSection& section,
                                                        const std::string& name) {
  return make_artifact(Library::open(std::move(descriptor), section, name));
}

namespace {

// The data that an executor borrows.
struct LoadedCode {
  std::shared_ptr<const Artifact> artifact;
  std::vector<PackedFunc> imports;             // functions of external steps and regions, in order of steps
  std::vector<executors::NativeForm> natives;  // one per region, in order of steps
};

struct LoadedExecutor {
  std::shared_ptr<const LoadedCode> code;
  std::unique_ptr<executors::GraphExecutor> executor;
};

Refusal kernel_missing(const Library& library, const Program& program, const std::string& symbol) {
  return {HR_REASON_SYMBOL_MISSING,
          fmt::format("'{}' does not have the kernel '{}' that its program '{}' calls; compile the model again",
                      library.name(), symbol, program.name)};
}

// Finds what the steps of a program call. Callees point into `loaded`, whose lists do not grow any more afterwards.
class Resolver {
 public:
  Resolver(const Program& program, LoadedCode& loaded, const executors::ExecutorOptions& options)
      : program_(program), loaded_(loaded), options_(options), library_(*loaded.artifact->library) {
    loaded.imports.reserve(program.graph.steps.size());
    loaded.natives.reserve(program.graph.steps.size());
  }

  Expected<std::vector<executors::Callee>> resolve() {
    std::vector<executors::Callee> callees;
    for (const Step& step : program_.graph.steps) {
      executors::Callee callee;
      if (std::optional<Refusal> refusal = resolve_step(step, callee)) return *std::move(refusal);
      callees.push_back(callee);
    }
    return callees;
  }

 private:
  std::optional<Refusal> resolve_step(const Step& step, executors::Callee& callee) {
    if (const auto* kernel = std::get_if<artifact::KernelCall>(&step.action)) {
      return find_kernel(kernel->symbol, callee);
    }
    if (const auto* external = std::get_if<artifact::ExternalCall>(&step.action)) {
      const PackedFunc function = find_import(loaded_.artifact->root, external->function);
      if (!function) return import_missing(library_, program_, step);
      set_external(function, callee);
    } else if (std::holds_alternative<artifact::RegionCall>(step.action)) {
      return resolve_region(*artifact::find_region(library_.manifest(), artifact::callee_of(step.action)), step,
                            callee);
    }
    return std::nullopt;
  }

  std::optional<Refusal> find_kernel(const std::string& symbol, executors::Callee& callee) const {
    callee.kernel = reinterpret_cast<hr_kernel>(library_.symbol(symbol));
    if (callee.kernel == nullptr) return kernel_missing(library_, program_, symbol);
    return std::nullopt;
  }

  void set_external(const PackedFunc& function, executors::Callee& callee) {
    loaded_.imports.push_back(function);
    callee.external = external_call(loaded_.imports.back());
  }

  // Finds the code of a region's backend, and the region's native form where the options allow it.
  std::optional<Refusal> resolve_region(const Region& region, const Step& step, executors::Callee& callee) {
    std::optional<Refusal> missing = find_region_code(region, step, callee);
    callee.backend = region.backend;
    callee.has_native_form = !region.fallback.empty();
    if (region.fallback.empty() || options_.fallback == executors::Fallback::none) return missing;
    const auto make = [artifact = loaded_.artifact, name = region.fallback, options = options_] {
      return make_executor(artifact, name, options);
    };
    loaded_.natives.push_back({.backend = region.backend, .make = make, .missing = std::move(missing)});
    callee.native = &loaded_.natives.back();
    return std::nullopt;
  }

  std::optional<Refusal> find_module_kernel(const Module& module, const std::string& name,
                                            executors::Callee& callee) const {
    try {
      callee.module_kernel = module.body().get_kernel(name, options_.pool->num_workers());
    } catch (const UserError& error) {
      return Refusal{HR_REASON_BACKEND_FAILED, error.what()};
    }
    return std::nullopt;
  }

  std::optional<Refusal> find_module_code(const Module& module, const Region& region, executors::Callee& callee) {
    if (std::optional<Refusal> refusal = find_module_kernel(module, region.name, callee)) return refusal;
    if (callee.module_kernel) return std::nullopt;
    const PackedFunc function = module.GetFunction(region.name, true);
    if (function) return set_external(function, callee), std::nullopt;
    return Refusal{HR_REASON_BACKEND_FAILED,
                   fmt::format("the module of the backend '{}' in '{}' has no function '{}', which it was compiled "
                               "for; compile the model again",
                               region.backend, library_.name(), region.name)};
  }

  std::optional<Refusal> check_entry(const Module& module, const Region& region, const Step& step) const {
    try {
      return entry_refusal(module, region, program_, step);
    } catch (const UserError& error) {
      return Refusal{HR_REASON_BACKEND_FAILED, error.what()};
    }
  }

  std::optional<Refusal> find_region_code(const Region& region, const Step& step, executors::Callee& callee) {
    if (!region.symbol.empty()) return find_kernel(region.symbol, callee);
    if (region.module >= 0) {
      const Expected<Module>& module = loaded_.artifact->modules[static_cast<size_t>(region.module)];
      if (!module) return module.refusal();
      if (std::optional<Refusal> refusal = find_module_code(module.value(), region, callee)) return refusal;
      return check_entry(module.value(), region, step);
    }
    const PackedFunc function = find_global(region.name);
    if (!function) return Refusal{HR_REASON_BACKEND_MISSING, import_missing(library_, program_, step).message};
    set_external(function, callee);
    return std::nullopt;
  }

  const Program& program_;
  LoadedCode& loaded_;
  const executors::ExecutorOptions& options_;
  const Library& library_;
};

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
  check_region_timeout(options.region_timeout_seconds);
  const auto code = std::make_shared<LoadedCode>();
  code->artifact = std::move(artifact);
  const executors::ExecutorOptions on_pool{.pool = pool, .fallback = options.fallback};
  const Expected<std::vector<executors::Callee>> callees = Resolver(*program, *code, on_pool).resolve();
  if (!callees) return callees.refusal();
  std::vector<const std::byte*> weights;
  for (size_t i = 0; i < manifest.weights.size(); ++i) weights.push_back(library.weight(i));
  const auto loaded = std::make_shared<LoadedExecutor>();
  loaded->code = code;
  loaded->executor = std::make_unique<executors::GraphExecutor>(
      executors::GraphParts{.program = *program,
                            .callees = callees.value(),
                            .weights = weights,
                            .region_timeout_seconds = options.region_timeout_seconds,
                            .owner = code},
      std::move(pool));
  return std::shared_ptr<executors::Executor>(loaded, loaded->executor.get());
}

std::shared_ptr<executors::Executor> make_executor(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                                   const executors::ExecutorOptions& options) {
  return try_make_executor(std::move(artifact), program, options).value_or_throw();
}

}  // namespace headrace::load
