#include "relay/text/print_value.h"

#include <algorithm>

#include "object/string.h"

namespace headrace::relay {

std::string key_text(const std::string& name) {
  return is_identifier(name) && !reads_as_number(name) ? name : in_quotes(name);
}

std::string var_text(PrintNames& names, const VarNode& var) {
  const std::string& name = names.vars.name_of(&var, var.name_hint, "v");
  return "%" + (is_identifier(name, true) ? name : in_quotes(name));
}

void ValuePrinter::print_constant(std::string& out, const NDArray& data) const {
  const NDArray dense = data.to_dense();
  if (auto text = inline_constant_text(dense)) {
    out += *text;
  } else {
    out += fmt::format("meta[relay.Constant][{}]", constants.index_of(dense));
  }
}

// Prints a dimension as a value. A symbol alone gets its dtype where no type before it names it and it would read as an
// unknown word, and where its name is quoted and would read as a text.
static void print_dim_value(std::string& out, const PrimExpr& dim, PrintNames& names) {
  const auto* symbol = dim.as<PrimVarNode>();
  const bool is_new = symbol != nullptr && !names.symbols.knows(symbol);
  const size_t begin = out.size();
  print_dim(out, dim, names);
  if (symbol != nullptr && symbol->dtype == kIndexType && (is_new || out[begin] == '"'))
    out += fmt::format(":{}", kIndexType);
}

// Values nest as deep as the user wrote them, not as deep as the model; the parser reads 500 levels.
static void print_array(const ValuePrinter& printer, std::string& out, const ArrayObj& array) {
  out += "[";
  for (size_t i = 0; i < array.items.size(); ++i) {
    if (i != 0) out += ", ";
    printer.print(out, array.items[i]);
  }
  out += "]";
}

static void print_map(const ValuePrinter& printer, std::string& out, const MapObj& map) {
  out += "{";
  for (size_t i = 0; i < map.items.size(); ++i) {
    if (i != 0) out += ", ";
    printer.print(out, map.items[i].first);
    out += ": ";
    printer.print(out, map.items[i].second);
  }
  out += "}";
}

static void print_node(const ValuePrinter& printer, std::string& out, const ObjectRef& node) {
  try {
    out += fmt::format("meta[{}][{}]", node->key(), printer.constants.index_of(node));
  } catch (const UserError& error) {
    throw_user_error("an attribute that holds a {} has no text form: {}", node->key(), error.message());
  }
}

static bool is_own_param(const ValuePrinter& printer, const VarNode* var) {
  return var != nullptr && printer.params != nullptr &&
         std::any_of(printer.params->begin(), printer.params->end(), [&](const Var& p) { return p.get() == var; });
}

static void print_object(const ValuePrinter& printer, std::string& out, const Value& value) {
  if (const auto* array = value.as_node<ArrayObj>()) {
    print_array(printer, out, *array);
  } else if (const auto* map = value.as_node<MapObj>()) {
    print_map(printer, out, *map);
  } else if (const auto* var = value.as_node<VarNode>(); is_own_param(printer, var)) {
    out += var_text(printer.names, *var);
  } else if (value.type_index() == type_index::kShape) {
    out += fmt::format("shape({})", fmt::join(value.as<Shape>(), ", "));
  } else if (value.type_index() == type_index::kTensor) {
    out += "tensor(";
    printer.print_constant(out, value.as<NDArray>());
    out += ")";
  } else if (const auto* imm = value.as_node<IntImmNode>(); imm != nullptr && imm->dtype == kIndexType) {
    out += fmt::format("{}i64", imm->value);
  } else if (value.as_node<PrimExprNode>() != nullptr) {
    print_dim_value(out, value.as<PrimExpr>(), printer.names);
  } else {
    print_node(printer, out, value.as<ObjectRef>());
  }
}

void ValuePrinter::print(std::string& out, const Value& value, bool in_dtype_field) const {
  const RawValue& raw = value.raw();
  switch (raw.type_index) {
    case type_index::kNone:
      out += "None";
      return;
    case type_index::kBool:
      out += raw.v.v_int != 0 ? "True" : "False";
      return;
    case type_index::kInt:
      out += fmt::format("{}", raw.v.v_int);
      return;
    case type_index::kFloat:
      out += float_text(raw.v.v_float) + "f";
      return;
    case type_index::kDataType: {
      const std::string name = in_quotes(value.as<DataType>().to_string());
      out += in_dtype_field ? name : "dtype(" + name + ")";
      return;
    }
    case type_index::kDevice:
      out += fmt::format("device({}, {})", raw.v.v_device.type, raw.v.v_device.id);
      return;
    default:
      break;
  }
  if (is_string(raw)) {
    out += in_quotes(string_of(raw));
  } else if (value.is_object()) {
    print_object(*this, out, value);
  } else {
    throw_user_error("an attribute that holds a {} has no text form", kind_name(raw));
  }
}

// Prints shapes as lists of numbers; a reader knows from the field that they are shapes.
static void print_shapes(std::string& out, const ArrayObj& shapes) {
  out += "[";
  for (size_t i = 0; i < shapes.items.size(); ++i)
    out += fmt::format("{}[{}]", i == 0 ? "" : ", ", fmt::join(shapes.items[i].as<Shape>(), ", "));
  out += "]";
}

// Prints a field's value. A list of numbers is enough where the field's kind is known, since reading converts it.
static void print_field(const ValuePrinter& printer, std::string& out, const FieldInfo& field, const Value& value) {
  const bool is_dtype = field.kind.ends_with("dtype");
  const bool holds_dims = field.kind.ends_with("ir.PrimExpr]") || field.kind.ends_with("ir.PrimExpr");
  if (value.type_index() == type_index::kShape) {
    out += fmt::format("[{}]", fmt::join(value.as<Shape>(), ", "));
  } else if (const auto* shapes = value.as_node<ArrayObj>(); shapes != nullptr && field.kind == "Array[shape]") {
    print_shapes(out, *shapes);
  } else if (const auto* array = value.as_node<ArrayObj>(); array != nullptr && holds_dims) {
    out += "[";
    for (size_t i = 0; i < array->items.size(); ++i) {
      if (i != 0) out += ", ";
      print_dim_value(out, array->items[i].as<PrimExpr>(), printer.names);
    }
    out += "]";
  } else if (value.as_node<PrimExprNode>() != nullptr && holds_dims) {
    print_dim_value(out, value.as<PrimExpr>(), printer.names);
  } else {
    printer.print(out, value, is_dtype);
  }
}

void ValuePrinter::print_attrs(std::string& out, const Object& attrs) const {
  for (const FieldInfo& field : attrs.type_info().fields) {
    if (field.options.transient) continue;
    const Value value = field.get(&attrs);
    std::string text;
    print_field(*this, text, field, value);
    if (field.options.has_default) {
      std::string usual;
      print_field(*this, usual, field, field.options.default_value);
      if (usual == text) continue;
    } else if (field.options.optional && value.is_none()) {
      continue;
    }
    out += fmt::format(", {}={}", key_text(field.name), text);
  }
}

void ValuePrinter::print_user_attrs(std::string& out, const AttrSchema& schema, const UserAttrsNode& attrs) const {
  const auto text_of = [&](const Value& value) {
    if (value.type_index() == type_index::kShape) return fmt::format("[{}]", fmt::join(value.as<Shape>(), ", "));
    std::string text;
    print(text, value, true);
    return text;
  };
  for (const AttrSpec& spec : schema) {
    const std::string text = text_of(attrs.values.at(spec.name));
    if (spec.default_value.is_none() || text != text_of(spec.default_value))
      out += fmt::format(", {}={}", key_text(spec.name), text);
  }
}

}  // namespace headrace::relay
