#include "load/external_call.h"

#include <array>

namespace headrace::load {
namespace {

// Arguments beyond this many are put on the heap for the call; no op has so many, a large concat may.
constexpr int32_t kFewArgs = 32;

Ref<ErrorObj> call(void* self, DLTensor* const* args, int32_t num_args) {
  auto* function = static_cast<FunctionObj*>(static_cast<Object*>(self));
  std::array<RawValue, kFewArgs> few;
  std::vector<RawValue> many;
  if (num_args > kFewArgs) many.resize(static_cast<size_t>(num_args));
  RawValue* values = num_args > kFewArgs ? many.data() : few.data();
  for (int32_t i = 0; i < num_args; ++i) {
    values[i].type_index = type_index::kDLTensorPtr;
    values[i].v.v_ptr = args[i];
  }
  RawValue result;
  take_stored_error();  // of a function before this one
  const int code = function->safe_call(self, values, num_args, &result);
  if (code == 0) {
    const Value released = Value::adopt(result);
    return {};
  }
  // A function leaves its error with the thread: here it is taken, and handed on by value.
  if (Ref<ErrorObj> error = take_stored_error()) return error;
  auto silent = make_object<ErrorObj>();
  silent->message = "an external function failed without saying why";
  return silent;
}

}  // namespace

executors::ExternalFunction external_call(const PackedFunc& function) {
  return {.function = &call, .self = static_cast<Object*>(function.object().get())};
}

}  // namespace headrace::load
