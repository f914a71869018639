#include "ir/type_text.h"

#include <algorithm>

#include "ir/text_literal.h"

namespace headrace {

bool is_reserved_word(std::string_view text) {
  static constexpr std::string_view kWords[] = {"_",
                                                "fn",
                                                "def",
                                                "let",
                                                "if",
                                                "else",
                                                "match",
                                                "type",
                                                "ref",
                                                "ref_read",
                                                "meta",
                                                "Tensor",
                                                "prim",
                                                "const",
                                                "True",
                                                "False",
                                                "None",
                                                "min",
                                                "max",
                                                "floordiv",
                                                "select",
                                                "floormod",
                                                "logical_not",
                                                "nan",
                                                "inf",
                                                "bool",
                                                "handle",
                                                "void",
                                                "int1",
                                                "ref_write",
                                                "int4",
                                                "int8",
                                                "int16",
                                                "int32",
                                                "int64",
                                                "uint1",
                                                "uint4",
                                                "uint8",
                                                "uint16",
                                                "uint32",
                                                "uint64",
                                                "float16",
                                                "float32",
                                                "float64",
                                                "bfloat16",
                                                "free_var",
                                                "dtype",
                                                "device",
                                                "extern",
                                                "attributes",
                                                "int2",
                                                "uint2",
                                                "float8_e4m3fn",
                                                "float8_e4m3fnuz",
                                                "float8_e5m2",
                                                "float8_e5m2fnuz",
                                                "float4_e2m1fn"};
  return std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords);
}

bool can_name_type(std::string_view text) { return is_identifier(text) && (!is_reserved_word(text) || text == "None"); }

std::string checked_type_name(const std::string& name) {
  if (!can_name_type(name))
    throw_user_error("the name {} of a type or constructor cannot be written as text; rename it", in_quotes(name));
  return name;
}

namespace {

// More parts than any program's types have. A type whose parts are shared may have 2^100 as text.
constexpr size_t kMaxParts = size_t{1} << 22;

// A piece that is still to be written: a type, a dimension, or plain text. An explicit stack replaces recursion,
// because dimensions grow with the shape arithmetic of a model.
struct Piece {
  enum Kind { words, type, dim } kind;
  std::string text;
  Type the_type;
  PrimExpr the_dim;
  bool parens = false;
};

class TypePrinter {
 public:
  // A text for a message says something of what has no text form, too.
  TypePrinter(std::string& out, TypeNames& names, bool is_message)
      : out_(out), names_(names), is_message_(is_message) {}

  void print(Type first) {
    type(std::move(first));
    run();
  }
  void print(PrimExpr first) {
    dim(std::move(first), false);
    run();
  }

  void write_type_params(std::string& out, const Array<TypeVar>& params) {
    std::string_view before = "[";
    for (const TypeVar& param : params) {
      out += before;
      out += type_name(names_.type_vars.name_of(param.object(), param->name_hint, "T"));
      if (param->kind != TypeKind::type) out += fmt::format(": {}", headrace::name_of(param->kind));
      before = ", ";
    }
    if (!params.empty()) out += "]";
  }

 private:
  void run() {
    for (size_t count = 0; !stack_.empty(); ++count) {
      if (count == kMaxParts) return no_text("...", "a type of more than 2^22 parts has no text form");
      const Piece piece = std::move(stack_.back());
      stack_.pop_back();
      const size_t mark = stack_.size();
      step(piece);
      std::reverse(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    }
  }

  void step(const Piece& piece) {
    switch (piece.kind) {
      case Piece::words:
        out_ += piece.text;
        return;
      case Piece::type:
        return piece.the_type ? write_type(piece.the_type) : no_text("<unknown>", "a part of a type is missing");
      case Piece::dim:
        return piece.the_dim ? write_dim(piece.the_dim, piece.parens) : no_text("<null>", "a dimension is missing");
    }
  }

  // Throws `why`, or writes the words into a message.
  void no_text(std::string_view words, const std::string& why) {
    if (!is_message_) throw UserError(why);
    out_ += words;
  }
  std::string type_name(const std::string& name) const { return is_message_ ? name : checked_type_name(name); }

  void text(std::string text) { stack_.push_back({Piece::words, std::move(text), {}, {}}); }
  void type(Type type) { stack_.push_back({Piece::type, {}, std::move(type), {}}); }
  void dim(PrimExpr dim, bool parens) { stack_.push_back({Piece::dim, {}, {}, std::move(dim), parens}); }
  void types(const Array<Type>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i != 0) text(", ");
      type(list[i]);
    }
  }

