#include "runtime/system_lib.h"

#include <headrace/system_lib.h>

#include <cstddef>
#include <map>
#include <mutex>

namespace headrace::runtime {
namespace {

static_assert(sizeof(hr_value) == sizeof(RawValue) && offsetof(hr_value, v) == offsetof(RawValue, v));
static_assert(HR_TYPE_NONE + 0 == type_index::kNone + 0 && HR_TYPE_INT + 0 == type_index::kInt + 0);
static_assert(HR_TYPE_BOOL + 0 == type_index::kBool + 0 && HR_TYPE_FLOAT + 0 == type_index::kFloat + 0);
static_assert(HR_TYPE_POINTER + 0 == type_index::kPtr + 0 && HR_TYPE_DLTENSOR + 0 == type_index::kDLTensorPtr + 0);
static_assert(HR_TYPE_TENSOR + 0 == type_index::kTensor + 0 && HR_OBJECT_HEADER_SIZE == sizeof(Object));

struct Symbols {
  std::mutex mutex;
  std::map<std::string, hr_function> functions;
};

// Returns the table, made at first use (perhaps before main) and never destroyed.
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
    return PackedFunc([function, name = prefix_ + name](Args args) {
      RawValue result;
      const auto* values = reinterpret_cast<const hr_value*>(args.size() == 0 ? nullptr : &args[0]);
      take_stored_error();  // drops an error of a function before this one
      if (function(nullptr, values, args.size(), reinterpret_cast<hr_value*>(&result)) != 0) {
        Ref<ErrorObj> error = take_stored_error();
        if (!error) throw_user_error("a function of the process, '{}', failed without saying why", name);
        store_error(std::move(error));
        throw_stored_error();
      }
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
