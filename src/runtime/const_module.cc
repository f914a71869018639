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

  SavedModule save_apart(const Module&) const override {
    SavedModule saved{.bytes = save_json(Value(Map<std::string, Value>{{kSymbol, Value(symbol_)}}))};
    for (const NDArray& constant : constants_) saved.constants.push_back(constant.to_dense());
    return saved;
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

Module load_const_module(const SavedModule& saved) {
  using Fields = Map<std::string, Value>;
  const Value read = load_json(saved.bytes);
  const bool is_map = !read.is_none() && read.is<Fields>();
  const auto get = [&](const char* key) { return is_map ? read.as<Fields>().get(key) : std::nullopt; };
  const auto symbol = get(kSymbol), within = get(kConstants);
  const bool are_tensors = !within || (!within->is_none() && within->is<Array<NDArray>>());
  if (!symbol || !symbol->is<std::string>() || !are_tensors)
    throw_user_error("the bytes are not those of a module of the kind {}", kConstModuleKind);
  const Array<NDArray> constants = within ? within->as<Array<NDArray>>() : Array<NDArray>(saved.constants);
  return Module(std::make_unique<ConstBody>(symbol->as<std::string>(), constants));
}

}  // namespace headrace::runtime
