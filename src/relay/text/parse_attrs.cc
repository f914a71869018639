// Attributes and their values.
#include <algorithm>

#include "ir/near_names.h"
#include "ir/virtual_device.h"
#include "object/string.h"
#include "relay/device_attrs.h"
#include "relay/text/dyn_operands.h"
#include "relay/text/old_attrs.h"
#include "relay/text/parser.h"
#include "relay/user_attrs.h"

namespace headrace::relay {

bool Parser::at_attribute() const {
  return (peek().kind == TokenKind::word || peek().kind == TokenKind::string) && peek(1).is("=");
}

NamedValue Parser::attribute(const Array<Var>& params) {
  const Token name = take();
  take();
  Value read = value(0, params);
  return {name.kind == TokenKind::string ? unquote(name.text) : std::string(name.text), std::move(read)};
}

Value Parser::value(size_t depth, const Array<Var>& params) {
  check_depth(depth);
  const Token first = peek();
  if (first.kind == TokenKind::string && !peek(1).is(":")) return take(), Value(unquote(first.text));
  const size_t ahead = first.is("-") ? 1 : 0;
  const bool is_number = peek(ahead).kind == TokenKind::real || peek(ahead).kind == TokenKind::integer;
  const Token& after = peek(ahead + 1);
  const bool ends =
      after.is(",") || after.is("]") || after.is(")") || after.is("}") || after.is(";") || after.kind == TokenKind::end;
  if (is_number && (ends || peek(ahead).kind == TokenKind::real)) return value_number(accept("-"));
  if (accept("None") || accept("nullptr")) return {};
  if (ends && (first.is("True") || first.is("False"))) return take(), Value(first.is("True"));
  if (first.kind == TokenKind::word && peek(1).is("(")) return value_call(depth);
  const auto inside = [&] { return value(depth + 1, params); };
  if (accept("[")) return list_of(inside);
  if (accept("{")) return map_of(inside);
  if (first.is("meta") && peek(1).is("[")) return meta_value();
  if (first.kind == TokenKind::local && !params.empty()) return param_value(params);
  if (at_tuple()) return tuple_of(inside);
  if (ends && first.kind == TokenKind::word && !symbols_.contains(std::string(first.text))) fail_word(first);
  return value_dim();
}

// Throws for a word that is no value of an attribute.
void Parser::fail_word(const Token& word) {
  if (word.is("true") || word.is("false"))
    fail(word, fmt::format("'{}' is not a value; a bool is {}", word.text, word.is("true") ? "True" : "False"));
  bool is_dtype = true;
  try {
    static_cast<void>(DataType::parse(word.text));
  } catch (const UserError&) {
    is_dtype = false;
  }
  if (is_dtype) fail(word, fmt::format("'{0}' is not a value; a dtype is written as a text, \"{0}\"", word.text));
  fail(word, fmt::format("'{0}' names no dimension of a type before it; a text is written \"{0}\", a dimension of "
                         "its own {0}:int64",
                         word.text));
}

// Parses %x in an attribute of a function: the function's own parameter.
Value Parser::param_value(const Array<Var>& params) {
  const Token token = take();
  const auto found = std::find_if(params.begin(), params.end(),
                                  [&](const Var& param) { return param->name_hint == local_name(token); });
  if (found == params.end())
    fail(token, fmt::format("%{} is not a parameter of the function that has this attribute", token.text));
  return Value(*found);
}

Value Parser::value_dim() { return Value(dim(0).run()); }

// Returns whether the parenthesis here encloses a comma at its own level, or nothing.
bool Parser::at_tuple() const {
  if (!at("(")) return false;
  if (peek(1).is(")")) return true;
  int depth = 0;
  for (size_t i = 0; peek(i).kind != TokenKind::end; ++i) {
    depth += nesting_step(peek(i));
    if (depth == 0) return false;
    if (depth == 1 && peek(i).is(",")) return true;
  }
  return false;
}

// Parses meta[relay.Constant][0], the tensor; meta[VirtualDevice][0], the device's text; or the node of another kind.
Value Parser::meta_value() {
  const Token first = peek();
  if (peek(2).is("relay.Constant")) return Value(meta_constant(first));
  if (!peek(2).is("VirtualDevice")) return Value(meta_node(first));
  meta_kind();
  const int64_t index = meta_index("a device");
  if (index >= static_cast<int64_t>(devices().size()))
    fail(first, fmt::format("there is no virtual device {}: the text has {} (its #[metadata] block, or init_meta_table "
                            "in Python, holds them); or write it out, as in \"cuda:0\"",
                            index, devices().size()));
  return Value(device_text(first, Value(devices()[static_cast<size_t>(index)])));
}

// Returns the usual form of a device's text, for one device or for the parts of a tuple.
std::string Parser::device_text(const Token& first, const Value& value) {
  if (!value.is<std::string>()) fail(first, "a virtual device is meta[VirtualDevice][0] or a text such as \"cuda:0\"");
  try {
    const std::string text = value.as<std::string>();
    if (text.starts_with('(')) return parse_virtual_devices(text), text;
    return to_string(parse_virtual_device(text));
  } catch (const UserError& error) {
    fail(first, error.message());
  }
}

// Parses %x {virtual_device=meta[VirtualDevice][0]}: T
std::string Parser::declared_device() {
  take();
  take();
  expect("=", "after virtual_device");
  const Token first = peek();
  const std::string device = device_text(first, value(0));
  expect("}", "after a variable's device");
  return device;
}

// The attribute virtual_device of a function, in TVM's texts, is the device of its result.
void Parser::set_function_attr(DictAttrs& attrs, const Token& name, const NamedValue& field) {
  const bool is_device = field.first == "virtual_device";
  const std::string key = is_device ? kResultVirtualDevice : field.first;
  if (attrs.contains(key)) return report(name, fmt::format("the attribute '{}' is given twice", key));
  attrs.set(key, is_device ? Value(device_text(name, field.second)) : field.second);
}

// Parses a number. A plain integer is an int, one with a suffix a scalar expression; a real is a float with any suffix.
Value Parser::value_number(bool negative) {
  const Token token = peek();
  if (token.kind == TokenKind::integer && !token.suffix.empty()) return Value(dim_integer(negative));
  take();
  const bool is_int = token.kind == TokenKind::integer;
  const NDArray data = NDArray::empty({}, is_int ? DataType::int_(64) : DataType::float_(64));
  if (!is_int && !dtype_of_suffix(token.suffix, true))
    fail(token, fmt::format("'{}' is not a suffix of a number", token.suffix));
  if (is_int) {
    set_integer(data, 0, token, negative);
    return Value(*data.data<int64_t>());
  }
  set_real(data, 0, token, negative);
  return Value(*data.data<double>());
}

// Parses the one argument of tensor(...).
Value Parser::tensor_argument() {
  const Token first = peek();
  const bool negative = accept("-");
  if (first.is("const")) return Value(small_tensor(first));
  if (first.is("meta") && !peek(2).is("relay.Constant")) fail(first, "a tensor is meta[relay.Constant][0]");
  if (first.is("meta")) return Value(meta_constant(first));
  if (!first.is("True") && !first.is("False")) return Value(scalar(take(), negative));
  take();
  return Value(NDArray::from_vector<uint8_t>({}, DataType::bool_(), {first.is("True")}));
}

// Parses the arguments of shape(...) or device(...), given the word `name`.
Value Parser::integer_arguments(const Token& name, size_t depth) {
  Shape numbers;
  while (!at(")")) {
    const Token token = peek();
    const Value item = value(depth + 1);
    if (item.type_index() != type_index::kInt) fail(token, fmt::format("{} takes integers", name.text));
    numbers.push_back(item.as<int64_t>());
    if (!accept(",")) break;
  }
  if (name.is("shape")) return Value(numbers);
  if (numbers.size() != 2) fail(name, "device takes a type and an index");
  RawValue raw;
  raw.type_index = type_index::kDevice;
  raw.v.v_device = {static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1])};
  return Value::adopt(raw);
}

