// The numbers and the two plain structs that cross library borders. Bit-identical to the published tvm-ffi C ABI
// 0.1.15.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

namespace type_index {
enum : int32_t {
  kNone = 0,
  kInt = 1,
  kBool = 2,
  kFloat = 3,
  kPtr = 4,
  kDataType = 5,
  kDevice = 6,
  kDLTensorPtr = 7,
  kRawStr = 8,
  kByteArrayPtr = 9,
  kObjectRValueRef = 10,
  kSmallStr = 11,
  kSmallBytes = 12,
  kStaticObjectBegin = 64,
  kObject = 64,
  kStr = 65,
  kBytes = 66,
  kError = 67,
  kFunction = 68,
  kShape = 69,
  kTensor = 70,
  kArray = 71,
  kMap = 72,
  kModule = 73,
  kDynamicObjectBegin = 128,
};
}  // namespace type_index

class Object;
struct StrBytes {  // TVMFFIByteArray
  const char* data;
  size_t size;
};

// A value as it lies in memory, in the layout in which functions receive arguments and return results. It owns nothing;
// class Value does.
struct RawValue {
  int32_t type_index = type_index::kNone;
  uint32_t small_len = 0;  // bytes of a small string; zero otherwise
  union Payload {
    int64_t v_int;
    double v_float;
    void* v_ptr;
    const char* v_str;
    Object* v_object;
    char v_bytes[8];
    struct {
      uint8_t code;
      uint8_t bits;
      uint16_t lanes;
    } v_dtype;
    struct {
      int32_t type;
      int32_t id;
    } v_device;
  } v = {0};
};
static_assert(sizeof(RawValue) == 16);

// The one calling convention. Returns 0, or -1 with the error object in the thread's state.
using SafeCall = int (*)(void* self, const RawValue* args, int32_t n, RawValue* result);

}  // namespace headrace
