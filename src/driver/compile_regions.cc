#include "driver/compile_regions.h"

#include <algorithm>
#include <set>

#include "codegen/c_module.h"
#include "driver/all_backends.h"
#include "driver/region_constants.h"
#include "driver/target_hooks.h"
#include "object/function.h"
#include "partition/backend.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::driver {

namespace {

using partition::Backend;
using partition::Region;
using partition::RegionCode;
using partition::RegionSource;

relay::Function with_symbol(const Region& region) {
  if (relay::symbol_of(*region.function)) return region.function;
  Map<std::string, Value> attrs = region.function->attrs;
  attrs.set(relay::kGlobalSymbol, Value(region.name));
  return copy_with(*region.function, [&](relay::FunctionNode& copy) { copy.attrs = attrs; });
}

class RegionCompiler {
 public:
  RegionCompiler(std::span<const Region> regions, const IRModule& program, std::span<const runtime::Module> modules,
                 Target target, const codegen::NativeTarget& machine)
      : regions_(regions), program_(program), modules_(modules), target_(std::move(target)), machine_(machine) {
    made_.regions.resize(regions.size());
    made_.refused.resize(regions.size());
  }

  CompiledRegions compile(const std::map<std::string, Map<std::string, Value>>& options) {
    std::map<std::string, std::vector<size_t>> by_backend;
    for (size_t i = 0; i < regions_.size(); ++i) {
      std::vector<size_t>& same = by_backend[regions_[i].backend];
      if (same.empty()) made_.backends.push_back({.name = regions_[i].backend, .version = ""});
      same.push_back(i);
    }
    for (artifact::Backend& row : made_.backends) {
      const std::vector<size_t>& indices = by_backend.at(row.name);
      if (const auto backend = find_backend(row.name)) {
        row.version = backend->version();
        const auto its = options.find(std::string(backend->name()));
        compile_by(*backend, indices, its == options.end() ? Map<std::string, Value>() : its->second);
      } else {
        for (const size_t i : indices) find_code(i);
      }
    }
    return std::move(made_);
  }

 private:
  void compile_by(const Backend& backend, const std::vector<size_t>& indices, const Map<std::string, Value>& options) {
    std::vector<size_t> left = indices;
    std::vector<RegionSource> sources;
    for (const size_t i : indices) {
      const relay::Function function = with_symbol(regions_[i]);
      sources.push_back({.name = regions_[i].name,
                         .function = function,
                         .module = closed_module(regions_[i].name, function, program_)});
    }
    const std::string kind(backend.name());
    if (has_hooks(kind)) compile_by_hooks(kind, left, sources, options);
    if (left.empty()) return;
    const std::vector<Expected<RegionCode>> codes =
        backend.compile({.regions = sources, .target = target_, .machine = machine_, .options = options});
    HEADRACE_CHECK(codes.size() == left.size(), "the backend '{}' returned {} codes for {} regions", backend.name(),
                   codes.size(), left.size());
    for (size_t k = 0; k < codes.size(); ++k) {
      take(left[k], codes[k], options);
      if (const runtime::Module& code = made_.regions[left[k]].module)
        made_.regions[left[k]].module = with_constants(kind, sources[k], code);
      if (made_.regions[left[k]].module) take_module(regions_[left[k]], made_.regions[left[k]].module);
    }
  }

  // Leaves in `indices` and `sources` what the hooks leave to the backend itself.
  void compile_by_hooks(const std::string& kind, std::vector<size_t>& indices, std::vector<RegionSource>& sources,
                        const Map<std::string, Value>& options) {
    const std::vector<HookedRegion> hooked = run_hooks(kind, sources, program_, options);
    std::vector<size_t> left;
    sources.clear();
    for (size_t k = 0; k < hooked.size(); ++k) {
      const size_t i = indices[k];
      if (hooked[k].source) {
        left.push_back(i);
        sources.push_back(*hooked[k].source);
      } else if (codegen::is_c_module(hooked[k].module)) {
        take_source(i, hooked[k].module, options);
      } else if (hooked[k].module) {
        made_.regions[i].module = hooked[k].module;
        take_module(regions_[i], hooked[k].module);
      } else {
        made_.regions[i] = {.symbol = regions_[i].name, .module = {}, .kernel = hooked[k].kernel};
      }
    }
    indices = left;
  }

  void take(size_t index, const Expected<RegionCode>& code, const Map<std::string, Value>& options) {
    if (!code) {
      made_.refused[index] = code.refusal();
      return;
    }
    const RegionCode& made = code.value();
    if (!made.module && made.symbol.empty())
      throw_user_error("the backend '{}' gives no code for the region '{}', and no reason", regions_[index].backend,
                       regions_[index].name);
    if (codegen::is_c_module(made.module)) return take_source(index, made.module, options);
    made_.regions[index] = {.symbol = made.symbol, .module = made.module, .workspace_bytes = made.workspace_bytes};
    if (!made.object.bytes.empty()) made_.objects.push_back(made.object);
    if (made.source) add_once(made_.sources, made.source);
  }

