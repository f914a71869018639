#include "relay/text/tvm_kinds.h"

#include <charconv>
#include <map>

#include "ir/virtual_device.h"
#include "object/string.h"
#include "relay/text/print_names.h"
#include "tensor/device_kind.h"

namespace headrace::relay {

Value TvmFields::find(std::string_view name) const {
  for (const auto& [given, value] : values_) {
    if (given == name) return value;
  }
  return {};
}

namespace {

// Makes a node of a kind here of the fields that are given.
Value make_tvm_node(std::string_view key, std::vector<std::pair<std::string, Value>> fields) {
  std::erase_if(fields, [](const auto& field) { return field.second.is_none(); });
  return Value(make_node(key, fields));
}

// Version 0.6 named a type variable by a variable.
std::string tvm_type_variable_name(const TvmFields& fields) {
  if (fields.find("var").is_none()) return fields.get<std::string>("name_hint");
  return fields.get<PrimVar>("var")->name_hint;
}

Value make_tvm_type_var(const TvmFields& fields) {
  return make_tvm_node("relay.TypeVar", {{"name_hint", tvm_type_variable_name(fields)}, {"kind", fields.find("kind")}});
}

Value make_tvm_global_type_var(const TvmFields& fields) {
  return make_tvm_node("relay.GlobalTypeVar",
                       {{"name_hint", tvm_type_variable_name(fields)}, {"kind", fields.find("kind")}});
}

Value make_tvm_incomplete_type(const TvmFields& fields) {
  return make_tvm_node("relay.IncompleteType", {{"kind", fields.find("kind")}});
}

Value make_tvm_tensor_type(const TvmFields& fields) {
  Array<PrimExpr> shape;
  for (const PrimExpr& dim : fields.get_or<Array<PrimExpr>>("shape", {})) shape.push_back(to_dimension(dim));
  return Value(make_tensor_type(shape, fields.get<DataType>("dtype")));
}

Value make_tvm_tuple_type(const TvmFields& fields) {
  return Value(make_tuple_type(fields.get_or<Array<Type>>("fields", {})));
}

Value make_tvm_func_type(const TvmFields& fields) {
  return Value(make_func_type(fields.get_or<Array<Type>>("arg_types", {}), fields.get<Type>("ret_type"),
                              fields.get_or<Array<TypeVar>>("type_params", {}),
                              fields.get_or<Array<Type>>("type_constraints", {})));
}

Value make_tvm_ref_type(const TvmFields& fields) { return Value(make_ref_type(fields.get<Type>("value"))); }

Value make_tvm_type_call(const TvmFields& fields) {
  return Value(make_type_call(fields.get<Type>("func"), fields.get_or<Array<Type>>("args", {})));
}

Value make_tvm_constant(const TvmFields& fields) { return Value(make_constant(fields.get<NDArray>("data"))); }

Value make_tvm_var(const TvmFields& fields) {
  return Value(make_var(fields.get<std::string>("vid"), fields.get_or<Type>("type_annotation", {})));
}

Value tvm_name_hint(const TvmFields& fields) { return Value(fields.get<std::string>("name_hint")); }

Value make_tvm_global_var(const TvmFields& fields) {
  return make_tvm_node("relay.GlobalVar", {{"name_hint", tvm_name_hint(fields)}});
}

Value find_tvm_op(const TvmFields& fields) { return Value(get_op(current_op_name(fields.get<std::string>("repr")))); }

Value make_tvm_int(const TvmFields& fields) {
  const auto dtype = fields.get<DataType>("dtype");
  const auto value = fields.get<int64_t>("value");
  const bool is_integer = dtype.is_int() || dtype.is_uint() || dtype.is_bool();
  if (!is_integer || dtype.lanes() != 1) throw_user_error("an integer has the dtype {}", dtype);
  const int bits = dtype.is_bool() ? 1 : dtype.bits() - (dtype.is_int() ? 1 : 0);
  const bool fits = bits >= 63 || (value < int64_t{1} << bits && value >= (dtype.is_int() ? -(int64_t{1} << bits) : 0));
  if (!fits) throw_user_error("{} does not fit {}", value, dtype);
  return Value(make_int(value, dtype));
}

Value make_tvm_float(const TvmFields& fields) {
  const auto dtype = fields.get<DataType>("dtype");
  if (!dtype.is_float() || dtype.lanes() != 1) throw_user_error("a float has the dtype {}", dtype);
  return make_tvm_node("ir.FloatImm", {{"value", fields.get<double>("value")}, {"dtype", dtype}});
}

Value make_tvm_prim_var(const TvmFields& fields) {
  const auto dtype = fields.get<DataType>("dtype");
  if (dtype.lanes() != 1 || dtype.is_void()) throw_user_error("a variable has the dtype {}", dtype);
  return Value(make_prim_var(fields.get<std::string>("name"), dtype));
}

Value make_tvm_any(const TvmFields&) { return Value(make_any()); }

template <BinaryOp op>
Value make_tvm_binary(const TvmFields& fields) {
  const auto a = fields.get<PrimExpr>("a"), b = fields.get<PrimExpr>("b");
  if (a->dtype != b->dtype) throw_user_error("its operands have the dtypes {} and {}", a->dtype, b->dtype);
  const bool divides =
      op == BinaryOp::div || op == BinaryOp::mod || op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  if (divides && is_int(b, 0)) throw_user_error("it divides by zero");
  return Value(make_binary(op, a, b));
}

Value make_tvm_cast(const TvmFields& fields) {
  const auto dtype = fields.get<DataType>("dtype");
  const auto value = fields.get<PrimExpr>("value");
  if (dtype.lanes() != 1 || dtype.is_handle() || dtype.is_void() || value->dtype.is_handle())
    throw_user_error("it casts {} to {}", value->dtype, dtype);
  return Value(make_cast(dtype, value));
}

Value tvm_repr(const TvmFields& fields) { return fields.find("repr"); }

template <typename T>
T tvm_number(const TvmFields& fields) {
  const auto text = fields.get<std::string>("repr");
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw_user_error("'{}' is not its number", text);
  return number;
}

Value make_tvm_box_int(const TvmFields& fields) { return Value(tvm_number<int64_t>(fields)); }
Value make_tvm_box_float(const TvmFields& fields) { return Value(tvm_number<double>(fields)); }

Value make_tvm_box_bool(const TvmFields& fields) {
  const auto text = fields.get<std::string>("repr");
  if (text != "true" && text != "false") throw_user_error("'{}' is neither true nor false", text);
  return Value(text == "true");
}

Value tvm_string_imm(const TvmFields& fields) { return fields.find("value"); }
Value tvm_dict_attrs(const TvmFields& fields) { return Value(fields.get<Map<std::string, Value>>("__dict__")); }

Value make_tvm_target(const TvmFields& fields) {
  DictAttrs options = plain_attrs(fields.get_or<DictAttrs>("attrs", {}));
  for (const char* name : {"keys", "host"}) {
    if (const Value value = fields.find(name); !value.is_none()) options.set(name, value);
  }
  if (const auto tag = fields.get_or<std::string>("tag", ""); !tag.empty()) options.set("tag", Value(tag));
  return Value(make_target(fields.get<std::string>("kind"), options));
}

// TVM writes -1 for a type or an id that is not constrained; the id 0 is the usual one then.
Value make_tvm_virtual_device(const TvmFields& fields) {
  const auto type = fields.get<int64_t>("device_type_int");
  const auto id = fields.get<int64_t>("virtual_device_id");
  if (type == -1) throw_user_error("it names no type of device, and a program here cannot say that of a value");
  const auto kinds = device_kinds();
  if (std::none_of(kinds.begin(), kinds.end(), [&](const DeviceKind& kind) { return kind.type == type; }))
    throw_user_error("there is no device here of DLPack's type {}", type);
  if (id < -1 || id > std::numeric_limits<int32_t>::max()) throw_user_error("{} is not a number of a device", id);
  const VirtualDevice device =
      make_virtual_device({static_cast<DLDeviceType>(type), static_cast<int32_t>(std::max(id, int64_t{0}))},
                          fields.get_or<Target>("target", {}), fields.get_or<std::string>("memory_scope", ""));
  static_cast<void>(parse_virtual_device(to_string(device)));  // its memory may be none that a text can name
  return Value(device);
}

std::vector<TvmKind> tvm_kinds_of_values() {
  using enum TvmForm;
  return {{"runtime.String", {{"repr", repr}}, &tvm_repr},
          {"runtime.BoxInt", {{"repr", repr}}, &make_tvm_box_int},
          {"runtime.BoxFloat", {{"repr", repr}}, &make_tvm_box_float},
          {"runtime.BoxBool", {{"repr", repr}}, &make_tvm_box_bool},
          {"DictAttrs", {{"__dict__"}}, &tvm_dict_attrs},
          {"TargetKind", {{"repr", repr}}, &tvm_repr},
          {"Target", {{"kind"}, {"tag"}, {"keys"}, {"attrs"}, {"host"}}, &make_tvm_target},
          {"VirtualDevice",
           {{"device_type_int", integer}, {"virtual_device_id", integer}, {"target"}, {"memory_scope", text}},
           &make_tvm_virtual_device},
          {"Op", {{"repr", repr}}, &find_tvm_op},
          {"GlobalVar", {{"name_hint", text}}, &make_tvm_global_var},
          {"Id", {{"name_hint", text}}, &tvm_name_hint},
          {"Var", {{"vid"}, {"type_annotation"}}, &make_tvm_var},
          {"Constant", {{"data", tensor}}, &make_tvm_constant}};
}

std::vector<TvmKind> tvm_kinds_of_types() {
  using enum TvmForm;
  const std::vector<TvmField> variable{{"var"}, {"kind", integer}, {"name_hint", text}};
  return {{"TypeVar", variable, &make_tvm_type_var},
          {"GlobalTypeVar", variable, &make_tvm_global_type_var},
          {"IncompleteType", {{"kind", integer}}, &make_tvm_incomplete_type},
          {"TensorType", {{"shape"}, {"dtype", dtype}}, &make_tvm_tensor_type},
          {"TupleType", {{"fields"}}, &make_tvm_tuple_type},
          {"FuncType", {{"arg_types"}, {"ret_type"}, {"type_params"}, {"type_constraints"}}, &make_tvm_func_type},
          {"RefType", {{"value"}}, &make_tvm_ref_type},
          {"TypeCall", {{"func"}, {"args"}}, &make_tvm_type_call}};
}

std::vector<TvmKind> tvm_kinds_of_scalars() {
  using enum TvmForm;
  const std::vector<TvmField> operands{{"a"}, {"b"}};
  return {{"IntImm", {{"value", integer}, {"dtype", dtype}}, &make_tvm_int},
          {"FloatImm", {{"value", real}, {"dtype", dtype}}, &make_tvm_float},
          {"tir.StringImm", {{"value", text}}, &tvm_string_imm},
          {"tir.Var", {{"name", text}, {"dtype", dtype}}, &make_tvm_prim_var},
          {"tir.Any", {}, &make_tvm_any},
          {"tir.Cast", {{"value"}, {"dtype", dtype}}, &make_tvm_cast},
          {"tir.Add", operands, &make_tvm_binary<BinaryOp::add>},
          {"tir.Sub", operands, &make_tvm_binary<BinaryOp::sub>},
          {"tir.Mul", operands, &make_tvm_binary<BinaryOp::mul>},
          {"tir.Div", operands, &make_tvm_binary<BinaryOp::div>},
          {"tir.Mod", operands, &make_tvm_binary<BinaryOp::mod>},
          {"tir.FloorDiv", operands, &make_tvm_binary<BinaryOp::floor_div>},
          {"tir.FloorMod", operands, &make_tvm_binary<BinaryOp::floor_mod>},
          {"tir.Min", operands, &make_tvm_binary<BinaryOp::min>},
          {"tir.Max", operands, &make_tvm_binary<BinaryOp::max>}};
}

std::map<std::string_view, TvmKind> all_tvm_kinds() {
  std::map<std::string_view, TvmKind> all;
  for (const auto& kinds : {tvm_kinds_of_values(), tvm_kinds_of_types(), tvm_kinds_of_scalars()}) {
    for (const TvmKind& kind : kinds) all.emplace(kind.key, kind);
  }
  return all;
}

// Returns the name that versions since 0.7 give a kind, without "relay.".
std::string current_tvm_kind(std::string_view type_key) {
  if (type_key.starts_with("relay.")) type_key.remove_prefix(6);
  if (type_key == "Variable" || type_key == "SizeVar" || type_key == "tir.SizeVar") return "tir.Var";
  if (type_key == "RelayRefType") return "RefType";
  for (const std::string_view name :
       {"Any", "StringImm", "Cast", "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"}) {
    if (type_key == name) return fmt::format("tir.{}", name);
  }
  return std::string(type_key);
}

}  // namespace

const TvmKind* find_tvm_kind(std::string_view type_key) {
  static const auto& kinds = *new std::map<std::string_view, TvmKind>(all_tvm_kinds());
  const auto found = kinds.find(current_tvm_kind(type_key));
  return found == kinds.end() ? nullptr : &found->second;
}

}  // namespace headrace::relay
