// Short texts of values.
#include "object/repr.h"

#include <gtest/gtest.h>

#include "object/array.h"
#include "object/dtype_text.h"

namespace headrace {
namespace {

Value dtype_value(uint8_t code, uint8_t bits, uint16_t lanes) {
  RawValue raw;
  raw.type_index = type_index::kDataType;
  raw.v.v_dtype = {code, bits, lanes};
  return Value::adopt(raw);
}

// The codes are DLPack's.
TEST(Repr, DataTypesHaveTheirNames) {
  struct Case {
    uint8_t code, bits;
    uint16_t lanes;
    const char* text;
  };
  const Case cases[] = {
      {0, 32, 1, "int32"},
      {0, 4, 1, "int4"},
      {1, 8, 1, "uint8"},
      {2, 32, 1, "float32"},
      {2, 16, 8, "float16x8"},
      {3, 64, 1, "handle"},
      {3, 32, 1, "handle32"},
      {3, 0, 0, "void"},
      {4, 16, 1, "bfloat16"},
      {5, 64, 1, "complex64"},
      {6, 8, 1, "bool"},
      {6, 1, 1, "bool1"},
      {0, 32, 4, "int32x4"},
      {6, 8, 2, "boolx2"},
      {9, 8, 1, "dtype(code 9, 8 bits)"},
      {10, 8, 1, "float8_e4m3fn"},
      {11, 8, 1, "float8_e4m3fnuz"},
      {12, 8, 1, "float8_e5m2"},
      {13, 8, 2, "float8_e5m2fnuzx2"},
      {17, 4, 1, "float4_e2m1fn"},
      {17, 8, 1, "dtype(code 17, 8 bits)"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(repr(dtype_value(c.code, c.bits, c.lanes)), c.text);
    EXPECT_EQ(dtype_text(c.code, c.bits, c.lanes), c.text);
  }
  EXPECT_EQ(repr(Value(Array<Value>{dtype_value(2, 64, 1), Value(1)})), "[float64, 1]");
}

}  // namespace
}  // namespace headrace
