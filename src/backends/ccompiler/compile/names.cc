#include "backends/ccompiler/compile/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace headrace::backends::ccompiler {

namespace {

// Words of C99, and of the headers that a text includes. The other functions of the library that a text calls are those
// of <math.h>, which is_of_math() knows.
const std::set<std::string_view>& words_of_c() {
  static const std::set<std::string_view> words{
      "auto",        "break",    "case",     "char",     "const",   "continue",   "default",   "do",     "double",
      "else",        "enum",     "extern",   "float",    "for",     "goto",       "if",        "inline", "int",
      "long",        "register", "restrict", "return",   "short",   "signed",     "sizeof",    "static", "struct",
      "switch",      "typedef",  "union",    "unsigned", "void",    "volatile",   "while",     "asm",    "typeof",
      "bool",        "true",     "false",    "NULL",     "NAN",     "INFINITY",   "main",      "abs",    "labs",
      "llabs",       "malloc",   "calloc",   "realloc",  "free",    "memcpy",     "memmove",   "memset", "memcmp",
      "strlen",      "strcmp",   "strcpy",   "exit",     "abort",   "offsetof",   "ptrdiff_t", "size_t", "wchar_t",
      "max_align_t", "isnan",    "isinf",    "isfinite", "signbit", "fpclassify", "errno",     "assert"};
  return words;
}

bool is_of_math(std::string_view name) {
  static const std::set<std::string_view> functions{
      "acos",      "acosh",     "asin",       "asinh", "atan",      "atan2",  "atanh", "cbrt",   "ceil",    "copysign",
      "cos",       "cosh",      "erf",        "erfc",  "exp",       "exp2",   "expm1", "fabs",   "fdim",    "floor",
      "fma",       "fmax",      "fmin",       "fmod",  "frexp",     "hypot",  "ilogb", "ldexp",  "lgamma",  "llrint",
      "llround",   "log",       "log10",      "log1p", "log2",      "logb",   "lrint", "lround", "modf",    "nan",
      "nearbyint", "nextafter", "nexttoward", "pow",   "remainder", "remquo", "rint",  "round",  "scalbln", "scalbn",
      "sin",       "sinh",      "sqrt",       "tan",   "tanh",      "tgamma", "trunc"};
  if (functions.contains(name)) return true;
  return (name.ends_with('f') || name.ends_with('l')) && functions.contains(name.substr(0, name.size() - 1));
}

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && is_letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

// Returns whether C, its library or the headers of Headrace may use the name.
bool is_reserved(std::string_view name) {
  const bool is_type = name.ends_with("_t") && (name.starts_with("int") || name.starts_with("uint"));
  const bool is_system =
      name.starts_with("__") || (name.size() > 1 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z');
  const bool is_ours =
      name.starts_with("hr_") || name.starts_with("HR_") || name.starts_with("DL") || name.starts_with("kDL");
  return is_type || is_system || is_ours || words_of_c().contains(name) || is_of_math(name);
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
  if (!is_identifier(name)) return fmt::format("its name '{}' is not a name of a function in C; rename it", name);
  if (is_reserved(name)) return fmt::format("its name '{}' has a meaning in C or its headers; rename it", name);
  for (const std::string& other : taken) {
    if (is_part_of(name, other) || is_part_of(other, name))
      return fmt::format("its name '{}' and that of the region '{}' give functions of one name in C; rename one", name,
                         other);
  }
  return "";
}

}  // namespace headrace::backends::ccompiler
