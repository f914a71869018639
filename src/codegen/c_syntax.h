// The words of C: types, literals, names.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/prim_expr.h"

namespace headrace::codegen {

// What a number is held in: "float" for float16 and bfloat16, which are rounded after every operation. UserError: a
// dtype that C does not compute with. Lanes do not count.
std::string c_type(DataType dtype);
// What it lies in memory as: "uint8_t" for bool, "uint16_t" for the bits of float16 and bfloat16.
std::string c_memory_type(DataType dtype);
// "i32", "u8", "f16", "bf16": for names of functions.
std::string c_tag(DataType dtype);
// "f" for what is computed in float: the suffix of literals and of functions of the C library.
std::string c_suffix(DataType dtype);
bool is_c_half(DataType dtype);

// A number of an integer dtype or bool. Up to 64 bits of it are looked at.
std::string c_integer(int64_t value, DataType dtype);
// A number that is no NaN, exact: as decimal where that is short, else as hex with a decimal beside it. float16 and
// bfloat16: a float, rounded to them.
std::string c_real(double value, DataType dtype);
// In quotes.
std::string c_string(std::string_view text);

// A word that C, its library's headers or the text itself need, and so no name.
bool is_c_reserved(std::string_view word);
bool is_c_identifier(std::string_view word);

// Names of one function's variables, different from one another while they are in scope.
class CNames {
 public:
  // `hint` where that is a name and free, else something like it.
  std::string add(std::string_view hint);
  void reserve(const std::string& name) { taken_.insert(name); }
  // Names added after this many were free again.
  size_t count() const { return order_.size(); }
  void release_to(size_t count);

 private:
  std::unordered_set<std::string> taken_;
  std::vector<std::string> order_;
};

}  // namespace headrace::codegen
