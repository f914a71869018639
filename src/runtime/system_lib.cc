#include "runtime/system_lib.h"

#include <headrace/system_lib.h>

#include <cstddef>
#include <map>
#include <mutex>

namespace headrace::runtime {
namespace {

static_assert(sizeof(hr_value) == sizeof(RawValue) && offsetof(hr_value, v) == offsetof(RawValue, v));
static_assert(HR_TYPE_NONE == type_index::kNone && HR_TYPE_INT == type_index::kInt &&
              HR_TYPE_BOOL == type_index::kBool && HR_TYPE_FLOAT == type_index::kFloat &&
              HR_TYPE_POINTER == type_index::kOpaquePtr && HR_TYPE_DLTENSOR == type_index::kDLTensorPtr &&
              HR_TYPE_TENSOR == type_index::kTensor && HR_OBJECT_HEADER_SIZE == sizeof(Object));

struct Symbols {
  std::mutex mutex;
  std::map<std::string, hr_function> functions;
};

// Made when it is first asked for, before main perhaps, and never destroyed.
Symbols& symbols() {
  static Symbols& symbols = *new Symbols;
  return symbols;
}

hr_function find_symbol(const std::string& name) {
  Symbols& known = symbols();
  const std::lock_guard lock(known.mutex);
  const auto it = known.functions.find(name);
  return it == known.functions.end() ? nullptr : it->second;
}

class SystemLibBody : public ModuleBody {
 public:
  explicit SystemLibBody(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string_view type_key() const override { return "system_lib"; }
  PackedFunc get_function(const std::string& name, const Module&) override {
    const hr_function function = find_symbol(prefix_ + name);
    if (function == nullptr) return {};
    return PackedFunc([function](Args args) {
      RawValue result;
      const auto* values = reinterpret_cast<const hr_value*>(args.size() == 0 ? nullptr : &args[0]);
      if (function(nullptr, values, args.size(), reinterpret_cast<hr_value*>(&result)) != 0) throw_stored_error();
      return Value::adopt(result);
    });
  }

 private:
  std::string prefix_;
};

}  // namespace

Module system_lib(const std::string& prefix) { return Module(std::make_unique<SystemLibBody>(prefix)); }

}  // namespace headrace::runtime

hr_status hr_register_system_symbol(const char* name, hr_function function) noexcept {
  using namespace headrace::runtime;
  if (name == nullptr || *name == '\0' || function == nullptr) return HR_USAGE;
  try {
    Symbols& known = symbols();
    const std::lock_guard lock(known.mutex);
    return known.functions.emplace(name, function).first->second == function ? HR_OK : HR_USAGE;
  } catch (...) {
    return HR_INTERNAL;  // no memory
  }
}

void hr_set_function_error(const char* message) noexcept {
  using namespace headrace;
  try {
    throw_user_error("{}", message == nullptr ? "a function failed without saying why" : message);
  } catch (...) {
    store_current_exception();
  }
}
