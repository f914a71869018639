#include "ir/text_literal.h"
#include "relay/text/print_type.h"

namespace headrace::relay {

std::string checked_type_name(const std::string& name) {
  if (!can_name_type(name))
    throw_user_error("the name {} of a type or constructor cannot be written as text; rename it", quoted(name));
  return name;
}

namespace {

// What is left to write: a type, a dimension, or plain text. An explicit stack instead of recursion: dimensions grow
// with the shape arithmetic of a model.
struct Piece {
  std::string text;
  Type type;
  PrimExpr dim;
  bool parens = false;
};

class TypePrinter {
 public:
  TypePrinter(std::string& out, PrintNames& names) : out_(out), names_(names) {}

  void run(Piece first) {
    stack_.push_back(std::move(first));
    while (!stack_.empty()) {
      const Piece piece = std::move(stack_.back());
      stack_.pop_back();
      const size_t mark = stack_.size();
      if (piece.type) {
        write_type(piece.type);
      } else if (piece.dim) {
        write_dim(piece.dim, piece.parens);
      } else {
        out_ += piece.text;
      }
      std::reverse(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    }
  }

 private:
  void text(std::string text) { stack_.push_back({.text = std::move(text), .type = {}, .dim = {}}); }
  void type(Type type) {
    HEADRACE_CHECK(type.defined(), "a type has a null part");
    stack_.push_back({.text = {}, .type = std::move(type), .dim = {}});
  }
  void dim(PrimExpr dim, bool parens) {
    HEADRACE_CHECK(dim.defined(), "a dimension is null");
    stack_.push_back({.text = {}, .type = {}, .dim = std::move(dim), .parens = parens});
  }
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
    if (!function.type_constraints.empty()) throw_user_error("type constraints have no text form");
    std::string params;
    print_type_params(params, function.type_params, names_);
    text("fn " + params + "(");
    types(function.arg_types);
    text(") -> ");
    type(function.ret_type);
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
      text(checked_type_name(names_.type_vars.name_of(var, var->name_hint, "T")));
    } else if (const auto* global = e.as<GlobalTypeVarNode>()) {
      text(checked_type_name(global->name_hint));
    } else if (const auto* cell = e.as<RefTypeNode>()) {
      text("ref(");
      type(cell->value);
      text(")");
    } else if (const auto* call = e.as<TypeCallNode>()) {
      type(call->func);
      text("[");
      types(call->args);
      text("]");
    } else if (e.is<IncompleteTypeNode>()) {
      text("_");
    } else {
      throw_user_error("a {} has no text form", e->key());
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
    if (!suffix) throw_user_error("an integer of dtype {} has no text form", imm.dtype);
    if (imm.dtype == kIndexType) return text(fmt::format("{}", imm.value));
    const std::string tail = imm.dtype == DataType::int_(32) ? "i32" : *suffix;
    if (imm.dtype.is_uint()) return text(fmt::format("{}{}", static_cast<uint64_t>(imm.value), tail));
    text(fmt::format("{}{}", imm.value, tail));
  }

  void write_symbol(const PrimVarNode& var) {
    const std::string& name = names_.symbols.name_of(&var, var.name_hint, "n");
    std::string out = is_identifier(name) && !is_reserved_word(name) ? name : quoted(name);
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
      throw_user_error("a dimension cannot hold a {} in the text form", e->key());
    }
  }

  std::string& out_;
  PrintNames& names_;
  std::vector<Piece> stack_;
};

}  // namespace

void print_type(std::string& out, const Type& type, PrintNames& names) {
  HEADRACE_CHECK(type.defined(), "a null type");
  TypePrinter(out, names).run({.text = {}, .type = type, .dim = {}});
}

void print_dim(std::string& out, const PrimExpr& dim, PrintNames& names) {
  HEADRACE_CHECK(dim.defined(), "a null dimension");
  TypePrinter(out, names).run({.text = {}, .type = {}, .dim = dim});
}

void print_type_params(std::string& out, const Array<TypeVar>& params, PrintNames& names) {
  if (params.empty()) return;
  for (size_t i = 0; i < params.size(); ++i) {
    out += i == 0 ? "[" : ", ";
    out += checked_type_name(names.type_vars.name_of(params[i].object(), params[i]->name_hint, "T"));
    if (params[i]->kind != TypeKind::type) out += fmt::format(": {}", name_of(params[i]->kind));
  }
  out += "]";
}

}  // namespace headrace::relay
