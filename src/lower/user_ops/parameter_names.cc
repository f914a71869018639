#include "lower/user_ops/parameter_names.h"

#include <algorithm>
#include <iterator>

namespace headrace::lower {

namespace {

// Arguments and attributes are parameters of one function in Python, where these words are none.
constexpr std::string_view kPythonWords[] = {
    "False",  "None",     "True", "and",    "as",   "assert",  "async",  "await",  "break", "class",  "continue", "def",
    "del",    "elif",     "else", "except", "for",  "finally", "from",   "global", "if",    "import", "in",       "is",
    "lambda", "nonlocal", "not",  "or",     "pass", "raise",   "return", "try",    "while", "with",   "yield"};
// Parameters that calls have besides.
constexpr std::string_view kOfCalls[] = {"args", "self", "span"};
// Members that attributes have as nodes, in text and in Python.
constexpr std::string_view kOfNodes[] = {"attrs",   "attrs_type_key", "copy_with", "get",
                                         "get_int", "get_int_tuple",  "get_str",   "items",
                                         "keys",    "same_as",        "type_key",  "values"};

template <size_t N>
bool is_among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

std::string_view argument_name_fault(std::string_view name) {
  if (is_among(kPythonWords, name)) return "it is a word of Python, where no parameter can have it";
  if (is_among(kOfCalls, name)) return "calls take a parameter of that name themselves";
  return "";
}

std::string_view attr_name_fault(std::string_view name) {
  if (is_among(kOfNodes, name)) return "attributes have something else of that name";
  if (name.starts_with('_')) return "names that begin with _ are Python's own";
  return argument_name_fault(name);
}

}  // namespace headrace::lower