Value Parser::value_call(size_t depth) {
  const Token name = peek();
  if (!name.is("dtype") && !name.is("device") && !name.is("shape") && !name.is("tensor")) return value_dim();
  take();
  take();
  const Value result = name.is("dtype")    ? Value(dtype_word())
                       : name.is("tensor") ? tensor_argument()
                                           : integer_arguments(name, depth);
  expect(")", fmt::format("after the argument of {}", name.text));
  return result;
}

// Makes a shape of a list of plain integers for a field of any kind, as builders do; it prints back the same way.
static Value fit_any(const Value& value) {
  const auto* array = value.as_node<ArrayObj>();
  if (array == nullptr) return value;
  Shape shape;
  for (const Value& item : array->items) {
    if (item.type_index() != type_index::kInt) return value;
    shape.push_back(item.as<int64_t>());
  }
  return Value(shape);
}

// Makes shapes of lists of plain integers for a field of shapes, as builders do; equality distinguishes shapes and
// lists.
static Value fit_shapes(const Value& value) {
  const auto* array = value.as_node<ArrayObj>();
  if (array == nullptr) return value;
  Array<Value> fitted;
  for (const Value& item : array->items) fitted.push_back(fit_any(item));
  return Value(fitted);
}

// Lists of plain integers where the field holds dimensions, and the other way round.
static Value fit(const Value& value, const FieldInfo& field) {
  if (field.kind == "Array[shape]") return fit_shapes(value);
  if (field.accepts(value.raw())) {
    const bool only_takes_any = field.kind != "any value";
    if (only_takes_any) return value;
  }
  const bool wants_dims = field.kind.find("ir.PrimExpr") != std::string::npos;
  const auto fit_one = [&](const Value& item) -> Value {
    if (wants_dims && (item.type_index() == type_index::kInt || item.type_index() == type_index::kBool))
      return Value(make_int(item.raw().v.v_int));
    const auto* imm = item.as_node<IntImmNode>();
    if (!wants_dims && imm != nullptr) return Value(imm->value);
    return item;
  };
  if (field.kind == "any value") return fit_any(value);
  if (const auto* array = value.as_node<ArrayObj>()) {
    Array<Value> fitted;
    for (const Value& item : array->items) fitted.push_back(fit_one(item));
    return Value(fitted);
  }
  return fit_one(value);
}

