#include "lower/user_ops/open_attrs.h"

#include "ir/op_attrs.h"
#include "relay/op_keys.h"

namespace headrace::lower {

using ops::FusionKind;

namespace {

constexpr std::string_view kPatternKey = "TOpPattern";
constexpr std::string_view kStatefulKey = "TOpIsStateful";

FusionKind fusion_kind(const OpNode& op, const Value& value) {
  const int64_t number = value.is<int64_t>() ? value.as<int64_t>() : -1;
  if (number < 0 || number > 8 || number == 5 || number == 6)
    throw_wrong_op_attr(op, kPatternKey, "an op pattern: 0 to 4, 7 or 8 (relay.op.OpPattern)", value);
  return static_cast<FusionKind>(number);
}

}  // namespace

void set_open_attr(const Op& op, const std::string& key, const Value& value) {
  if (key == kPatternKey) return set_user_fusion(op, fusion_kind(*op, value));
  if (key == kStatefulKey) {
    if (!value.is<bool>()) throw_wrong_op_attr(*op, key, "a bool", value);
    return set_user_stateful(op, value.as<bool>());
  }
  const std::any* known = op->find_any(key);
  if (known != nullptr && std::any_cast<Value>(known) == nullptr)
    throw_user_error("the attribute '{}' of op '{}' is set in C++ and of another kind; choose another key", key,
                     op->name);
  op->set(OpKey<Value>{key}, value);
}

Value get_open_attr(const Op& op, const std::string& key) {
  if (key == kPatternKey) {
    const FusionKind* kind = op->find(ops::kFusionKind);
    return kind == nullptr ? Value() : Value(static_cast<int64_t>(*kind));
  }
  if (key == kStatefulKey) return Value(relay::is_stateful(*op));
  const std::any* found = op->find_any(key);
  const Value* value = found == nullptr ? nullptr : std::any_cast<Value>(found);
  return value == nullptr ? Value() : *value;
}

void reset_open_attr(const Op& op, const std::string& key) {
  if (key == kPatternKey) return set_user_fusion(op, std::nullopt);
  if (key == kStatefulKey) return set_user_stateful(op, false);
  const std::any* known = op->find_any(key);
  if (known != nullptr && std::any_cast<Value>(known) != nullptr) op->erase(key);
}

}  // namespace headrace::lower
