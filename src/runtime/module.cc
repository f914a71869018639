#include "runtime/module.h"

#include <mutex>
#include <set>

#include "runtime/loader_finder.h"
#include "runtime/nested_load.h"

namespace headrace::runtime {
namespace {

std::string loader_name(const std::string& key) { return fmt::format("{}{}", kLoadBinaryPrefix, key); }

std::string version_check_name(const std::string& key) { return "runtime.module.checkversion_" + key; }

// Guards the imports of all modules, because the check for a cycle looks at many of them.
std::mutex& imports_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Visits `root` and all its imports once each, depth first in the order of imports, with a stack of its own. The caller
// holds the mutex.
std::vector<ModuleObj*> reachable(ModuleObj* root) {
  std::vector<ModuleObj*> order;
  std::vector<ModuleObj*> waiting = {root};
  std::set<const ModuleObj*> seen;
  while (!waiting.empty()) {
    ModuleObj* module = waiting.back();
    waiting.pop_back();
    if (!seen.insert(module).second) continue;
    order.push_back(module);
    for (size_t i = module->imports.size(); i-- > 0;) waiting.push_back(module->imports[i].get());
  }
  return order;
}

std::vector<ModuleObj*> all_of(ModuleObj* root) {
  const std::lock_guard lock(imports_mutex());
  return reachable(root);
}

}  // namespace

std::string ModuleBody::save_to_binary(const Module&) const {
  throw_user_error("a module of kind '{}' cannot be saved in an artifact", type_key());
}

void ModuleBody::save_to_file(const std::string& path, const std::string& format, const Module&) const {
  throw_user_error("a module of kind '{}' cannot be saved to '{}' in format '{}'", type_key(), path, format);
}

std::string ModuleBody::get_source(const std::string&) const { return ""; }

Module::Module(std::unique_ptr<ModuleBody> body) : object_(make_object<ModuleObj>()) {
  object_->body = std::move(body);
}

std::string EntryTensor::to_string() const {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(size < 0 ? "?" : std::to_string(size));
  return fmt::format("{} {}", dtype.to_string(), sizes.empty() ? "scalar" : fmt::format("{}", fmt::join(sizes, "x")));
}

PackedFunc Module::GetFunction(const std::string& name, bool query_imports) const {
  if (!query_imports) return body().get_function(name, *this);
  for (ModuleObj* module : all_of(object_.get())) {
    PackedFunc function = module->body->get_function(name, Module(Ref<ModuleObj>(module)));
    if (function) return function;
  }
  return {};
}

std::optional<EntryTypes> Module::entry_types(const std::string& name) const {
  for (ModuleObj* module : all_of(object_.get())) {
    if (std::optional<EntryTypes> types = module->body->entry_types(name)) return types;
  }
  return std::nullopt;
}

PackedFunc Module::GetFuncFromEnv(const std::string& name) const {
  for (const Module& import : imports()) {
    if (PackedFunc function = import.GetFunction(name, true)) return function;
  }
  if (PackedFunc function = find_global(name)) return function;
  throw_user_error(
      "a module of kind '{}' needs the function '{}', which no imported module and no global function provides; load "
      "the library that registers it first",
      type_key(), name);
}

bool Module::ImplementsFunction(const std::string& name, bool query_imports) const {
  return static_cast<bool>(GetFunction(name, query_imports));
}

void Module::Import(const Module& other) const {
  if (!other) throw_user_error("a null module cannot be imported");
  const std::lock_guard lock(imports_mutex());
  for (const ModuleObj* module : reachable(other.object_.get())) {
    if (module == object_.get())
      throw_user_error("importing a module of kind '{}' into one of kind '{}' would make a cycle", other.type_key(),
                       type_key());
  }
  object_->imports.push_back(other.object_);
}

std::vector<Module> Module::imports() const {
  const std::lock_guard lock(imports_mutex());
  std::vector<Module> modules;
  for (const Ref<ModuleObj>& import : object_->imports) modules.emplace_back(import);
  return modules;
}

void register_module_loader(const std::string& key, const ModuleLoader& loader) {
  register_global(loader_name(key), make_packed([loader](const Bytes& bytes) { return loader(bytes.data); }), true);
}

void register_apart_loader(const std::string& key, const ApartLoader& loader) {
  const auto load = [loader, key](Args args) {
    if (args.size() < 1 || args.size() > 2)
      throw_user_error("the loader '{}' got {} arguments; it takes bytes and perhaps their constants", loader_name(key),
                       args.size());
    SavedModule saved{.bytes = args.at<Bytes>(0).data};
    if (args.size() == 2) saved.constants = args.at<Array<NDArray>>(1).to_vector();
    return Value(loader(saved));
  };
  register_global(loader_name(key), PackedFunc(load), true);
}

void register_version_check(const std::string& key, const VersionCheck& check) {
  register_global(version_check_name(key), make_packed([check](const std::string& recorded) { check(recorded); }),
                  true);
}

void refuse_version(const std::string& backend, const std::string& recorded, const std::string& version,
                    const std::string& why) {
  throw_user_error(
      "the backend '{}' does not load its part: the region was compiled by version {} of the backend, and this is "
      "version {}{}; compile the model again",
      backend, recorded, version, why.empty() ? "" : ", which says: " + why);
}

Module load_from_binary(const std::string& key, const SavedModule& saved) {
  PackedFunc loader = find_global(loader_name(key));
  if (!loader) {
    find_loader(key);
    loader = find_global(loader_name(key));
  }
  if (!loader) return {};
  if (!saved.version.empty()) {
    if (const PackedFunc check = find_global(version_check_name(key))) check(saved.version);
  }
  const std::string shown = fmt::format("the {} bytes of a module of the kind '{}'", saved.bytes.size(), key);
  const NestedLoad load(loader_name(key), saved.bytes, shown);
  const Array<NDArray> constants(saved.constants);
  const Value module = constants.empty() ? loader(Bytes{saved.bytes}) : loader(Bytes{saved.bytes}, constants);
  if (!module.is<Module>() || module.is_none())
    throw_user_error("the function '{}' gave no module for the {} bytes it was given", loader_name(key),
                     saved.bytes.size());
  return module.as<Module>();
}

}  // namespace headrace::runtime
