#include "relay/call_attr.h"

#include "object/reflect.h"
#include "relay/user_attrs.h"

namespace headrace::relay {

namespace {

Ref<UserAttrsNode> user_attrs_of(const CallNode& call) {
  const Attrs whole = call.as_op() == nullptr ? call.attrs : whole_user_attrs(*call.as_op(), call.attrs);
  return whole.cast<UserAttrsNode>();
}

}  // namespace

std::optional<Value> find_call_attr(const CallNode& call, const std::string& name) {
  if (!call.attrs) return std::nullopt;
  if (call.attrs.is<UserAttrsNode>()) return user_attrs_of(call)->values.get(name);
  const FieldInfo* field = find_field(call.attrs->type_info(), name);
  return field == nullptr ? std::nullopt : std::optional<Value>(field->get(call.attrs.object()));
}

Attrs with_call_attr(const CallNode& call, const std::string& name, const Value& value) {
  std::vector<std::pair<std::string, Value>> values;
  const auto add = [&](const std::string& key, const Value& old) {
    values.emplace_back(key, key == name ? value : old);
  };
  if (call.attrs.is<UserAttrsNode>()) {
    for (const auto& [key, old] : user_attrs_of(call)->values) add(key, old);
    return make_user_attrs(*call.as_op(), values);
  }
  const TypeInfo& type = call.attrs->type_info();
  for (const FieldInfo& field : type.fields) add(field.name, field.get(call.attrs.object()));
  return make_node(type.key, values).cast<AttrsNode>();
}

}  // namespace headrace::relay
