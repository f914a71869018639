#include "runtime/const_module.h"

#include <atomic>
#include <mutex>

#include "object/json.h"

namespace headrace::runtime {
namespace {

constexpr const char* kSymbol = "symbol";
constexpr const char* kConstants = "constants";

class ConstBody : public ModuleBody {
 public:
  ConstBody(std::string symbol, Array<NDArray> constants)
      : symbol_(std::move(symbol)), constants_(std::move(constants)) {}
  std::string_view type_key() const override { return kConstModuleKind; }

  // Other functions of the imports are found by the caller, who searches these next.
  PackedFunc get_function(const std::string& name, const Module& self) override {
    if (name != symbol_) return {};
    const PackedFunc code = find_in_imports(self, symbol_);
    if (!code) return {};
    return PackedFunc([this, self, code](Args args) {
      initialize(self);
      return code.call(args);
    });
  }

  std::string save_to_binary(const Module&) const override {
    return save_json(Value(Map<std::string, Value>{{kSymbol, Value(symbol_)}, {kConstants, Value(constants_)}}));
  }

 private:
  static PackedFunc find_in_imports(const Module& self, const std::string& name) {
    for (const Module& import : self.imports()) {
      if (PackedFunc function = import.GetFunction(name, true)) return function;
    }
    return {};
  }

  void initialize(const Module& self) {
    if (is_ready_.load(std::memory_order_acquire)) return;
    const std::scoped_lock lock(mutex_);
    if (is_ready_.load(std::memory_order_relaxed)) return;
    const std::string name = fmt::format("{}{}", kInitPrefix, symbol_);
    const PackedFunc init = find_in_imports(self, name);
    if (!init) throw_user_error("the module of '{}' has no function '{}', which takes its constants", symbol_, name);
    init(constants_);
    is_ready_.store(true, std::memory_order_release);
  }

  const std::string symbol_;
  const Array<NDArray> constants_;
  std::mutex mutex_;
  std::atomic<bool> is_ready_ = false;
};

}  // namespace

Module make_const_module(const std::string& symbol, const Array<NDArray>& constants, const Module& code) {
  const Module module(std::make_unique<ConstBody>(symbol, constants));
  module.Import(code);
  return module;
}

Module load_const_module(const std::string& bytes) {
  const Value saved = load_json(bytes);
  using Saved = Map<std::string, Value>;
  const bool is_map = !saved.is_none() && saved.is<Saved>();
  const auto get = [&](const char* key) { return is_map ? saved.as<Saved>().get(key) : std::nullopt; };
  const auto symbol = get(kSymbol), constants = get(kConstants);
  if (!symbol || !symbol->is<std::string>() || !constants || constants->is_none() || !constants->is<Array<NDArray>>())
    throw_user_error("the bytes are not those of a module of the kind {}", kConstModuleKind);
  return Module(std::make_unique<ConstBody>(symbol->as<std::string>(), constants->as<Array<NDArray>>()));
}

}  // namespace headrace::runtime
