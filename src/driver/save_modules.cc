#include "driver/save_modules.h"

#include <algorithm>
#include <new>
#include <set>
#include <unordered_map>

#include "base/utf8.h"
#include "object/foreign_error.h"

namespace headrace::driver {

using runtime::Module;
using runtime::ModuleObj;

namespace {

// Returns the imports that must be saved beside a module: all, or none if its own bytes contain them.
std::vector<Module> saved_imports(ModuleObj& module) {
  if (module.body->saves_imports()) return {};
  return Module(Ref<ModuleObj>(&module)).imports();
}

struct Order {
  std::vector<ModuleObj*> modules;
  // The imports at the time of the first visit; other threads may add imports meanwhile.
  std::unordered_map<const ModuleObj*, std::vector<Module>> imports;
};

// Sorts all modules topologically, importers before their imports, otherwise in the order of first mention. This is the
// reverse post-order of a depth-first walk that visits the last import first. Uses an explicit stack, because chains of
// imports may be long.
Order in_order(std::span<const Module> roots) {
  struct Visit {
    ModuleObj* module;
    size_t left;  // the number of imports not yet visited, which are the first ones
  };
  Order order;
  std::vector<Visit> path;
  const auto enter = [&](ModuleObj* module) {
    if (order.imports.contains(module)) return;
    const auto& imports = order.imports.emplace(module, saved_imports(*module)).first->second;
    path.push_back({module, imports.size()});
  };
  for (size_t i = roots.size(); i-- > 0;) {
    enter(roots[i].object().get());
    while (!path.empty()) {
      Visit& top = path.back();
      if (top.left > 0) {
        enter(order.imports.at(top.module)[--top.left].object().get());
      } else {
        order.modules.push_back(top.module);
        path.pop_back();
      }
    }
  }
  std::reverse(order.modules.begin(), order.modules.end());
  return order;
}

void check_roots(std::span<const Module> roots) {
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i]) throw_user_error("external module {} of the model is null", i);
  }
}

// Checks that no root is also imported by a later module. The manifest stores one position for each module, and its
// importer comes first.
void check_places(std::span<const Module> roots, const Order& order) {
  std::set<const ModuleObj*> imported, seen;
  for (const auto& [module, imports] : order.imports) {
    for (const Module& import : imports) imported.insert(import.object().get());
  }
  for (const Module& root : roots) {
    if (!seen.contains(root.object().get()) && imported.contains(root.object().get()))
      throw_user_error(
          "the model has the external module of kind '{}' before a module that imports it too, and an artifact cannot "
          "say so; give it after that one, or not at all",
          root.type_key());
    for (const ModuleObj* module : in_order({&root, 1}).modules) seen.insert(module);
  }
}

runtime::SavedModule save(const Module& module) {
  const std::string_view kind = module.type_key();
  if (kind.empty() || !is_utf8(kind))
    throw_user_error("an external module's kind, '{}', is not a name; it is what its loader is found by", kind);
  try {
    return module.save_apart();
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error& error) {
    const auto* foreign = dynamic_cast<const ForeignError*>(&error);
    if (foreign != nullptr && foreign->is_interrupt()) throw;
    throw UserError(fmt::format("the external module of kind '{}' is not saved: {}", kind, error.message()),
                    error.where());
  } catch (const std::exception& error) {
    throw_user_error("the external module of kind '{}' is not saved: {}", kind, error.what());
  }
}

}  // namespace

SavedModules save_modules(std::span<const Module> roots) {
  check_roots(roots);
  const Order order = in_order(roots);
  check_places(roots, order);
  std::unordered_map<const ModuleObj*, int32_t> rows;
  for (const ModuleObj* module : order.modules) rows.emplace(module, static_cast<int32_t>(rows.size()));
  SavedModules saved;
  for (const Module& root : roots) saved.roots.push_back(rows.at(root.object().get()));
  for (ModuleObj* module : order.modules) {
    artifact::ExternalModule row{.loader = std::string(module->body->type_key()),
                                 .section = fmt::format("{}{}", artifact::kBlobSectionPrefix, saved.rows.size()),
                                 .imports = {}};
    for (const Module& import : order.imports.at(module)) row.imports.push_back(rows.at(import.object().get()));
    runtime::SavedModule apart = save(Module(Ref<ModuleObj>(module)));
    saved.blobs.push_back(std::move(apart.bytes));
    saved.constants.push_back(std::move(apart.constants));
    saved.rows.push_back(std::move(row));
  }
  return saved;
}

}  // namespace headrace::driver
