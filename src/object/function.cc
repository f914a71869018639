#include "object/function.h"

#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/frames.h"
#include "object/foreign_error.h"
#include "object/reserved_global.h"

namespace headrace {

namespace {

Ref<ErrorObj>& stored_error_slot() {
  thread_local Ref<ErrorObj> slot;
  return slot;
}

Ref<ErrorObj> make_error(std::string kind, std::string message, const ErrorPlace& where) {
  Ref<ErrorObj> error = make_object<ErrorObj>();
  error->kind = std::move(kind);
  error->message = std::move(message);
  error->op = where.op;
  error->place = where.place;
  return error;
}

struct GlobalTable {
  std::shared_mutex mutex;
  std::map<std::string, PackedFunc, std::less<>> functions;
  std::map<std::string, std::string, std::less<>> reserved;  // the reason by name
};

// Returns the table, which is never destroyed: a function may be called while the process ends.
GlobalTable& globals() {
  static GlobalTable& table = *new GlobalTable;
  return table;
}

}  // namespace

static Ref<ErrorObj> error_of_current_exception() {
  try {
    throw;
  } catch (const ForeignError& e) {
    Ref<ErrorObj> error = make_error(e.kind(), e.message(), e.where());
    error->payload = e.payload();
    return error;
  } catch (const Error& e) {
    Ref<ErrorObj> error = make_error(e.kind(), e.message(), e.where());
    error->traceback = frames_of(e);
    return error;
  } catch (const std::bad_alloc&) {
    return make_error("UserError", "out of memory", {});
  } catch (const std::exception& e) {
    return make_error("InternalError", e.what(), {});
  } catch (...) {
    return make_error("InternalError", "an exception of unknown type", {});
  }
}

int store_current_exception() noexcept {
  try {
    store_error(error_of_current_exception());
  } catch (...) {
    stored_error_slot() = {};  // there is no memory left for a message
  }
  return -1;
}

int detail::call_body(void* self, const RawValue* args, int32_t n, RawValue* result) noexcept {
  try {
    const auto* function = static_cast<const FunctionObj*>(static_cast<Object*>(self));
    *result = function->body(Args(args, n)).release();
    return 0;
  } catch (...) {
    return store_current_exception();
  }
}

void store_error(Ref<ErrorObj> error) { stored_error_slot() = std::move(error); }
Ref<ErrorObj> take_stored_error() { return std::exchange(stored_error_slot(), Ref<ErrorObj>()); }

void throw_stored_error() {
  Ref<ErrorObj> error = take_stored_error();
  if (!error) throw InternalError("a function failed without storing an error");
  if (error->payload) throw ForeignError(error->kind, error->message, error->payload);
  ErrorPlace where{error->op, error->place};
  if (error->kind == "UserError") throw UserError(error->message, std::move(where));
  if (error->kind == "InternalError") {
    // The frames it was thrown from, not those of here.
    const bool has_frames = !error->traceback.empty();
    throw InternalError(has_frames ? error->message + "\n" + error->traceback : error->message, std::move(where));
  }
  throw Error(error->kind, error->message, std::move(where));
}

PackedFunc::PackedFunc(std::function<Value(Args)> body) : object_(make_object<FunctionObj>()) {
  object_->safe_call = &detail::call_body;
  object_->body = std::move(body);
}

Value PackedFunc::call_by_convention(Args args) const {
  if (!object_) throw UserError("a null function was called");
  RawValue result;
  if (object_->safe_call(static_cast<Object*>(object_.get()), args.size() == 0 ? nullptr : &args[0], args.size(),
                         &result) != 0) {
    throw_stored_error();
  }
  return Value::adopt(result);
}

// Returns the name that a function is kept under. Functions of modules had names that begin with "module." once, and
// programs of that time still use these.
static std::string kept_name(std::string_view name) {
  const bool is_old = name.starts_with("module.loadbinary_") || name.starts_with("module.loadfile_") ||
                      (name.starts_with("module.") && name.ends_with("module_create"));
  return is_old ? fmt::format("runtime.{}", name) : std::string(name);
}

void register_global(const std::string& given, PackedFunc function, bool override) {
  const std::string name = kept_name(given);
  if (!function) throw_user_error("global function '{}': a null function cannot be registered", name);
  GlobalTable& table = globals();
  // Destroys the replaced function after the lock is released: a function of Python may run finalizers, which may look
  // in the registry.
  PackedFunc replaced;
  std::unique_lock lock(table.mutex);
  if (const auto reserved = table.reserved.find(name); reserved != table.reserved.end())
    throw_user_error("global function '{}' is not for registering: {}", name, reserved->second);
  auto [it, inserted] = table.functions.try_emplace(name, function);
  if (!inserted && !override)
    throw_user_error("global function '{}' is registered already; pass override to replace it", name);
  replaced = std::exchange(it->second, std::move(function));
}

void reserve_global(const std::string& name, const std::string& reason) {
  GlobalTable& table = globals();
  const std::unique_lock lock(table.mutex);
  table.reserved[name] = reason;
}

PackedFunc find_global(std::string_view name) {
  GlobalTable& table = globals();
  std::shared_lock lock(table.mutex);
  const auto it = name.starts_with("module.") ? table.functions.find(kept_name(name)) : table.functions.find(name);
  return it == table.functions.end() ? PackedFunc() : it->second;
}

PackedFunc get_global(std::string_view name) {
  PackedFunc function = find_global(name);
  if (!function) throw_user_error("there is no global function '{}'", name);
  return function;
}

std::vector<std::string> global_names() {
  GlobalTable& table = globals();
  std::shared_lock lock(table.mutex);
  std::vector<std::string> names;
  for (const auto& [name, function] : table.functions) names.push_back(name);
  return names;
}

}  // namespace headrace
