#include "object/reflect.h"

#include <algorithm>
#include <cstdlib>

#include "object/array.h"
#include "object/string.h"

namespace headrace {

const FieldInfo* find_field(const TypeInfo& type, std::string_view name) {
  for (const FieldInfo& field : type.fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

static std::string field_names(const TypeInfo& type) {
  std::vector<std::string> names;
  for (const FieldInfo& field : type.fields) names.push_back(field.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Value get_field(const Object& node, std::string_view name) {
  const TypeInfo& type = node.type_info();
  const FieldInfo* field = find_field(type, name);
  if (field == nullptr) throw_user_error("{} has no field '{}'; its fields: {}", type.key, name, field_names(type));
  return field->get(&node);
}

// Returns " whose item 2 is int" for an Array that a field of kind "Array[T]" refuses.
static std::string wrong_item(const std::string& kind, const Value& value) {
  const auto* array = value.as_node<ArrayObj>();
  if (array == nullptr || !kind.starts_with("Array[")) return "";
  const std::string wanted = kind.substr(6, kind.size() - 7);
  for (size_t i = 0; i < array->items.size(); ++i) {
    const Value& item = array->items[i];
    const TypeInfo* type = item.is_object() ? &type_info_of(item.type_index()) : nullptr;
    while (type != nullptr && type->key != wanted) type = type->parent;
    if (type == nullptr && kind_name(item.raw()) != wanted)
      return fmt::format(" whose item {} is {}", i, kind_name(item.raw()));
  }
  return "";
}

// Returns " (-128 to 127)" for a field of integers with fewer bits than the value.
static std::string range_of(const FieldInfo& field) {
  constexpr std::string_view kOfBits = "int of ";
  const size_t at = field.kind.find(kOfBits);
  if (at == std::string::npos) return "";
  const int bits = std::atoi(field.kind.c_str() + at + kOfBits.size());
  const bool is_signed = field.accepts(Value(-1).raw());
  const int64_t last = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return fmt::format(" ({} to {})", is_signed ? -last - 1 : 0, last);
}

// Returns "int 3; write a list, such as [3, 3]" for a number where a shape belongs.
static std::string wrong_value(const FieldInfo& field, const Value& value) {
  if (value.type_index() != type_index::kInt) return kind_name(value.raw()) + wrong_item(field.kind, value);
  const auto number = value.as<int64_t>();
  const bool is_shape = field.kind.ends_with("shape"), is_bool = field.kind.ends_with("bool");
  return fmt::format("int {}{}", number,
                     is_shape  ? fmt::format("; write a list, such as [{0}, {0}]", number)
                     : is_bool ? "; write true or false"
                               : "");
}

// Returns whether a value is "void" or "", Relay's words for no dtype, in a field that may be without one.
static bool is_no_dtype(const FieldInfo& field, const RawValue& raw) {
  if (field.kind != "None or dtype") return false;
  constexpr uint8_t kHandle = 3;  // DLPack's code; of no bits it is void
  if (raw.type_index == type_index::kDataType) return raw.v.v_dtype.code == kHandle && raw.v.v_dtype.bits == 0;
  return is_string(raw) && (string_of(raw).empty() || string_of(raw) == "void");
}

// Returns whether a field of bools is given a number other than 0 and 1. All ints convert to bool, so this would pass.
static bool is_no_bool(const FieldInfo& field, const Value& value) {
  if (value.type_index() != type_index::kInt || !field.kind.ends_with("bool")) return false;
  return value.as<int64_t>() != 0 && value.as<int64_t>() != 1;
}

static void set_field(Object* node, const TypeInfo& type, const FieldInfo& field, const Value& given) {
  const bool converts = field.options.convert != nullptr && !given.is_none();
  const Value value = is_no_dtype(field, given.raw()) ? Value() : converts ? field.options.convert(given) : given;
  if (is_no_bool(field, value) || (!field.accepts(value.raw()) && !(value.is_none() && field.options.optional)))
    throw_user_error("field '{}' of {}: expected {}{}, got {}", field.name, type.key, field.kind, range_of(field),
                     wrong_value(field, value));
  // An optional field that cannot hold None keeps the value of an empty node.
  if (field.accepts(value.raw())) field.set(node, value.raw());
}

ObjectRef make_node(std::string_view key, const std::vector<std::pair<std::string, Value>>& fields) {
  const TypeInfo* type = find_type(key);
  if (type == nullptr) throw_user_error("there is no type '{}'", key);
  if (type->make_empty == nullptr) throw_user_error("type {} cannot be made from its fields", key);
  ObjectRef node(type->make_empty());
  for (const auto& [name, value] : fields) {
    const FieldInfo* field = find_field(*type, name);
    if (field == nullptr || field->options.transient)
      throw_user_error("{} has no field '{}' to set; its fields: {}", key, name, field_names(*type));
    set_field(node.get(), *type, *field, value);
  }
  for (const FieldInfo& field : type->fields) {
    const auto given =
        std::count_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == field.name; });
    if (given > 1) throw_user_error("field '{}' of {} is given {} times", field.name, key, given);
    if (field.options.transient) continue;
    if (given == 0 && field.options.has_default) {
      set_field(node.get(), *type, field, field.options.default_value);
    } else if (!field.options.optional && (given == 0 || field.get(node.get()).is_none())) {
      throw_user_error("{} needs its field '{}': {}", key, field.name, field.kind);
    }
  }
  return node;
}

}  // namespace headrace
