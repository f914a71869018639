#include "driver/module_format.h"

#include <optional>

#include "base/error.h"
#include "load/load_module.h"

namespace headrace::driver {

namespace {

constexpr std::pair<std::string_view, ModuleFormat> kFormats[] = {
    {"so", ModuleFormat::kShared},  {"o", ModuleFormat::kObject},     {"ll", ModuleFormat::kLlvm},
    {"s", ModuleFormat::kAssembly}, {"asm", ModuleFormat::kAssembly}, {"c", ModuleFormat::kC}};

std::optional<ModuleFormat> find_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string names_of(bool texts_only) {
  std::vector<std::string_view> names;
  for (const auto& [name, format] : kFormats) {
    if (!texts_only || is_text(format)) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

ModuleFormat module_format(const std::string& path, const std::string& format) {
  const std::string file = path.substr(path.rfind('/') + 1);
  if (format.empty() && file.starts_with('.') && find_format(file.substr(1)))
    throw_user_error("cannot write '{}': the name is an ending alone; name a file, such as model{}", path, file);
  const std::string name = load::format_of(path, format);
  const std::optional<ModuleFormat> found = find_format(name);
  if (!found)
    throw_user_error("cannot write '{}': there is no format '{}'; a compiled module is saved as one of {}{}", path,
                     name, names_of(false),
                     format.empty() ? ", and the name ends in that, as model.so does (or model.so.1)" : "");
  return *found;
}

bool is_text(ModuleFormat format) { return format != ModuleFormat::kShared && format != ModuleFormat::kObject; }

ModuleFormat source_format(const std::string& format) {
  const std::optional<ModuleFormat> found = find_format(format.empty() ? "ll" : format);
  if (!found || !is_text(*found))
    throw_user_error("there is no source in format '{}'; there are {}", format, names_of(true));
  return *found;
}

FileKind file_kind(ModuleFormat format) {
  return format == ModuleFormat::kShared ? FileKind::kProgram : FileKind::kData;
}

}  // namespace headrace::driver
