#include "object/value.h"

#include <algorithm>

#include "object/array.h"
#include "object/hash.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "object/string.h"

namespace headrace {

Value::Value(const char* text) : Value(std::string(text)) {}

std::string_view string_of(const RawValue& raw) {
  switch (raw.type_index) {
    case type_index::kRawStr:
      return raw.v.v_str;
    case type_index::kByteArrayPtr: {
      const auto* bytes = static_cast<const StrBytes*>(raw.v.v_ptr);
      return {bytes->data, bytes->size};
    }
    case type_index::kSmallStr:
    case type_index::kSmallBytes:
      return {raw.v.v_bytes, std::min<size_t>(raw.small_len, sizeof raw.v.v_bytes)};
    default: {
      // Str and Bytes have the same layout up to their bytes, in our library and in others of the same ABI.
      const auto* text = static_cast<const StrObj*>(raw.v.v_object);
      return {text->bytes.data, text->bytes.size};
    }
  }
}

bool is_string(const RawValue& raw) {
  return raw.type_index == type_index::kStr || raw.type_index == type_index::kRawStr ||
         raw.type_index == type_index::kSmallStr;
}

bool is_bytes(const RawValue& raw) {
  return raw.type_index == type_index::kBytes || raw.type_index == type_index::kByteArrayPtr ||
         raw.type_index == type_index::kSmallBytes;
}

Value ValueTraits<std::string>::to(std::string value) { return Value(make_object<StrObj>(std::move(value))); }
bool ValueTraits<std::string>::matches(const RawValue& raw) { return is_string(raw); }
std::string ValueTraits<std::string>::from(const RawValue& raw) { return std::string(string_of(raw)); }

Value Value::own(const RawValue& raw) {
  if (raw.type_index == type_index::kRawStr || raw.type_index == type_index::kSmallStr)
    return Value(std::string(string_of(raw)));
  if (raw.type_index == type_index::kByteArrayPtr || raw.type_index == type_index::kSmallBytes)
    return Value(Bytes{std::string(string_of(raw))});
  if (raw.type_index == type_index::kObjectRValueRef) {
    // The caller offers its reference; sharing the object serves as well as taking it.
    RawValue shared;
    Object* object = *static_cast<Object**>(raw.v.v_ptr);
    if (object == nullptr) return {};
    object->inc_strong();
    shared.type_index = object->type_index();
    shared.v.v_object = object;
    return Value::adopt(shared);
  }
  if (raw.type_index >= type_index::kStaticObjectBegin) raw.v.v_object->inc_strong();
  return Value::adopt(raw);
}

std::string kind_name(const RawValue& value) {
  switch (value.type_index) {
    case type_index::kNone:
      return "None";
    case type_index::kInt:
      return "int";
    case type_index::kBool:
      return "bool";
    case type_index::kFloat:
      return "float";
    case type_index::kPtr:
      return "pointer";
    case type_index::kDataType:
      return "dtype";
    case type_index::kDevice:
      return "device";
    case type_index::kDLTensorPtr:
      return "DLTensor*";
    default:
      break;
  }
  if (is_string(value)) return "str";
  if (is_bytes(value)) return "bytes";
  if (value.type_index >= type_index::kStaticObjectBegin) return std::string(value.v.v_object->key());
  return fmt::format("value of type index {}", value.type_index);
}

std::string kind_mismatch(const std::string& expected, const RawValue& got) {
  if (got.type_index == type_index::kInt) return fmt::format("expected {}, got int {}", expected, got.v.v_int);
  return fmt::format("expected {}, got {}", expected, kind_name(got));
}

void throw_kind_mismatch(const std::string& expected, const RawValue& got) {
  throw UserError(kind_mismatch(expected, got));
}

bool key_equal(const RawValue& a, const RawValue& b) {
  if (is_string(a) || is_string(b)) return is_string(a) && is_string(b) && string_of(a) == string_of(b);
  if (is_bytes(a) || is_bytes(b)) return is_bytes(a) && is_bytes(b) && string_of(a) == string_of(b);
  return a.type_index == b.type_index && a.v.v_int == b.v.v_int;
}

size_t key_hash(const RawValue& key) {
  if (is_string(key) || is_bytes(key)) return std::hash<std::string_view>()(string_of(key));
  return std::hash<int64_t>()(key.v.v_int);
}

const std::pair<Value, Value>* MapObj::find_item(const RawValue& key) const {
  auto [begin, end] = index.equal_range(key_hash(key));
  for (auto it = begin; it != end; ++it) {
    if (key_equal(items[it->second].first.raw(), key)) return &items[it->second];
  }
  return nullptr;
}

const Value* MapObj::find(const RawValue& key) const {
  const auto* item = find_item(key);
  return item == nullptr ? nullptr : &item->second;
}

void MapObj::set(Value key, Value value) {
  if (const Value* found = find(key.raw()); found != nullptr) {
    *const_cast<Value*>(found) = std::move(value);
    return;
  }
  const size_t hash = key_hash(key.raw());
  items.emplace_back(std::move(key), std::move(value));
  try {
    index.emplace(hash, items.size() - 1);
  } catch (...) {
    items.pop_back();
    throw;
  }
}

bool MapObj::erase(const RawValue& key) {
  const auto* item = find_item(key);
  if (item == nullptr) return false;
  const auto at = static_cast<size_t>(item - items.data());
  std::unordered_multimap<size_t, size_t> shorter;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != at) shorter.emplace(key_hash(items[i].first.raw()), i < at ? i : i - 1);
  }
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  index.swap(shorter);
  return true;
}

bool ValueTraits<Shape>::matches(const RawValue& raw) {
  return raw.type_index == type_index::kShape ||
         (raw.type_index == type_index::kArray && ValueTraits<Array<int64_t>>::matches(raw));
}

Shape ValueTraits<Shape>::from(const RawValue& raw) {
  if (raw.type_index == type_index::kArray) return ValueTraits<Array<int64_t>>::from(raw).to_vector();
  const auto* shape = static_cast<const ShapeObj*>(raw.v.v_object);
  return {shape->data, shape->data + shape->size};
}

void ADTObj::fields(FieldList<ADTObj>& f) {
  f.field<&ADTObj::tag>("tag", {.default_value = 0, .has_default = true});
  f.field<&ADTObj::items>("items");
}

bool ShapeObj::content_equal(const ShapeObj& a, const ShapeObj& b) {
  return std::equal(a.data, a.data + a.size, b.data, b.data + b.size);
}
uint64_t ShapeObj::content_hash(const ShapeObj& shape) {
  return hash_bytes(shape.data, shape.size * sizeof(int64_t), shape.size);
}
std::string ShapeObj::content_text(const ShapeObj& shape) {
  return fmt::format("Shape({})", fmt::join(shape.data, shape.data + shape.size, ", "));
}

ADT make_adt(int32_t tag, std::vector<Value> items) {
  ADT adt = make_object<ADTObj>();
  adt->tag = tag;
  adt->items = std::move(items);
  return adt;
}

}  // namespace headrace
