#include "backends/ccompiler/compile/names.h"

#include <fmt/format.h>

#include <string_view>

#include "codegen/c_syntax.h"

namespace headrace::backends::ccompiler {

namespace {

// Returns whether one of the functions or constants of the region `owner` has the name.
bool is_part_of(std::string_view name, std::string_view owner) {
  if (!name.starts_with(owner)) return false;
  std::string_view end = name.substr(owner.size());
  if (end.empty() || end == "_" || end == "__wrapper_") return true;
  if (!end.starts_with('_')) return false;
  end.remove_prefix(end.starts_with("_c") ? 2 : 1);
  return !end.empty() && end.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string name_fault(const std::string& name, const Array<std::string>& taken) {
  if (!codegen::is_c_identifier(name))
    return fmt::format("its name '{}' is not a name of a function in C; rename it", name);
  if (codegen::is_c_reserved(name))
    return fmt::format("its name '{}' has a meaning in C or its headers; rename it", name);
  for (const std::string& other : taken) {
    if (is_part_of(name, other) || is_part_of(other, name))
      return fmt::format("its name '{}' and that of the region '{}' give functions of one name in C; rename one", name,
                         other);
  }
  return "";
}

}  // namespace headrace::backends::ccompiler
