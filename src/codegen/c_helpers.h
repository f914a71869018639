// C functions that the text defines when it first uses them, for operations that no C operator performs without
// undefined behaviour.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "ir/prim_expr.h"

namespace headrace::codegen {

class CHelpers {
 public:
  // Returns the name of the function `family` of `dtype` ("hr_min_i32"), which the text has from now on. The families,
  // where T is c_type(dtype) and U the unsigned integer of its size:
  //   min, max, floor_mod, power (integers)         T (T, T)
  //   div, mod, floor_div, shift_left, shift_right  T (T, T), of integers
  //   abs                                           T (T), of signed integers
  //   bits, from_bits                               U (T) and T (U), of floats: the bits in memory
  //   round                                         float (float), to float16 or bfloat16
  //   odd                                           float (double), to odd: rounding it again to 16 bits rounds once
  std::string use(std::string_view family, DataType dtype);
  // Returns the name of T (F), which converts a float to an integer, saturating, with NaN as 0.
  std::string use_saturating(DataType from, DataType to);
  // Returns the name of T (uint32_t), which cuts an integer to the bits of a dtype below 8 bits.
  std::string use_cut(DataType dtype);
  // Return the name of uint8_t (float), the code of the nearest narrow float, and of float (uint8_t), its number.
  std::string use_narrow_code(DataType dtype);
  std::string use_narrow_value(DataType dtype);
  // Returns the name of int32_t (env, message), which writes the message of a failed assertion and returns its status.
  std::string use_fail();
  // Returns the name of a macro that prefetches from a pointer.
  std::string use_prefetch();

  bool has(const std::string& name) const { return names_.contains(name); }
  // Adds a function under a name that no family has.
  void add(const std::string& name, const std::string& text);

  // Returns the text of all functions, each after those that it calls.
  const std::string& text() const { return text_; }

 private:
  std::unordered_set<std::string> names_;
  std::string text_;
};

}  // namespace headrace::codegen
