// Numbers in text: the dtypes of their suffixes, and exact floats.
#pragma once

#include <optional>

#include "tensor/data_type.h"

namespace headrace {

// Returns the suffix that gives a number this dtype: "i64", "f", "bf16"; "" for int32 and bool; nothing when no literal
// has it.
std::optional<std::string> literal_suffix(DataType dtype);
// Returns the dtype of a literal's suffix ("" is int32, of a real float32); nothing for an unknown suffix.
std::optional<DataType> dtype_of_suffix(std::string_view suffix, bool is_real);
// Returns the bits of an integer, "12" and its sign, in an integer dtype, as 64 bits; nothing when it overflows.
// Elements smaller than a byte have a byte's range, since they take a byte in memory.
std::optional<uint64_t> integer_bits(std::string_view digits, bool negative, DataType dtype);
// Returns why integer_bits gives none: "300 does not fit int8 (-128 to 127)".
std::string integer_misfit(std::string_view digits, bool negative, DataType dtype);
// Returns the bits of a non-negative number ("1.5", "inf", "nan", "nan(0x7fc00001)") in a floating dtype; nothing when
// it overflows.
std::optional<uint64_t> real_bits(std::string_view text, DataType dtype);

}  // namespace headrace
