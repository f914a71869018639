// Short texts of scalar expressions, for messages.
#include "base/stack.h"
#include "ir/prim_expr.h"

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

}  // namespace

std::string to_string(const PrimExpr& e) {
  std::string out;
  append(out, e, 0);
  return out;
}

}  // namespace headrace
