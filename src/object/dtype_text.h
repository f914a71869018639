// The name of a data type: "float32", "int4", "bool", "float32x16", "void".
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

// Returns the text for DLPack's code, bits and lanes; "dtype(code 9, 8 bits)" for an unknown code.
std::string dtype_text(uint8_t code, uint8_t bits, uint16_t lanes);

}  // namespace headrace