Attrs Parser::user_attrs_of(const OpNode& op, const std::vector<NamedValue>& fields, const Token& first) {
  try {
    return make_user_attrs(op, fields);
  } catch (const UserError& error) {
    report(first, error.message());
  }
  return {};
}

// Returns whether Relay wrote None for an attribute that was not given; here None is often a value, such as no axes.
static bool is_left_out(const TypeInfo& type, const NamedValue& given) {
  const FieldInfo* field = given.second.is_none() ? find_field(type, given.first) : nullptr;
  return field != nullptr && field->options.has_default && !field->accepts(given.second.raw());
}

Attrs Parser::attrs_of(const TypeInfo& type, std::vector<NamedValue> fields, const Token& first) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (const FieldInfo* field = find_field(type, fields[i].first)) fields[i].second = fit(fields[i].second, *field);
    for (size_t j = 0; j < i; ++j) {
      if (fields[j].first == fields[i].first)
        report(first, fmt::format("the attribute '{}' is given twice", fields[i].first));
    }
  }
  std::erase_if(fields, [&](const NamedValue& given) { return is_left_out(type, given); });
  for (const auto& [name, given] : fields) {
    const FieldInfo* field = find_field(type, name);
    if (field != nullptr && !field->options.transient) continue;
    std::vector<std::string> known;
    for (const FieldInfo& one : type.fields) {
      if (!one.options.transient) known.push_back(one.name);
    }
    report(first, fmt::format("'{}' has no attribute '{}'; {}", first.text, name,
                              known.empty() ? "it has none" : near_or_all(name, known, "it has")));
    return {};
  }
  try {
    return make_node(type.key, fields).cast<AttrsNode>();
  } catch (const UserError& error) {
    report(first, error.message());
  }
  return {};
}

void Parser::take_dyn_attrs(const Token& first, Array<Expr>& args, CallAttrs& attrs) {
  try {
    for (NamedValue& field : take_dyn_operands(first.text, args)) attrs.fields.push_back(std::move(field));
  } catch (const UserError& error) {
    fail(first, error.message());
  }
}

void Parser::take_old_attrs_of(const OpNode& op, const Token& first, Array<Expr>& args, CallAttrs& attrs) {
  try {
    take_old_attrs(op, args, attrs.fields);
  } catch (const UserError& error) {
    fail(first, error.message());
  }
}

Attrs Parser::call_attrs(const Expr& callee, CallAttrs attrs, const Token& first) {
  if (!callee) return {};  // an op that was reported as unknown
  std::vector<NamedValue>& fields = attrs.fields;
  const auto* op = callee.as<OpNode>();
  std::string key = op == nullptr ? std::string() : op->attrs_type_key;
  bool has_schema = op != nullptr && op->find(kAttrSchema) != nullptr;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].first != "attrs_type_key") continue;
    if (!fields[i].second.is<std::string>()) fail(first, "attrs_type_key is a string");
    key = fields[i].second.as<std::string>();
    has_schema = false;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  if (attrs.none) return {};
  if (has_schema) return user_attrs_of(*op, fields, first);
  if (key.empty()) {
    if (!fields.empty())
      report(first, fmt::format("'{}' takes no attributes, but '{}' is given", first.text, fields[0].first));
    return {};
  }
  const TypeInfo* type = find_type(key);
  const TypeInfo& base = type_of<AttrsNode>();
  const bool is_attrs =
      type != nullptr && std::find(type->ancestors.begin(), type->ancestors.end(), base.index) != type->ancestors.end();
  if (!is_attrs) fail(first, fmt::format("there are no attributes of kind '{}'", key));
  return attrs_of(*type, std::move(fields), first);
}

}  // namespace headrace::relay
