#include "load/load_module.h"

#include <filesystem>

#include "load/all_loaders.h"
#include "load/artifact_module.h"
#include "runtime/nested_load.h"

namespace headrace::load {
namespace {

// Returns the names of the global functions with that prefix, without the prefix, sorted.
std::vector<std::string> registered(std::string_view prefix) {
  std::vector<std::string> names;
  for (const std::string& name : global_names()) {
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// One text for all spellings of a path; the path itself when it has none.
std::string resolved(const std::string& path) {
  std::error_code error;
  // Otherwise a path with no part that exists would stay relative.
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return path;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(absolute, error);
  return error ? path : canonical.string();
}

}  // namespace

// "libmodel.so.1.2": a shared object with its version.
static bool has_version(const std::string& file) {
  const size_t at = file.rfind(".so.");
  if (at == std::string::npos || at == 0) return false;
  const std::string_view version = std::string_view(file).substr(at + 4);
  return version.find_first_not_of("0123456789.") == std::string_view::npos && version.find("..") == version.npos &&
         !version.empty() && version.front() != '.' && version.back() != '.';
}

std::string format_of(const std::string& path, const std::string& format) {
  if (!format.empty()) return format;
  const std::string file = path.substr(path.rfind('/') + 1);
  const size_t dot = file.rfind('.');
  return dot == std::string::npos || dot == 0 || has_version(file) ? "so" : file.substr(dot + 1);
}

runtime::Module load_module(const std::string& path, const std::string& format) {
  const std::string chosen = format_of(path, format);
  const std::string name = fmt::format("{}{}", kLoadFilePrefix, chosen);
  const PackedFunc loader = find_global(name);
  if (chosen == "so") {
    if (loader) throw_user_error("cannot load '{}': the function '{}' is registered: {}", path, name, kWhyNoLoaderOfSo);
    return load_artifact_module(path);
  }
  if (!loader) {
    std::vector<std::string> formats = registered(kLoadFilePrefix);
    formats.insert(formats.begin(), "so");
    throw_user_error(
        "cannot load '{}': no loader is registered for the format '{}'; there are {}. Say which it is (fmt), or "
        "register the "
        "function {}",
        path, chosen, fmt::join(formats, ", "), name);
  }
  const std::string file = resolved(path);
  const runtime::NestedLoad load(name, file, fmt::format("'{}'", path));
  const Value module = loader(path, chosen);
  if (module.is_none() || !module.is<runtime::Module>())
    throw_user_error("cannot load '{}': the function '{}' gave no module", path, name);
  return module.as<runtime::Module>();
}

runtime::Module load_binary(const std::string& key, const std::string& bytes) {
  register_all_loaders();
  runtime::Module module = runtime::load_from_binary(key, bytes);
  if (!module)
    throw_user_error("no loader is registered for modules of the kind '{}'; there are {}. Register the function {}{}",
                     key, fmt::join(registered(runtime::kLoadBinaryPrefix), ", "), runtime::kLoadBinaryPrefix, key);
  return module;
}

}  // namespace headrace::load
