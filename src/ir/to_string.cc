// Short texts of dimensions and types, for messages and for the text form.
#include <fmt/ranges.h>

#include "base/stack.h"
#include "ir/type.h"

namespace headrace {

namespace {

std::string_view infix_of(BinaryOp op) {
  static constexpr std::string_view kSigns[] = {"+",  "-",  "*", "/",  "%", "//", "%%", "",  "",
                                                "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
  return kSigns[static_cast<size_t>(op)];
}

// Fully parenthesised below the top, so that no reader needs a precedence table. Deeper than any real dimension prints
// "...".
constexpr int kMaxDepth = 200;

void append(std::string& out, const PrimExpr& e, int depth);

void append_list(std::string& out, const Array<PrimExpr>& list, int depth) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i != 0) out += ", ";
    append(out, list[i], depth);
  }
}

void append_binary(std::string& out, const BinaryNode& node, int depth) {
  if (node.op == BinaryOp::min || node.op == BinaryOp::max) {
    out += node.op == BinaryOp::min ? "min(" : "max(";
    append(out, node.a, depth + 1);
    out += ", ";
    append(out, node.b, depth + 1);
    out += ")";
    return;
  }
  if (depth > 0) out += "(";
  append(out, node.a, depth + 1);
  out += fmt::format(" {} ", infix_of(node.op));
  append(out, node.b, depth + 1);
  if (depth > 0) out += ")";
}

void append_call(std::string& out, std::string_view name, const Array<PrimExpr>& args, int depth) {
  out += name;
  out += "(";
  append_list(out, args, depth + 1);
  out += ")";
}

void append(std::string& out, const PrimExpr& e, int depth) {
  if (depth > kMaxDepth || is_stack_low()) {
    out += "...";
  } else if (!e) {
    out += "<null>";
  } else if (const auto* imm = e.as<IntImmNode>()) {
    out += e->dtype.is_bool() ? std::string(imm->value != 0 ? "true" : "false") : fmt::format("{}", imm->value);
  } else if (const auto* real = e.as<FloatImmNode>()) {
    out += fmt::format("{}f", real->value);
  } else if (const auto* text = e.as<StringImmNode>()) {
    out += fmt::format("\"{}\"", text->value);
  } else if (const auto* var = e.as<PrimVarNode>()) {
    out += var->name_hint;
  } else if (e.is<AnyNode>()) {
    out += "?";
  } else if (const auto* binary = e.as<BinaryNode>()) {
    append_binary(out, *binary, depth);
  } else if (const auto* inverse = e.as<NotNode>()) {
    append_call(out, "!", {inverse->a}, depth);
  } else if (const auto* select = e.as<SelectNode>()) {
    append_call(out, "select", {select->condition, select->true_value, select->false_value}, depth);
  } else if (const auto* cast = e.as<CastNode>()) {
    append_call(out, e->dtype.to_string(), {cast->value}, depth);
  } else if (const auto* ramp = e.as<RampNode>()) {
    append_call(out, fmt::format("ramp{}", e->dtype.lanes()), {ramp->base, ramp->stride}, depth);
  } else if (const auto* broadcast = e.as<BroadcastNode>()) {
    append_call(out, fmt::format("x{}", e->dtype.lanes()), {broadcast->value}, depth);
  } else if (const auto* load = e.as<BufferLoadNode>()) {
    out += load->buffer->name + "[";
    append_list(out, load->indices, 0);
    out += "]";
  } else if (const auto* call = e.as<IntrinsicCallNode>()) {
    append_call(out, name_of(call->intrinsic), call->args, depth);
  } else if (const auto* let = e.as<PrimLetNode>()) {
    append_call(out, "let", {let->var, let->value, let->body}, depth);
  } else {
    out += e->key();
  }
}

void append(std::string& out, const Type& type, int depth);

void append_types(std::string& out, const Array<Type>& types, int depth) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (i != 0) out += ", ";
    append(out, types[i], depth);
  }
}

void append_tensor(std::string& out, const TensorTypeNode& tensor) {
  if (tensor.shape.empty()) {
    out += tensor.dtype.to_string();
    return;
  }
  out += "Tensor[(";
  append_list(out, tensor.shape, 0);
  out += fmt::format("), {}]", tensor.dtype);
}

void append(std::string& out, const Type& type, int depth) {
  if (depth > kMaxDepth || is_stack_low()) {
    out += "...";
  } else if (!type) {
    out += "<unknown>";
  } else if (const auto* tensor = type.as<TensorTypeNode>()) {
    append_tensor(out, *tensor);
  } else if (const auto* tuple = type.as<TupleTypeNode>()) {
    out += "(";
    append_types(out, tuple->items, depth + 1);
    out += tuple->items.size() == 1 ? ",)" : ")";
  } else if (const auto* function = type.as<FuncTypeNode>()) {
    out += "fn ";
    for (size_t i = 0; i < function->type_params.size(); ++i)
      out += (i == 0 ? "[" : ", ") + function->type_params[i]->name_hint;
    out += function->type_params.empty() ? "(" : "](";
    append_types(out, function->arg_types, depth + 1);
    out += ") -> ";
    append(out, function->ret_type, depth + 1);
  } else if (const auto* prim = type.as<PrimTypeNode>()) {
    out += prim->dtype.to_string();
  } else if (const auto* var = type.as<TypeVarNode>()) {
    out += var->name_hint;
  } else if (const auto* global = type.as<GlobalTypeVarNode>()) {
    out += global->name_hint;
  } else if (const auto* cell = type.as<RefTypeNode>()) {
    out += "ref(";
    append(out, cell->value, depth + 1);
    out += ")";
  } else if (const auto* call = type.as<TypeCallNode>()) {
    append(out, call->func, depth + 1);
    out += "[";
    append_types(out, call->args, depth + 1);
    out += "]";
  } else if (type.is<IncompleteTypeNode>()) {
    out += "_";
  } else {
    out += type->key();
  }
}

}  // namespace

std::string to_string(const PrimExpr& e) {
  std::string out;
  append(out, e, 0);
  return out;
}

std::string to_string(const Type& type) {
  std::string out;
  append(out, type, 0);
  return out;
}

}  // namespace headrace
