#include "driver/module_format.h"

#include "base/error.h"
#include "load/load_module.h"

namespace headrace::driver {

namespace {

std::optional<ModuleFormat> find_format(const std::string& name) {
  if (name == "so") return ModuleFormat::kShared;
  if (name == "o") return ModuleFormat::kObject;
  if (name == "ll") return ModuleFormat::kLlvm;
  if (name == "s" || name == "asm") return ModuleFormat::kAssembly;
  return std::nullopt;
}

}  // namespace

ModuleFormat module_format(const std::string& path, const std::string& format) {
  const std::string file = path.substr(path.rfind('/') + 1);
  if (format.empty() && file.starts_with('.') && find_format(file.substr(1)))
    throw_user_error("cannot write '{}': the name is an ending alone; name a file, such as model{}", path, file);
  const std::string name = load::format_of(path, format);
  const std::optional<ModuleFormat> found = find_format(name);
  if (!found)
    throw_user_error("cannot write '{}': there is no format '{}'; a compiled module is saved as one of so, o, ll, s{}",
                     path, name, format.empty() ? ", and the name ends in that, as model.so does (or model.so.1)" : "");
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

std::optional<codegen::CodeForm> text_form(const std::string& format) {
  const std::optional<ModuleFormat> found = find_format(format);
  return found ? text_form(*found) : std::nullopt;
}

FileKind file_kind(ModuleFormat format) {
  return format == ModuleFormat::kShared ? FileKind::kProgram : FileKind::kData;
}

}  // namespace headrace::driver
