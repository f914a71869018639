#include "driver/plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "backends/plugin/compile/plugin_backend.h"
#include "backends/plugin/run/own_plugins.h"
#include "driver/all_backends.h"
#include "driver/register_all.h"
#include "object/same_version.h"

namespace headrace::driver {

namespace {

using partition::Backend;

class OwnPluginBackend : public Backend {
 public:
  explicit OwnPluginBackend(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  std::string version() const override { return opened().version(); }
  std::span<const partition::CompositePattern> patterns() const override { return opened().patterns(); }
  partition::Verdict supports(const relay::CallNode& call) const override { return opened().supports(call); }
  double cost(const relay::CallNode& call, const cost::Machine& machine, int threads) const override {
    return opened().cost(call, machine, threads);
  }
  double saved(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers,
               const cost::Machine& machine, int threads) const override {
    return opened().saved(call, producers, machine, threads);
  }
  double border(const Type& type, const cost::Machine& machine, int threads) const override {
    return opened().border(type, machine, threads);
  }
  bool one_call_per_region() const override { return opened().one_call_per_region(); }
  Expected<std::vector<TensorType>> claim(const ops::OnnxNode& node) const override { return opened().claim(node); }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    return opened().compile(request);
  }

 private:
  // A plugin that cannot be opened is tried again the next time: the user may install what is missing.
  const Backend& opened() const {
    const std::scoped_lock lock(mutex_);
    if (!backend_) backend_ = backends::plugin::make_backend(backends::plugin::open_own_plugin(name_));
    return *backend_;
  }

  std::string name_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Backend> backend_;
};

// Returns whether the file of a library holds the name of a symbol.
bool names_symbol(const std::string& path, std::string_view symbol) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // a stream of a folder throws as it is read
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return bytes.find(symbol) != std::string::npos;
}

// Opens a library of this version. The system's message about one of another version names any of the symbols that this
// version lacks, so the file itself is read.
void* open_for_version(const std::string& path) {
  try {
    return backends::plugin::open_library(path);
  } catch (const UserError&) {
    if (!names_symbol(path, porting::kVersionSymbolPrefix) || names_symbol(path, porting::kVersionSymbol)) throw;
    throw_user_error(
        "'{}' was built with the C++ headers of another version of Headrace than this one, {}; build it again with the "
        "headers of {}",
        path, HEADRACE_VERSION, HEADRACE_VERSION);
  }
}

// Opens a library, and returns whether it is no plugin but has registered what it has through object/porting.h.
bool registers_itself(const std::string& path) {
  void* library = open_for_version(path);
  return ::dlsym(library, HR_BACKEND_ENTRY) == nullptr && names_symbol(path, porting::kVersionSymbol);
}

}  // namespace

std::string load_plugin(const std::string& path) {
  register_all();
  if (registers_itself(path)) return "";
  static std::mutex mutex;
  static std::set<std::string> known;
  const std::scoped_lock lock(mutex);
  const std::vector<std::string> of_python = source_backends();
  std::shared_ptr<const Backend> made;  // before the plugin has its name: its patterns may be wrong
  const backends::plugin::PluginPtr plugin = backends::plugin::open_plugin(path, [&](const auto& one) {
    const std::string origin = backends::plugin::origin_of(*one);
    partition::check_new_backend(one->name, origin);
    if (std::find(of_python.begin(), of_python.end(), one->name) != of_python.end())
      partition::throw_name_taken(one->name, "that of an installed package of Python", origin);
    made = backends::plugin::make_backend(one);
  });
  if (!known.contains(plugin->name)) partition::register_backend(made ? made : backends::plugin::make_backend(plugin));
  known.insert(plugin->name);
  return plugin->name;
}

std::shared_ptr<const Backend> make_own_plugin_backend(const std::string& name) {
  return std::make_shared<OwnPluginBackend>(name);
}

}  // namespace headrace::driver
