#include "runtime/function_module.h"

#include <algorithm>

#include "runtime/own_kinds.h"

namespace headrace::runtime {
namespace {

class FunctionsBody : public ModuleBody {
 public:
  FunctionsBody(std::string type_key, std::map<std::string, PackedFunc> functions, std::optional<std::string> binary)
      : type_key_(std::move(type_key)), functions_(std::move(functions)), binary_(std::move(binary)) {}
  std::string_view type_key() const override { return type_key_; }
  PackedFunc get_function(const std::string& name, const Module&) override {
    const auto it = functions_.find(name);
    return it == functions_.end() ? PackedFunc() : it->second;
  }
  std::string save_to_binary(const Module& self) const override {
    return binary_ ? *binary_ : ModuleBody::save_to_binary(self);
  }

 private:
  std::string type_key_;
  std::map<std::string, PackedFunc> functions_;
  std::optional<std::string> binary_;
};

}  // namespace

Module make_function_module(const std::string& type_key, std::map<std::string, PackedFunc> functions,
                            std::optional<std::string> binary) {
  if (type_key.empty()) throw_user_error("a module's kind is empty; give the name by which its loader is found");
  if (std::ranges::find(kOwnKinds, type_key) != kOwnKinds.end())
    throw_user_error("a module's kind is '{}', which is that of a module that Headrace makes; name another kind",
                     type_key);
  return Module(std::make_unique<FunctionsBody>(type_key, std::move(functions), std::move(binary)));
}

}  // namespace headrace::runtime
