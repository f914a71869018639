#include "object/dtype_text.h"

#include <fmt/core.h>

namespace headrace {

namespace {
struct NarrowName {
  uint8_t code, bits;
  const char* name;
};
constexpr NarrowName kNarrowNames[] = {{10, 8, "float8_e4m3fn"},
                                       {11, 8, "float8_e4m3fnuz"},
                                       {12, 8, "float8_e5m2"},
                                       {13, 8, "float8_e5m2fnuz"},
                                       {17, 4, "float4_e2m1fn"}};
}  // namespace

// Returns an element type's name; the numbers are DLPack's (DLDataTypeCode).
static std::string element_text(uint8_t code, uint8_t bits) {
  switch (code) {
    case 0:
      return fmt::format("int{}", bits);
    case 1:
      return fmt::format("uint{}", bits);
    case 2:
      return fmt::format("float{}", bits);
    case 3:
      return bits == 64 ? "handle" : fmt::format("handle{}", bits);
    case 4:
      return fmt::format("bfloat{}", bits);
    case 5:
      return fmt::format("complex{}", bits);
    case 6:
      return bits == 8 ? "bool" : fmt::format("bool{}", bits);
    default:
      break;
  }
  for (const NarrowName& narrow : kNarrowNames) {
    if (narrow.code == code && narrow.bits == bits) return narrow.name;
  }
  return fmt::format("dtype(code {}, {} bits)", code, bits);
}

std::string dtype_text(uint8_t code, uint8_t bits, uint16_t lanes) {
  constexpr uint8_t kHandle = 3;
  if (code == kHandle && bits == 0) return "void";
  const std::string element = element_text(code, bits);
  return lanes == 1 ? element : fmt::format("{}x{}", element, lanes);
}

}  // namespace headrace
