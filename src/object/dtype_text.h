// The name of a data type: "float32", "int4", "bool", "float32x16", "void".
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

// By DLPack's code, bits and lanes; "dtype(code 9, 8 bits)" where the code has no name.
std::string dtype_text(uint8_t code, uint8_t bits, uint16_t lanes);

}  // namespace headrace
