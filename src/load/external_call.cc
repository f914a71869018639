#include "load/external_call.h"

namespace headrace::load {
namespace {

Ref<ErrorObj> call(void* self, const RawValue* args, int32_t num_args) {
  auto* function = static_cast<FunctionObj*>(static_cast<Object*>(self));
  RawValue result;
  take_stored_error();  // drops an error of a function before this one
  const int code = function->safe_call(self, args, num_args, &result);
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
