#include "relay/user_attrs.h"

#include <algorithm>
#include <array>

#include "ir/text_names.h"
#include "object/structural_equal.h"

namespace headrace::relay {

void UserAttrsNode::fields(FieldList<UserAttrsNode>& f) {
  f.field<&UserAttrsNode::values>("values", {.doc = "the attributes by name"});
}

namespace {

constexpr std::array<std::string_view, 8> kKindNames = {"int",   "float", "bool",       "str",
                                                        "dtype", "shape", "Array[int]", "Array[float]"};

bool is_number(const Value& value) {
  return value.type_index() == type_index::kInt || value.type_index() == type_index::kFloat;
}

// Returns the integers of a shape or of an array of integers; nothing when an item is not an integer.
std::optional<std::vector<int64_t>> integers_of(const Value& value) {
  if (value.type_index() == type_index::kShape) {
    const Shape shape = value.as<Shape>();
    return std::vector<int64_t>(shape.begin(), shape.end());
  }
  const auto* array = value.as_node<ArrayObj>();
  if (array == nullptr) return std::nullopt;
  std::vector<int64_t> integers;
  for (const Value& item : array->items) {
    const auto* imm = item.as_node<IntImmNode>();
    if (imm == nullptr && item.type_index() != type_index::kInt) return std::nullopt;
    integers.push_back(imm != nullptr ? imm->value : item.as<int64_t>());
  }
  return integers;
}

std::optional<Array<double>> reals_of(const Value& value) {
  Array<double> reals;
  if (const auto integers = integers_of(value)) {
    for (const int64_t integer : *integers) reals.push_back(static_cast<double>(integer));
    return reals;
  }
  const auto* array = value.as_node<ArrayObj>();
  if (array == nullptr) return std::nullopt;
  for (const Value& item : array->items) {
    if (!is_number(item)) return std::nullopt;
    reals.push_back(item.as<double>());
  }
  return reals;
}

// Reads a dtype, or its name.
std::optional<Value> dtype_of(const Value& value) {
  if (value.type_index() == type_index::kDataType) return value;
  if (!value.is<std::string>()) return std::nullopt;
  try {
    return Value(value.as<DataType>());
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Returns `value` in the form in which an attribute of that kind is stored, so that equal attributes compare equal;
// nothing for a value of another kind.
std::optional<Value> stored(AttrKind kind, const Value& value) {
  const auto* imm = value.as_node<IntImmNode>();
  switch (kind) {
    case AttrKind::integer:
      if (imm != nullptr) return Value(imm->value);
      return value.type_index() == type_index::kInt ? std::optional(value) : std::nullopt;
    case AttrKind::real:
      return is_number(value) ? std::optional(Value(value.as<double>())) : std::nullopt;
    case AttrKind::boolean:
      return value.type_index() == type_index::kBool ? std::optional(value) : std::nullopt;
    case AttrKind::text:
      return value.is<std::string>() ? std::optional(value) : std::nullopt;
    case AttrKind::dtype:
      return dtype_of(value);
    case AttrKind::shape: {
      const auto integers = integers_of(value);
      return integers ? std::optional(Value(Shape(integers->begin(), integers->end()))) : std::nullopt;
    }
    case AttrKind::integers: {
      const auto integers = integers_of(value);
      return integers ? std::optional(Value(Array<int64_t>(*integers))) : std::nullopt;
    }
    case AttrKind::reals: {
      const auto reals = reals_of(value);
      return reals ? std::optional(Value(*reals)) : std::nullopt;
    }
  }
  return std::nullopt;
}

const AttrSchema& schema_of(const OpNode& op) {
  static const AttrSchema none;
  const AttrSchema* schema = op.find(kAttrSchema);
  return schema == nullptr ? none : *schema;
}

const AttrSpec* find_spec(const AttrSchema& schema, std::string_view name) {
  const auto at = std::find_if(schema.begin(), schema.end(), [&](const AttrSpec& spec) { return spec.name == name; });
  return at == schema.end() ? nullptr : &*at;
}

std::string names_of(const AttrSchema& schema) {
  std::vector<std::string_view> names;
  for (const AttrSpec& spec : schema) names.push_back(spec.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns the value among `given`, which may contain it once.
const Value* find_given(const OpNode& op, const std::vector<std::pair<std::string, Value>>& given,
                        std::string_view name) {
  const Value* found = nullptr;
  for (const auto& [key, value] : given) {
    if (key != name) continue;
    if (found != nullptr) throw_user_error("{}: the attribute '{}' is given twice", op.name, name);
    found = &value;
  }
  return found;
}

const OpArgument* find_argument(const OpNode& op, std::string_view name) {
  const auto at = std::find_if(op.arguments.begin(), op.arguments.end(),
                               [&](const OpArgument& argument) { return argument.name == name; });
  return at == op.arguments.end() ? nullptr : &*at;
}

void check_name(const OpNode& op, const std::string& name, std::string_view what) {
  if (!is_identifier(name))
    throw_user_error("{}: '{}' cannot name an {}: choose letters, digits and _", op.name, name, what);
  if (find_spec(schema_of(op), name) != nullptr)
    throw_user_error("{}: there is an attribute '{}' already", op.name, name);
  if (find_argument(op, name) != nullptr) throw_user_error("{}: there is an argument '{}' already", op.name, name);
}

Value value_of(const OpNode& op, const AttrSpec& spec, const Value* given) {
  if (given == nullptr || given->is_none()) {
    if (spec.default_value.is_none())
      throw_user_error("{} needs its attribute '{}': {}", op.name, spec.name, name_of(spec.kind));
    return spec.default_value;
  }
  const std::optional<Value> value = stored(spec.kind, *given);
  if (!value)
    throw_user_error("{}: attribute '{}': expected {}, got {}", op.name, spec.name, name_of(spec.kind), repr(*given));
  return *value;
}

}  // namespace

std::string_view name_of(AttrKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

AttrKind parse_attr_kind(std::string_view name) {
  const auto at = std::find(kKindNames.begin(), kKindNames.end(), name);
  if (at == kKindNames.end())
    throw_user_error("'{}' is not a kind of attribute; the kinds: {}", name, fmt::join(kKindNames, ", "));
  return static_cast<AttrKind>(at - kKindNames.begin());
}

void add_attr(OpNode& op, AttrSpec spec) {
  check_name(op, spec.name, "attribute");
  AttrSchema schema = schema_of(op);
  if (!spec.default_value.is_none()) spec.default_value = value_of(op, spec, &spec.default_value);
  schema.push_back(std::move(spec));
  op.set(kAttrSchema, std::move(schema));
  op.attrs_type_key = UserAttrsNode::type_key;
}

void add_argument(OpNode& op, OpArgument argument) {
  check_name(op, argument.name, "argument");
  op.arguments.push_back(std::move(argument));
}

Attrs make_user_attrs(const OpNode& op, const std::vector<std::pair<std::string, Value>>& given) {
  const AttrSchema& schema = schema_of(op);
  for (const auto& [name, value] : given) {
    if (find_spec(schema, name) != nullptr) continue;
    if (schema.empty()) throw_user_error("{} takes no attributes, but '{}' is given", op.name, name);
    throw_user_error("{} has no attribute '{}'; its attributes: {}", op.name, name, names_of(schema));
  }
  if (schema.empty()) return {};
  auto attrs = make_object<UserAttrsNode>();
  for (const AttrSpec& spec : schema)
    attrs->values.set(spec.name, value_of(op, spec, find_given(op, given, spec.name)));
  return attrs;
}

static Attrs made_again(const OpNode& op, const UserAttrsNode& attrs) {
  std::vector<std::pair<std::string, Value>> given;
  for (const auto& [name, value] : attrs.values) given.emplace_back(name, value);
  return make_user_attrs(op, given);
}

std::string user_attrs_fault(const OpNode& op, const Attrs& attrs) {
  const AttrSchema& schema = schema_of(op);
  const auto* node = attrs.as<UserAttrsNode>();
  if (schema.empty()) return attrs ? fmt::format("it takes no attributes, got {}", attrs->key()) : "";
  if (node == nullptr) {
    return fmt::format(
        "it needs its attributes ({}), got {}; make them with make_user_attrs, in Python with the op's "
        "make_attrs",
        names_of(schema), attrs ? std::string(attrs->key()) : "none");
  }
  try {
    const Map<std::string, Value> usual = made_again(op, *node).as<UserAttrsNode>()->values;
    for (const auto& [name, value] : node->values) {
      // A number of another kind is of the same meaning and not the same node.
      if (!structural_equal(usual.at(name), value))
        return fmt::format(
            "its attribute '{}' is {} ({}) and must be {} ({}); make attributes with the op's make_attrs", name,
            repr(value), kind_name(value.raw()), repr(usual.at(name)), kind_name(usual.at(name).raw()));
    }
  } catch (const UserError& error) {
    return error.message();
  }
  return "";
}

Attrs whole_user_attrs(const OpNode& op, const Attrs& attrs) {
  const auto* node = attrs.as<UserAttrsNode>();
  const bool is_whole = node == nullptr || node->values.size() == schema_of(op).size();
  return is_whole ? attrs : made_again(op, *node);
}

Value user_attr(const CallNode& call, std::string_view name) {
  const std::string key(name);
  const OpNode* op = call.as_op();
  const Attrs attrs = op == nullptr ? call.attrs : whole_user_attrs(*op, call.attrs);
  const auto* node = attrs.as<UserAttrsNode>();
  if (node == nullptr || !node->values.contains(key))
    throw_at(call.span, op != nullptr ? op->name : "call", fmt::format("the call has no attribute '{}'", name));
  return node->values.at(key);
}

}  // namespace headrace::relay
