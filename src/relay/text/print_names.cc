#include "relay/text/print_names.h"

namespace headrace::relay {

bool is_reserved_word(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "_",        "fn",       "def",       "let",      "if",          "else",    "match",   "type",    "ref",
      "ref_read", "meta",     "Tensor",    "prim",     "const",       "True",    "False",   "None",    "min",
      "max",      "floordiv", "select",    "floormod", "logical_not", "nan",     "inf",     "bool",    "handle",
      "void",     "int1",     "ref_write", "int4",     "int8",        "int16",   "int32",   "int64",   "uint1",
      "uint4",    "uint8",    "uint16",    "uint32",   "uint64",      "float16", "float32", "float64", "bfloat16",
      "free_var", "dtype",    "device",    "extern",   "attributes"};
  for (const std::string_view word : kWords) {
    if (word == text) return true;
  }
  return false;
}

bool can_name_type(std::string_view text) { return is_identifier(text) && (!is_reserved_word(text) || text == "None"); }

}  // namespace headrace::relay
