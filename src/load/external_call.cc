#include "load/external_call.h"

#include <array>
#include <memory>
#include <new>

namespace headrace::load {
namespace {

// Arguments beyond this many are put on the heap for the call; no op has so many, a large concat may.
constexpr int32_t kFewArgs = 32;

// The error for a call without memory, which is made before it is needed.
const Ref<ErrorObj>& no_memory() {
  static const Ref<ErrorObj> error = [] {
    auto made = make_object<ErrorObj>();
    made->message = "there is no memory for the arguments of an external function";
    return made;
  }();
  return error;
}

Ref<ErrorObj> call(void* self, DLTensor* const* args, int32_t num_args) {
  auto* function = static_cast<FunctionObj*>(static_cast<Object*>(self));
  std::array<RawValue, kFewArgs> few;
  std::unique_ptr<RawValue[]> many;
  if (num_args > kFewArgs) many.reset(new (std::nothrow) RawValue[static_cast<size_t>(num_args)]);
  if (num_args > kFewArgs && many == nullptr) return no_memory();
  RawValue* values = num_args > kFewArgs ? many.get() : few.data();
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
  no_memory();
  return {.function = &call, .self = static_cast<Object*>(function.object().get())};
}

}  // namespace headrace::load
