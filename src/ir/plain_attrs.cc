// Attributes of functions without constants of scalar expressions.
#include "ir/expr.h"
#include "object/array.h"
#include "object/map.h"

namespace headrace {

namespace {

// Deeper lists are not attributes that a program has; what is below stays as it is.
constexpr int kMostNesting = 64;

Value plain(const Value& value, int depth);

Value plain_list(const ArrayObj& list, const Value& value, int depth) {
  Array<Value> items;
  bool changed = false;
  for (const Value& item : list.items) {
    Value each = plain(item, depth + 1);
    changed = changed || each.object() != item.object();
    items.push_back(std::move(each));
  }
  return changed ? Value(items) : value;
}

Value plain_map(const MapObj& map, const Value& value, int depth) {
  const auto result = make_object<MapObj>();
  bool changed = false;
  for (const auto& [key, item] : map.items) {
    Value each = plain(item, depth + 1);
    changed = changed || each.object() != item.object();
    result->set(key, std::move(each));
  }
  return changed ? Value(result) : value;
}

Value plain(const Value& value, int depth) {
  if (!value.is_object() || depth > kMostNesting) return value;
  if (const auto* number = value.as_node<IntImmNode>())
    return number->dtype.is_bool() ? Value(number->value != 0) : Value(number->value);
  if (const auto* number = value.as_node<FloatImmNode>()) return Value(number->value);
  if (const auto* text = value.as_node<StringImmNode>()) return Value(text->value);
  if (const auto* list = value.as_node<ArrayObj>()) return plain_list(*list, value, depth);
  if (const auto* map = value.as_node<MapObj>()) return plain_map(*map, value, depth);
  return value;
}

}  // namespace

DictAttrs plain_attrs(const DictAttrs& attrs) { return attrs.empty() ? attrs : plain(Value(attrs), 0).as<DictAttrs>(); }

}  // namespace headrace
