#include "tir/print_expr.h"

#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/stack.h"
#include "ir/text_literal.h"
#include "tir/post_order.h"
#include "tir/text_words.h"

namespace headrace::tir {

namespace {

// A shared part of more nodes than this is written once.
constexpr int64_t kMostRepeated = 8;
// A part of this height has a line of its own.
constexpr int kMostHeight = 40;
// Where a let stands inside an expression, what depends on it is written out as a tree: this deep, this long at most.
constexpr int kMostDepth = 200;
constexpr size_t kMostCharacters = size_t{1} << 20;

bool is_leaf(const PrimExpr& e) {
  return e.is<IntImmNode>() || e.is<FloatImmNode>() || e.is<StringImmNode>() || e.is<PrimVarNode>() || e.is<AnyNode>();
}

std::string dtype_text(DataType dtype) {
  const std::string text = dtype.to_string();
  if (dtype_of_word(text) != dtype) throw_user_error("the dtype {} has no text form", text);
  return text;
}

bool fits(int64_t value, DataType dtype) {
  const int bits = std::max(dtype.bits(), 8);
  if (bits >= 64) return true;
  if (dtype.is_uint()) return value >= 0 && value >> bits == 0;
  return value >= -(int64_t{1} << (bits - 1)) && value < int64_t{1} << (bits - 1);
}

std::string text_of(const IntImmNode& e) {
  if (e.dtype == DataType::bool_() && (e.value == 0 || e.value == 1)) return e.value != 0 ? "True" : "False";
  if (e.dtype == kIndexType) return fmt::format("{}", e.value);
  const bool is_integer = (e.dtype.is_int() || e.dtype.is_uint()) && e.dtype.is_scalar();
  const std::string suffix = fmt::format("{}{}", e.dtype.is_int() ? 'i' : 'u', e.dtype.bits());
  if (!is_integer || dtype_of_suffix(suffix, false) != e.dtype || !fits(e.value, e.dtype))
    return fmt::format("const({}, {})", e.value, dtype_text(e.dtype));
  return e.dtype == DataType::uint(64) ? fmt::format("{}u64", static_cast<uint64_t>(e.value))
                                       : fmt::format("{}{}", e.value, suffix);
}

std::string text_of(const FloatImmNode& e) {
  std::string number = fmt::format("{}", e.value);
  if (std::isnan(e.value)) {
    const auto bits = std::bit_cast<uint64_t>(e.value) & ~(uint64_t{1} << 63);
    number = std::signbit(e.value) ? "-nan" : "nan";
    if (bits != 0x7ff8000000000000u) number += fmt::format("(0x{:x})", bits);
  }
  const auto suffix = e.dtype.is_float() ? literal_suffix(e.dtype) : std::nullopt;
  if (suffix && dtype_of_suffix(*suffix, true) == e.dtype) return number + *suffix;
  return fmt::format("const({}f64, {})", number, dtype_text(e.dtype));
}

// Facts about a part of a statement's expressions.
struct Part {
  int64_t uses = 0;
  int64_t size = 1;  // nodes; a part with a line of its own counts as one
  int height = 0;
  bool in_let = false;  // depends on a variable that a let inside the expression binds
  bool is_named = false;
};

}  // namespace

std::string ExprPrinter::written(const std::string& name) {
  if (is_identifier(name, true) && !is_reserved_word(name)) return name;
  return is_identifier(name) ? "%" + name : "%" + in_quotes(name);
}

std::vector<PrimExpr> ExprPrinter::parts_of(const std::vector<PrimExpr>& roots) {
  const std::vector<PrimExpr> order = post_order(roots);
  std::unordered_map<const PrimExprNode*, Part> parts;
  std::unordered_set<const PrimExprNode*> let_bound;
  for (const PrimExpr& root : roots) {
    if (root) ++parts[root.get()].uses;
  }
  for (const PrimExpr& e : order) {
    if (const auto* let = e.as<PrimLetNode>()) let_bound.insert(let->var.get());
    for (const PrimExpr& operand : operands_of(e)) {
      if (operand) ++parts[operand.get()].uses;
    }
  }
  std::vector<PrimExpr> named;
  for (const PrimExpr& e : order) {
    Part& part = parts[e.get()];
    part.in_let = let_bound.contains(e.get());
    for (const PrimExpr& operand : operands_of(e)) {
      if (!operand) continue;
      const Part& inner = parts[operand.get()];
      part.size = std::min(part.size + (inner.is_named ? 1 : inner.size), int64_t{1} << 40);
      part.height = std::max(part.height, inner.is_named ? 1 : inner.height + 1);
      part.in_let = part.in_let || inner.in_let;
    }
    part.is_named =
        !is_leaf(e) && !part.in_let && ((part.uses > 1 && part.size > kMostRepeated) || part.height >= kMostHeight);
    if (part.is_named) named.push_back(e);
  }
  return named;
}

std::vector<std::string> ExprPrinter::define_parts(const std::vector<PrimExpr>& roots) {
  std::vector<std::string> lines;
  for (const PrimExpr& e : parts_of(roots)) {
    std::string line = fmt::format("%{} = ", next_part_);
    write_node(line, e, 0);
    lines.push_back(line + ";");
    parts_[e.get()] = fmt::format("%{}", next_part_++);
  }
  return lines;
}

std::string ExprPrinter::text(const PrimExpr& e) const {
  std::string out;
  write(out, e, 0);
  return out;
}

std::string ExprPrinter::indexed(const Buffer& buffer, const Array<PrimExpr>& indices) const {
  std::string out = buffer ? name(*buffer) : "<null>";
  write_list(out, "[", {indices.begin(), indices.end()}, "]", 0);
  return out;
}

std::string ExprPrinter::declaration(const Buffer& buffer) {
  if (!buffer) return "<null>";
  in_declaration_ = true;
  std::string out = name(*buffer) + ": Buffer[";
  write_list(out, "(", {buffer->shape.begin(), buffer->shape.end()}, "), ", 0);
  out += dtype_text(buffer->dtype);
  if (!buffer->strides.empty())
    write_list(out, ", strides=(", {buffer->strides.begin(), buffer->strides.end()}, ")", 0);
  in_declaration_ = false;
  return out + "]";
}

void ExprPrinter::write(std::string& out, const PrimExpr& e, int depth) const {
  if (!e) {
    out += "<null>";
  } else if (auto it = parts_.find(e.get()); it != parts_.end()) {
    out += it->second;
  } else if (most_depth_ > 0 && depth > most_depth_) {
    out += "...";
  } else if (depth > kMostDepth || out.size() > kMostCharacters || is_stack_low()) {
    throw_user_error("an expression nests or repeats its parts too much to be written as text");
  } else {
    write_node(out, e, depth);
  }
}

void ExprPrinter::write_node(std::string& out, const PrimExpr& e, int depth) const {
  if (const auto* imm = e.as<IntImmNode>()) {
    out += text_of(*imm);
  } else if (const auto* real = e.as<FloatImmNode>()) {
    out += text_of(*real);
  } else if (const auto* words = e.as<StringImmNode>()) {
    out += fmt::format("const({}, {})", in_quotes(words->value), dtype_text(e->dtype));
  } else if (const auto* var = e.as<PrimVarNode>()) {
    out += name(*var);
    if (in_declaration_ && var->dtype != kIndexType) out += fmt::format(":{}", dtype_text(var->dtype));
  } else if (e.is<AnyNode>()) {
    out += "?";
  } else if (const auto* binary = e.as<BinaryNode>()) {
    write_binary(out, *binary, depth);
  } else if (e.is<NotNode>() || e.is<SelectNode>() || e.is<CastNode>()) {
    out += e.is<NotNode>() ? "logical_not" : e.is<SelectNode>() ? "select" : dtype_text(e->dtype);
    write_list(out, "(", operands_of(e), ")", depth);
  } else if (e.is<RampNode>() || e.is<BroadcastNode>()) {
    out += e.is<RampNode>() ? "ramp" : "broadcast";
    write_list(out, "(", operands_of(e), fmt::format(", {})", e->dtype.lanes()), depth);
  } else if (const auto* load = e.as<BufferLoadNode>()) {
    out += load->buffer ? name(*load->buffer) : "<null>";
    write_list(out, "[", operands_of(e), "]", depth);
  } else if (const auto* call = e.as<IntrinsicCallNode>()) {
    write_intrinsic(out, *call, depth);
  } else if (const auto* let = e.as<PrimLetNode>()) {
    out += fmt::format("let({}: {} = ", name(*let->var), dtype_text(let->var->dtype));
    write(out, let->value, depth + 1);
    out += ", ";
    write(out, let->body, depth + 1);
    out += ")";
  } else {
    throw_user_error("a {} has no text form", e->key());
  }
}

void ExprPrinter::write_list(std::string& out, std::string_view open, const std::vector<PrimExpr>& items,
                             std::string_view close, int depth) const {
  out += open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    write(out, items[i], depth + 1);
  }
  out += close;
}