  void write_tensor(const TensorTypeNode& tensor) {
    if (tensor.shape.empty()) return text(tensor.dtype.to_string());
    text("Tensor[(");
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      if (i != 0) text(", ");
      dim(tensor.shape[i], false);
    }
    text(fmt::format("), {}]", tensor.dtype));
  }

  void write_function(const FuncTypeNode& function) {
    std::string head = "fn ";
    write_type_params(head, function.type_params);
    text(head + "(");
    types(function.arg_types);
    text(") -> ");
    type(function.ret_type);
    if (function.type_constraints.empty()) return;
    text(" where [");
    types(function.type_constraints);
    text("]");
  }

  void write_relation(const TypeRelationNode& relation) {
    const std::string& name = relation.name;
    if (relation.num_inputs < 0 || relation.args.size() != static_cast<size_t>(relation.num_inputs) + 1)
      return no_text(name + "(...)", fmt::format("a constraint has one result; {} relates {} types and has {} inputs",
                                                 name, relation.args.size(), relation.num_inputs));
    const auto inputs = relation.args.begin() + static_cast<std::ptrdiff_t>(relation.num_inputs);
    // Quotes names that begin like the numbers nan and inf.
    const bool is_plain = is_identifier(name, true) && !name.starts_with("nan") && !name.starts_with("inf");
    text((is_plain ? name : in_quotes(name)) + "(");
    types(Array<Type>(relation.args.begin(), inputs));
    std::string attrs;
    if (names_.print_attrs) {
      names_.print_attrs(attrs, relation);
    } else if (relation.attrs) {
      if (!is_message_) throw_user_error("a constraint with attributes, {}, has no text form here", name);
      attrs = ", ...";
    }
    text(relation.num_inputs == 0 && !attrs.empty() ? attrs.substr(2) : attrs);
    text(") -> ");
    type(*inputs);
  }

  void write_call_of(const TypeCallNode& call) {
    type(call.func);
    text("[");
    types(call.args);
    text("]");
  }

  void write_type(const Type& e) {
    if (const auto* tensor = e.as<TensorTypeNode>()) {
      write_tensor(*tensor);
    } else if (const auto* tuple = e.as<TupleTypeNode>()) {
      text("(");
      types(tuple->items);
      text(tuple->items.size() == 1 ? ",)" : ")");
    } else if (const auto* function = e.as<FuncTypeNode>()) {
      write_function(*function);
    } else if (const auto* prim = e.as<PrimTypeNode>()) {
      text(fmt::format("prim[{}]", prim->dtype));
    } else if (const auto* var = e.as<TypeVarNode>()) {
      text(type_name(names_.type_vars.name_of(var, var->name_hint, "T")));
    } else if (const auto* global = e.as<GlobalTypeVarNode>()) {
      text(type_name(global->name_hint));
    } else if (const auto* cell = e.as<RefTypeNode>()) {
      text("ref(");
      type(cell->value);
      text(")");
    } else if (const auto* call = e.as<TypeCallNode>()) {
      write_call_of(*call);
    } else if (const auto* relation = e.as<TypeRelationNode>()) {
      write_relation(*relation);
    } else if (e.is<IncompleteTypeNode>()) {
      text("_");
    } else {
      no_text(e->key(), fmt::format("a {} has no text form here", e->key()));
    }
  }

  void write_call(std::string name, const std::vector<PrimExpr>& args) {
    text(std::move(name) + "(");
    for (size_t i = 0; i < args.size(); ++i) {
      if (i != 0) text(", ");
      dim(args[i], false);
    }
    text(")");
  }

  void write_binary(const BinaryNode& node, bool parens) {
    static constexpr std::string_view kSigns[] = {"+",  "-",  "*", "/",  "%", "",   "",   "",  "",
                                                  "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
    switch (node.op) {
      case BinaryOp::floor_div:
        return write_call("floordiv", {node.a, node.b});
      case BinaryOp::floor_mod:
        return write_call("floormod", {node.a, node.b});
      case BinaryOp::min:
        return write_call("min", {node.a, node.b});
      case BinaryOp::max:
        return write_call("max", {node.a, node.b});
      default:
        break;
    }
    if (parens) text("(");
    dim(node.a, true);
    text(fmt::format(" {} ", kSigns[static_cast<size_t>(node.op)]));
    dim(node.b, true);
    if (parens) text(")");
  }

  void write_int(const IntImmNode& imm) {
    if (imm.dtype.is_bool()) return text(imm.value != 0 ? "True" : "False");
    const auto suffix = literal_suffix(imm.dtype);
    if (!suffix)
      return no_text(fmt::format("{}", imm.value), fmt::format("an integer of dtype {} has no text form", imm.dtype));
    if (imm.dtype == kIndexType) return text(fmt::format("{}", imm.value));
    const std::string tail = imm.dtype == DataType::int_(32) ? "i32" : *suffix;
    if (imm.dtype.is_uint()) return text(fmt::format("{}{}", static_cast<uint64_t>(imm.value), tail));
    text(fmt::format("{}{}", imm.value, tail));
  }

  void write_symbol(const PrimVarNode& var) {
    const std::string& name = names_.symbols.name_of(&var, var.name_hint, "n");
    std::string out = is_identifier(name) && !is_reserved_word(name) ? name : in_quotes(name);
    if (var.dtype != kIndexType) out += fmt::format(":{}", var.dtype);
    text(std::move(out));
  }

  void write_dim(const PrimExpr& e, bool parens) {
    if (const auto* imm = e.as<IntImmNode>()) {
      write_int(*imm);
    } else if (const auto* var = e.as<PrimVarNode>()) {
      write_symbol(*var);
    } else if (e.is<AnyNode>()) {
      text("?");
    } else if (const auto* binary = e.as<BinaryNode>()) {
      write_binary(*binary, parens);
    } else if (const auto* inverse = e.as<NotNode>()) {
      write_call("logical_not", {inverse->a});
    } else if (const auto* select = e.as<SelectNode>()) {
      write_call("select", {select->condition, select->true_value, select->false_value});
    } else if (const auto* cast = e.as<CastNode>(); cast != nullptr && cast->dtype.is_scalar()) {
      write_call(cast->dtype.to_string(), {cast->value});
    } else {
      no_text(to_string(e), fmt::format("a dimension cannot hold a {} in the text form", e->key()));
    }
  }

  std::string& out_;
  TypeNames& names_;
  bool is_message_;
  std::vector<Piece> stack_;
};

}  // namespace

void print_type(std::string& out, const Type& type, TypeNames& names) { TypePrinter(out, names, false).print(type); }

void print_dim(std::string& out, const PrimExpr& dim, TypeNames& names) { TypePrinter(out, names, false).print(dim); }

void print_type_params(std::string& out, const Array<TypeVar>& params, TypeNames& names) {
  TypePrinter(out, names, false).write_type_params(out, params);
}

std::string to_string(const Type& type) {
  std::string out;
  TypeNames names;
  TypePrinter(out, names, true).print(type);
  return out;
}

}  // namespace headrace
