#include "codegen/c_syntax.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/c_library.h"
#include "tensor/convert_number.h"

namespace headrace::codegen {

namespace {

// Keywords of C and of C++, the parameters of kernels, and what <math.h>, <stdbool.h>, <stdint.h> and <string.h> give
// that has no telling form.
constexpr std::string_view kReserved[] = {"alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "args",
                                          "asm",
                                          "auto",
                                          "begin",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "class",
                                          "closure",
                                          "compl",
                                          "const",
                                          "const_cast",
                                          "constexpr",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "end",
                                          "enum",
                                          "env",
                                          "errno",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "fpclassify",
                                          "friend",
                                          "goto",
                                          "if",
                                          "inline",
                                          "int",
                                          "isfinite",
                                          "isgreater",
                                          "isgreaterequal",
                                          "isinf",
                                          "isless",
                                          "islessequal",
                                          "islessgreater",
                                          "isnan",
                                          "isnormal",
                                          "isunordered",
                                          "linux",
                                          "long",
                                          "main",
                                          "math_errhandling",
                                          "memcpy",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "reinterpret_cast",
                                          "restrict",
                                          "return",
                                          "short",
                                          "signbit",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "strlen",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "typeof",
                                          "union",
                                          "unix",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "wchar_t",
                                          "while",
                                          "xor",
                                          "xor_eq"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns whether the text may call a function of this name for double: fmod is for remainders, which are not an
// intrinsic.
bool is_library_double(std::string_view name) {
  const std::vector<std::string_view>& functions = functions_of_intrinsics();
  return name == "fmod" || std::find(functions.begin(), functions.end(), name) != functions.end();
}

bool is_library(std::string_view word) {
  return is_library_double(word) || (word.ends_with('f') && is_library_double(word.substr(0, word.size() - 1)));
}

// Returns whether a word looks like a macro.
bool is_in_capitals(std::string_view word) {
  return word.size() > 1 && std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

bool is_c_half(DataType dtype) { return dtype.is_float() && dtype.bits() == 16; }

std::string c_type(DataType dtype) {
  const int bits = dtype.bits();
  if (dtype.is_bool() && bits == 8) return "bool";
  if (dtype.is_float() && (bits == 16 || bits == 32)) return "float";
  if (dtype.is_float() && bits == 64) return "double";
  if (dtype.is_narrow()) return dtype.is_int() ? "int8_t" : "uint8_t";
  if ((dtype.is_int() || dtype.is_uint()) && (bits == 8 || bits == 16 || bits == 32 || bits == 64))
    return fmt::format("{}int{}_t", dtype.is_int() ? "" : "u", bits);
  fail_to_compute_in_c(dtype);
}

void fail_to_compute_in_c(DataType dtype) {
  throw_user_error("C does not compute with {}; cast to a number of 8, 16, 32 or 64 bits first", dtype.element());
}

std::string c_memory_type(DataType dtype) {
  if (dtype.is_bool()) return "uint8_t";
  return is_c_half(dtype) ? "uint16_t" : c_type(dtype);
}

std::string c_tag(DataType dtype) {
  if (dtype.is_bool()) return "bool";
  if (dtype.is_narrow_float()) {
    const std::string name = dtype.element().to_string();
    return name.substr(name.find('_') + 1);
  }
  const char* kind = dtype.is_int() ? "i" : dtype.is_uint() ? "u" : dtype.is_bfloat16() ? "bf" : "f";
  return fmt::format("{}{}", kind, dtype.bits());
}

std::string c_suffix(DataType dtype) { return dtype.bits() == 64 ? "" : "f"; }

std::string c_integer(int64_t value, DataType dtype) {
  if (dtype.is_bool()) return (value & 1) != 0 ? "true" : "false";
  const int unused = 64 - dtype.bits();
  const uint64_t bits = static_cast<uint64_t>(value) << unused;
  if (dtype.is_uint()) return fmt::format("{}u", bits >> unused);
  const int64_t number = static_cast<int64_t>(bits) >> unused;
  // The lowest number is not a literal: its digits alone are too large.
  if (number == INT64_MIN) return "INT64_MIN";
  return number == INT32_MIN ? "INT32_MIN" : fmt::format("{}", number);
}

std::string c_real(double value, DataType dtype) {
  const double number = round_number(value, dtype);
  const std::string suffix = c_suffix(dtype);
  const char* sign = std::signbit(number) ? "-" : "";
  if (std::isinf(number)) return fmt::format("{}INFINITY", sign);
  const std::string decimal =
      suffix.empty() ? fmt::format("{}", number) : fmt::format("{}", static_cast<float>(number));
  // A few binary places make as many decimal ones: the shortest decimal is the number itself.
  if (std::abs(number) < 1e6 && number * 64 == std::floor(number * 64))
    return fmt::format("{}{}{}{}", sign, std::abs(number), number == std::floor(number) ? ".0" : "", suffix);
  return fmt::format("{:a}{} /* {} */", number, suffix, decimal);
}

std::string c_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '?') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    }
  }
  return out + "\"";
}

bool is_c_identifier(std::string_view word) {
  return !word.empty() && is_letter(word[0]) &&
         std::all_of(word.begin(), word.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_c_reserved(std::string_view word) {
  return word.starts_with('_') || word.starts_with("hr_") || word.starts_with("DL") || word.starts_with("kDL") ||
         word.ends_with("_t") || is_in_capitals(word) || is_library(word) ||
         std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

std::string CNames::add(std::string_view hint) {
  std::string name;
  for (const char c : hint) name += is_letter(c) || is_digit(c) ? c : '_';
  if (name.empty() || !is_letter(name[0]) || name[0] == '_') name = "v" + name;
  if (is_c_reserved(name)) name += "_v";
  std::string free = name;
  for (int i = 1; taken_.contains(free); ++i) free = fmt::format("{}_{}", name, i);
  taken_.insert(free);
  order_.push_back(free);
  return free;
}

void CNames::release_to(size_t count) {
  for (; order_.size() > count; order_.pop_back()) taken_.erase(order_.back());
}

}  // namespace headrace::codegen