void ExprPrinter::write_binary(std::string& out, const BinaryNode& e, int depth) const {
  const OperatorText& text = tir::text_of(e.op, e.a ? e.a->dtype : e.dtype);
  if (text.precedence == 0) {
    out += text.text;
    return write_list(out, "(", {e.a, e.b}, ")", depth);
  }
  write_operand(out, e.a, text.precedence + (text.is_left_associative() ? 0 : 1), depth);
  out += fmt::format(" {} ", text.text);
  write_operand(out, e.b, text.precedence + 1, depth);
}

// Writes an operand, in parentheses where it binds less tightly than its context needs.
void ExprPrinter::write_operand(std::string& out, const PrimExpr& e, int least_precedence, int depth) const {
  const auto* binary = e.as<BinaryNode>();
  const int precedence = binary == nullptr || parts_.contains(binary) || !binary->a
                             ? 0
                             : tir::text_of(binary->op, binary->a->dtype).precedence;
  const bool parens = precedence != 0 && precedence < least_precedence;
  if (parens) out += "(";
  write(out, e, depth + 1);
  if (parens) out += ")";
}

void ExprPrinter::write_intrinsic(std::string& out, const IntrinsicCallNode& e, int depth) const {
  out += name_of(e.intrinsic);
  const bool is_complete = std::all_of(e.args.begin(), e.args.end(), [](const PrimExpr& arg) { return arg.defined(); });
  if (!is_complete || usual_dtype(e.intrinsic, e.args) != e.dtype) out += fmt::format("[{}]", dtype_text(e.dtype));
  write_list(out, "(", {e.args.begin(), e.args.end()}, ")", depth);
}

}  // namespace headrace::tir
