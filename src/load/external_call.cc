#include "load/external_call.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace headrace::load {
namespace {

// Arguments beyond this many are put on the heap for the call; no op has so many, a large concat may.
constexpr int32_t kFewArgs = 32;

void write_message(const hr_kernel_env* env, const std::string& message) {
  if (env->message == nullptr || env->message_size == 0) return;
  const size_t size = std::min<size_t>(message.size(), env->message_size - 1);
  std::memcpy(env->message, message.data(), size);
  env->message[size] = '\0';
}

// An exception of another language says little without its name: "KeyError: 'x'".
std::string message_of(const Ref<ErrorObj>& error) {
  if (!error) return "an external function failed without saying why";
  const bool is_ours = error->kind.empty() || error->kind == "UserError" || error->kind == "InternalError";
  return is_ours ? error->message : fmt::format("{}: {}", error->kind, error->message);
}

int32_t call(void* self, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
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
  const int code = function->safe_call(self, values, num_args, &result);
  if (code == 0) {
    const Value released = Value::adopt(result);
    return 0;
  }
  Ref<ErrorObj> error = take_stored_error();
  write_message(env, message_of(error));
  // An exception of another language stays whole for who can raise it again.
  if (error && error->payload) store_error(std::move(error));
  return -1;
}

}  // namespace

executors::ExternalCall external_call(const PackedFunc& function) {
  return {.function = &call, .self = static_cast<Object*>(function.object().get())};
}

}  // namespace headrace::load
