// The words of C: types, literals, names.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/prim_expr.h"

namespace headrace::codegen {

// Returns the C type that holds a number in computations: "float" for float16 and bfloat16, which are rounded after
// every operation, and "uint8_t" for the code of a narrow float. Lanes are ignored. UserError: a dtype that C does not
// support.
std::string c_type(DataType dtype);
// Throws the UserError of an operation on numbers that C does not compute with.
[[noreturn]] void fail_to_compute_in_c(DataType dtype);
// Returns the C type of an element in memory: "uint8_t" for bool, "uint16_t" for the bits of float16 and bfloat16.
std::string c_memory_type(DataType dtype);
// Returns a dtype's tag for names of functions: "i32", "u8", "f16", "bf16".
std::string c_tag(DataType dtype);
// Returns the suffix of literals and of functions of the C library: "f" for dtypes that are computed in float.
std::string c_suffix(DataType dtype);
bool is_c_half(DataType dtype);

// Returns the literal of an integer or bool; uses up to 64 bits of `value`.
std::string c_integer(int64_t value, DataType dtype);
// Returns the exact literal of a number that is not NaN: decimal where that is short, else hexadecimal with a decimal
// beside it. float16 and bfloat16 give a float that is rounded to them.
std::string c_real(double value, DataType dtype);
// Returns the text as a C string literal.
std::string c_string(std::string_view text);

// Returns whether C, its library's headers or the generated text reserve a word.
bool is_c_reserved(std::string_view word);
bool is_c_identifier(std::string_view word);

// Names of one function's variables, different from one another while they are in scope.
class CNames {
 public:
  // Returns `hint` if it is a free name, otherwise a similar name, and takes that name.
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
