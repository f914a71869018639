#include "relay/patterns/attr_match.h"

#include <atomic>

#include "object/structural_equal.h"
#include "relay/call_attr.h"
#include "tensor/data_type.h"

namespace headrace::relay {

namespace {

std::atomic<OpAttrReader> op_attr_reader{nullptr};

std::optional<double> number_in(const Value& value) {
  const RawValue& raw = value.raw();
  if (raw.type_index == type_index::kInt || raw.type_index == type_index::kBool)
    return static_cast<double>(raw.v.v_int);
  if (raw.type_index == type_index::kFloat) return raw.v.v_float;
  if (const auto* imm = value.as_node<IntImmNode>()) return static_cast<double>(imm->value);
  if (const auto* imm = value.as_node<FloatImmNode>()) return imm->value;
  return std::nullopt;
}

std::optional<std::string> text_in(const Value& value) {
  if (value.is<std::string>()) return value.as<std::string>();
  if (const auto* imm = value.as_node<StringImmNode>()) return imm->value;
  if (value.type_index() == type_index::kDataType) return value.as<DataType>().to_string();
  return std::nullopt;
}

std::optional<std::vector<Value>> items_in(const Value& value) {
  if (const auto* array = value.as_node<ArrayObj>()) return array->items;
  if (value.type_index() != type_index::kShape) return std::nullopt;
  std::vector<Value> items;
  for (const int64_t dim : value.as<Shape>()) items.emplace_back(dim);
  return items;
}

// Recursive: values of attributes nest as deep as their author wrote them; past kMaxValueDepth they are unequal.
constexpr int kMaxValueDepth = 64;

bool values_equal(const Value& a, const Value& b, int depth = 0) {
  if (depth > kMaxValueDepth) return false;
  if (const auto x = number_in(a), y = number_in(b); x && y) return *x == *y;
  if (const auto x = text_in(a), y = text_in(b); x && y) return *x == *y;
  if (const auto x = items_in(a), y = items_in(b); x && y)
    return std::equal(x->begin(), x->end(), y->begin(), y->end(),
                      [&](const Value& left, const Value& right) { return values_equal(left, right, depth + 1); });
  return structural_equal(a, b);
}

std::optional<Value> attr_of_op(const Op& op, const std::string& key) {
  Value value;
  if (const OpAttrReader reader = op_attr_reader.load(std::memory_order_acquire)) {
    value = reader(op, key);
  } else if (const std::any* found = op->find_any(key)) {
    if (const Value* set = std::any_cast<Value>(found)) value = *set;
  }
  if (value.is_none()) return std::nullopt;
  return value;
}

std::optional<Value> attr_of(const Expr& expr, const std::string& key) {
  if (const auto* call = expr.as<CallNode>()) return find_call_attr(*call, key);
  if (const auto* function = expr.as<FunctionNode>()) return function->attrs.get(key);
  return attr_of_op(expr.cast<OpNode>(), key);
}

}  // namespace

bool has_attrs(const Expr& expr, const Map<std::string, Value>& attrs) {
  if (!expr.is<CallNode>() && !expr.is<FunctionNode>() && !expr.is<OpNode>()) return false;
  for (const auto& [key, wanted] : attrs) {
    const std::optional<Value> found = attr_of(expr, key);
    if (!found || !values_equal(wanted, *found)) return false;
  }
  return true;
}

void set_op_attr_reader(OpAttrReader reader) { op_attr_reader.store(reader, std::memory_order_release); }

}  // namespace headrace::relay
