#include "backends/plugin/run/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "backends/plugin/run/message_room.h"
#include "backends/plugin/run/plugin_module.h"
#include "base/error.h"
#include "base/utf8.h"
#include "runtime/backend_name.h"
#include "runtime/module.h"

namespace headrace::backends::plugin {

namespace {

constexpr size_t kMaxVersion = 256;  // bytes

// The minor version of the interface since which a library can say that it loads blobs of its other versions.
constexpr uint16_t kAsksSinceMinor = 4;

hr_host& host() {
  static hr_host one{.abi = {.size = sizeof(hr_host), .major = HR_BACKEND_ABI_MAJOR, .minor = HR_BACKEND_ABI_MINOR},
                     .version = HEADRACE_VERSION,
                     .graph = nullptr};
  return one;
}

struct OpenPlugins {
  std::mutex mutex;
  std::map<void*, PluginPtr> by_handle;
};

OpenPlugins& open_plugins() {
  static OpenPlugins& all = *new OpenPlugins;  // never destroyed: modules of static objects outlive it
  return all;
}

void check_version(const std::string& path, const hr_abi& abi) {
  if (abi.major >= HR_BACKEND_ABI_OLDEST && abi.major <= HR_BACKEND_ABI_MAJOR) return;
  throw_user_error(
      "the backend '{}' was built for version {} of the backend interface, and this Headrace has {} to {}; build it "
      "with the header backend_abi.h of this release",
      path, abi.major, HR_BACKEND_ABI_OLDEST, HR_BACKEND_ABI_MAJOR);
}

void check_table(const std::string& path, const hr_backend& table) {
  const auto fail = [&](std::string_view what) {
    throw_user_error("the backend '{}' {}; its {} must fill that in", path, what, HR_BACKEND_ENTRY);
  };
  if (table.name == nullptr) fail("has no name");
  runtime::check_backend_name(table.name, path);
  if (table.version == nullptr || *table.version == 0) fail("has no version");
  if (strnlen(table.version, kMaxVersion + 1) > kMaxVersion)
    fail(fmt::format("has a version of more than {} bytes", kMaxVersion));
  if (!is_utf8(table.version)) fail("has a version that is not text in UTF-8");
  if (table.supports == nullptr && table.compile != nullptr) fail("has a function compile and no supports");
  const std::array<std::pair<const char*, bool>, 3> must{
      {{"load", table.load != nullptr || table.load_with_constants != nullptr},
       {"find", table.find != nullptr},
       {"run", table.run != nullptr}}};
  for (const auto& [function, is_there] : must) {
    if (!is_there) fail(fmt::format("has no function {}", function));
  }
}

hr_backend call_entry(const std::string& path, hr_backend_entry entry) {
  hr_backend table{};
  table.abi = {.size = sizeof(hr_backend), .major = HR_BACKEND_ABI_MAJOR, .minor = HR_BACKEND_ABI_MINOR};
  MessageRoom room;
  if (entry(&host(), &table, room.view()) != 0)
    throw MissingError(fmt::format("the backend '{}' cannot work here: {}", path, room.text()));
  check_version(path, table.abi);
  constexpr size_t kFirstSize = offsetof(hr_backend, load_with_constants);  // the table of version 1.0
  const size_t size = table.abi.size;
  if (size < kFirstSize)
    throw_user_error(
        "the backend '{}' says that its table has {} bytes, and the oldest has {}; its {} must leave the "
        "size of its header there (HR_FILL_ABI)",
        path, size, kFirstSize, HR_BACKEND_ENTRY);
  if (size < sizeof table) std::memset(reinterpret_cast<char*>(&table) + size, 0, sizeof table - size);
  return table;
}

PluginPtr make_plugin(const std::string& path, void* handle) {
  auto entry = reinterpret_cast<hr_backend_entry>(::dlsym(handle, HR_BACKEND_ENTRY));
  if (entry == nullptr)
    throw_user_error("'{}' is not a backend of Headrace: it lacks the function {}", path, HR_BACKEND_ENTRY);
  const hr_backend table = call_entry(path, entry);
  check_table(path, table);
  return std::make_shared<const Plugin>(
      Plugin{.name = table.name, .version = table.version, .path = path, .table = table});
}

}  // namespace

void check_blob_version(const Plugin& plugin, const std::string& recorded) {
  if (recorded == plugin.version) return;
  const hr_backend& table = plugin.table;
  MessageRoom room;
  if (table.accepts_version == nullptr ? table.abi.minor < kAsksSinceMinor
                                       : table.accepts_version(table.self, recorded.c_str(), room.view()) == 0)
    return;
  runtime::refuse_version(plugin.name, recorded, plugin.version, *room.view()->data == 0 ? "" : room.text());
}

void* open_library(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);  // never searched for by its name
  if (!std::filesystem::exists(absolute, error))
    throw MissingError(fmt::format("there is no file '{}'; give the path of a backend's shared library", path));
  if (!std::filesystem::is_regular_file(absolute, error))
    throw_user_error("'{}' is not a file; give the path of a backend's shared library", path);
  void* handle = ::dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* reason = ::dlerror();
  const std::string why = reason == nullptr ? "the system does not say why" : reason;
  const bool is_library = !why.ends_with("invalid ELF header") && !why.ends_with("file too short");
  if (!is_library && path.ends_with(".py"))
    throw_user_error(
        "'{0}' is not a shared library, but a file of Python; give it by `python -m headrace ... --plugin {0}`, and "
        "the name of its class in place of the file, or import it in Python and register its backend "
        "(headrace.backend.register)",
        path);
  if (!is_library) throw_user_error("'{}' is not a shared library; give the path of a backend's", path);
  const std::string text = fmt::format("the backend '{}' cannot be loaded: {}", path, why);
  if (why.find("cannot open shared object file") != std::string::npos)
    throw MissingError(text + "; install the library that it needs");
  throw UserError(text);
}

PluginPtr open_plugin(const std::string& path, const std::function<void(const PluginPtr&)>& check) {
  void* handle = open_library(path);
  OpenPlugins& all = open_plugins();
  const std::scoped_lock lock(all.mutex);
  if (const auto known = all.by_handle.find(handle); known != all.by_handle.end()) return known->second;
  const PluginPtr plugin = make_plugin(path, handle);
  for (const auto& [other, known] : all.by_handle) {
    if (known->name == plugin->name)
      throw_user_error("the backends '{}' and '{}' are both named '{}'; load one of them", known->path, path,
                       plugin->name);
  }
  if (check) check(plugin);
  register_loader(plugin);
  all.by_handle.emplace(handle, plugin);
  return plugin;
}

void set_graph_api(const hr_graph_api* api) { host().graph = api; }

std::string module_kind(const std::string& plugin) { return "backend." + plugin; }

}  // namespace headrace::backends::plugin