  // Compiles a module of C source, which several regions may share, by the C compiler that the backend's option `cc`
  // names.
  void take_source(size_t index, const runtime::Module& source, const Map<std::string, Value>& options) {
    const Region& region = regions_[index];
    if (!source.GetFunction("get_const_vars")().as<Array<std::string>>().empty())
      throw_at(region.function->span, "compile",
               fmt::format("the C source for the region '{}' asks for constants, which kernels do not take; write them "
                           "into the source",
                           region.name));
    made_.regions[index] = {.symbol = region.name, .module = {}};
    if (!add_once(made_.sources, source)) return;
    const auto cc = options.get("cc");
    const std::string compiler = cc && cc->is<std::string>() ? cc->as<std::string>() : "";
    made_.objects.push_back(
        {.name = fmt::format("the C source of {}", region.backend),
         .bytes = codegen::compile_c_module(source, compiler, fmt::format("the backend '{}'", region.backend))});
  }

  // Returns whether the module was not there yet.
  static bool add_once(std::vector<runtime::Module>& modules, const runtime::Module& module) {
    const auto is_it = [&](const runtime::Module& known) { return known.object() == module.object(); };
    if (std::any_of(modules.begin(), modules.end(), is_it)) return false;
    modules.push_back(module);
    return true;
  }

  void take_module(const Region& region, const runtime::Module& module) {
    if (!module.body().declares(region.name) && !module.GetFunction(region.name, true))
      throw_at(region.function->span, "compile",
               fmt::format("the backend '{}' returned a module for the region '{}' that has no function of that name",
                           region.backend, region.name));
    add_once(made_.modules, module);
  }

  // Finds the code of a region for which there is no backend.
  void find_code(size_t index) {
    const Region& region = regions_[index];
    for (const runtime::Module& module : modules_) {
      if (!module || !module.GetFunction(region.name, true)) continue;
      made_.regions[index].module = module;
      return;
    }
    if (find_global(region.name)) return;
    std::string remedy = why_missing(region.backend);
    if (remedy.empty())
      remedy = fmt::format(
          "register the function {1}{0}, which compiles such regions, or the function '{2}', which computes this one; "
          "a backend in a library is loaded by --plugin (headrace.load_backend in Python)",
          region.backend, kRegionCompilerPrefix, region.name);
    throw_at(region.function->span, "compile",
             fmt::format("the function '{}' is for the compiler '{}', which is not registered: {}", region.name,
                         region.backend, remedy));
  }

  std::span<const Region> regions_;
  const IRModule& program_;
  std::span<const runtime::Module> modules_;
  Target target_;
  const codegen::NativeTarget& machine_;
  CompiledRegions made_;
};

}  // namespace

IRModule closed_module(const std::string& name, const relay::Function& function, const IRModule& program) {
  IRModule module = snapshot(program);
  module->set_functions({});
  module->add_function(make_global_var(name), function);
  std::vector<Expr> pending{function};
  std::set<std::string> seen{name};
  while (!pending.empty()) {
    const Expr next = pending.back();
    pending.pop_back();
    relay::post_order(
        next, [](const Expr&) { return true; },
        [&](const Expr& expr) {
          const auto* global = expr.as<GlobalVarNode>();
          if (global == nullptr || !program->find_global_var(global->name_hint) ||
              !seen.insert(global->name_hint).second)
            return;
          const BaseFunc callee = program->lookup(global->name_hint);
          module->add_function(program->get_global_var(global->name_hint), callee, true);
          if (callee.is<relay::FunctionNode>()) pending.push_back(callee.cast<relay::FunctionNode>());
        });
  }
  return module;
}

void drop_refused(CompiledRegions& compiled, std::span<const Region> left) {
  std::vector<CompiledRegion> kept;
  for (size_t i = 0; i < compiled.regions.size(); ++i) {
    if (!compiled.refused[i]) kept.push_back(std::move(compiled.regions[i]));
  }
  compiled.regions = std::move(kept);
  compiled.refused.assign(compiled.regions.size(), std::nullopt);
  std::erase_if(compiled.backends, [&](const artifact::Backend& row) {
    return std::none_of(left.begin(), left.end(), [&](const Region& region) { return region.backend == row.name; });
  });
}

CompiledRegions compile_regions(std::span<const partition::Region> regions, const IRModule& program,
                                std::span<const runtime::Module> modules, const Target& target,
                                const codegen::NativeTarget& machine,
                                const std::map<std::string, Map<std::string, Value>>& options) {
  return RegionCompiler(regions, program, modules, target, machine).compile(options);
}

}  // namespace headrace::driver
