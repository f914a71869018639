#include "driver/module_format.h"

#include "base/error.h"
#include "load/load_module.h"

namespace headrace::driver {

namespace {

constexpr std::pair<std::string_view, ModuleFormat> kFormats[] = {{"so", ModuleFormat::kShared},
                                                                  {"o", ModuleFormat::kObject},
                                                                  {"ll", ModuleFormat::kLlvm},
                                                                  {"s", ModuleFormat::kAssembly},
                                                                  {"asm", ModuleFormat::kAssembly}};

std::optional<ModuleFormat> find_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string names_of(bool texts_only) {
  std::vector<std::string_view> names;
  for (const auto& [name, format] : kFormats) {
    if (!texts_only || text_form(format)) names.push_back(name);
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

std::optional<codegen::CodeForm> text_form(ModuleFormat format) {
  switch (format) {
    case ModuleFormat::kShared:
    case ModuleFormat::kObject:
      return std::nullopt;
    case ModuleFormat::kLlvm:
      return codegen::CodeForm::kLlvm;
    case ModuleFormat::kAssembly:
      return codegen::CodeForm::kAssembly;
  }
  return std::nullopt;
}

codegen::CodeForm source_form(const std::string& format) {
  const std::optional<ModuleFormat> found = find_format(format.empty() ? "ll" : format);
  const std::optional<codegen::CodeForm> form = found ? text_form(*found) : std::nullopt;
  if (!form) throw_user_error("there is no source in format '{}'; there are {}", format, names_of(true));
  return *form;
}

FileKind file_kind(ModuleFormat format) {
  return format == ModuleFormat::kShared ? FileKind::kProgram : FileKind::kData;
}

}  // namespace headrace::driver
