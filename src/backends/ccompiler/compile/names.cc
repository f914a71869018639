#include "backends/ccompiler/compile/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "codegen/c_syntax.h"

namespace headrace::backends::ccompiler {

namespace {

// Functions of <stdlib.h>, which the text includes (codegen::c_source_head).
constexpr std::string_view kOfStdlib[] = {
    "abort",   "abs",     "atexit", "atof",   "atoi",     "atol",     "atoll",   "bsearch", "calloc", "div",
    "exit",    "free",    "getenv", "labs",   "ldiv",     "llabs",    "lldiv",   "malloc",  "mblen",  "mbtowc",
    "qsort",   "rand",    "random", "srand",  "srandom",  "realloc",  "strtod",  "strtof",  "strtol", "strtold",
    "strtoll", "strtoul", "system", "wctomb", "strtoull", "mbstowcs", "wcstombs"};

// Returns whether C or its headers have the name: also that of a function of <math.h> for long doubles, which end in l.
bool is_taken_by_c(std::string_view name) {
  return codegen::is_c_reserved(name) ||
         std::find(std::begin(kOfStdlib), std::end(kOfStdlib), name) != std::end(kOfStdlib) ||
         (name.ends_with('l') && codegen::is_c_reserved(name.substr(0, name.size() - 1)));
}

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
  if (is_taken_by_c(name)) return fmt::format("its name '{}' has a meaning in C or its headers; rename it", name);
  for (const std::string& other : taken) {
    if (is_part_of(name, other) || is_part_of(other, name))
      return fmt::format("its name '{}' and that of the region '{}' give functions of one name in C; rename one", name,
                         other);
  }
  return "";
}

}  // namespace headrace::backends::ccompiler
