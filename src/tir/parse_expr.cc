// Expressions. Nodes are made as they are written: the builders of ir/prim_expr.h fold.
#include <bit>

#include "base/count_of.h"
#include "tir/parser.h"
#include "tir/unfolded.h"

namespace headrace::tir {

static constexpr int kMostExprs = 300;

PrimExpr Parser::expr(int least_precedence) {
  const Level level(*this, expr_depth_, kMostExprs, "expressions");
  PrimExpr left = primary();
  while (peek().kind == TokenKind::sign) {
    const OperatorText* op = operator_of_sign(peek().text);
    if (op == nullptr || op->precedence < least_precedence) break;
    const Token sign = take();
    const PrimExpr right = expr(op->precedence + 1);
    left = binary(sign, *op, left, right);
  }
  return left;
}

// Gives a plain integer the dtype of the other operand.
static PrimExpr fitted(const PrimExpr& e, DataType wanted) {
  const bool is_plain = e.is<IntImmNode>() && e->dtype == kIndexType;
  return is_plain && (wanted.is_int() || wanted.is_uint()) && wanted.is_scalar() ? make_int(*as_int(e), wanted) : e;
}

PrimExpr Parser::binary(const Token& sign, const OperatorText& op, PrimExpr a, PrimExpr b) {
  if (a->dtype != b->dtype) {
    a = fitted(a, b->dtype);
    b = fitted(b, a->dtype);
  }
  if (a->dtype != b->dtype)
    fail(sign, fmt::format("'{}' of {} and {}; cast one, as in int64(n)", sign.text, a->dtype, b->dtype));
  if (is_logical(op.op) && !a->dtype.is_bool())
    fail(sign, fmt::format("'{}' needs conditions, not {}", sign.text, a->dtype));
  if (op.text == "/" && !a->dtype.is_float()) fail(sign, "'/' is the quotient of floats; write floordiv or truncdiv");
  return unfolded_binary(op.op, a, b);
}

PrimExpr Parser::primary() {
  const Token first = peek();
  if (accept("?")) return make_any();
  if (accept("(")) {
    const PrimExpr inner = expr();
    expect(")", "after an expression");
    return inner;
  }
  if (accept("-")) {
    if (peek().kind != TokenKind::integer && peek().kind != TokenKind::real)
      fail(first, "only a number has a sign; write 0 - x");
    return number(true);
  }
  if (first.kind == TokenKind::integer || first.kind == TokenKind::real) return number(false);
  if (first.is("True") || first.is("False")) return take(), make_bool(first.is("True"));
  if (first.kind == TokenKind::word && (peek(1).is("(") || (peek(1).is("[") && intrinsic_of(first.text))))
    return call(take());
  if (first.kind != TokenKind::word && first.kind != TokenKind::local && first.kind != TokenKind::graph)
    fail_expected("an expression");
  return named(take());
}

PrimExpr Parser::named(const Token& token) {
  const std::string name = local_name(token);
  const Meaning meaning = names_.find(name);
  if (meaning.part) return meaning.part;
  if (meaning.var) {
    if (in_params_ && accept(":") && dtype() != meaning.var->dtype)
      report(token, fmt::format("the symbol {} is {} where it was named first", name, meaning.var->dtype));
    return meaning.var;
  }
  if (meaning.buffer) return load(token, meaning.buffer);
  if (token.kind == TokenKind::graph) fail(token, fmt::format("%{} is not defined here", token.text));
  if (in_params_) return symbol(token);
  fail(token, fmt::format("'{}' is neither a variable nor a buffer here", name));
}

PrimExpr Parser::symbol(const Token& token) {
  const std::string name = local_name(token);
  if (token.kind == TokenKind::word && is_reserved_word(name)) fail_expected("a dimension");
  return bind_var(name, accept(":") ? dtype() : kIndexType);
}

// Returns the dtype of an access: the last index gives the number of lanes.
DataType Parser::access_dtype(const Token& name, const Buffer& buffer, const Array<PrimExpr>& indices) {
  if (indices.size() != buffer->shape.size())
    fail(name, fmt::format("'{}' has {} dimensions, but {} indices are given", buffer->name, buffer->shape.size(),
                           indices.size()));
  return buffer->dtype.with_lanes(indices.empty() ? 1 : indices.back()->dtype.lanes());
}

PrimExpr Parser::load(const Token& name, const Buffer& buffer) {
  expect("[", fmt::format("after the buffer '{}'", buffer->name));
  const Array<PrimExpr> indices = expressions("]");
  return make_unfolded<BufferLoadNode>(access_dtype(name, buffer, indices), [&](BufferLoadNode& node) {
    node.buffer = buffer;
    node.indices = indices;
  });
}

PrimExpr Parser::call(const Token& name) {
  if (const auto intrinsic = intrinsic_of(name.text)) return intrinsic_call(name, *intrinsic);
  expect("(", "after a function");
  if (name.is("let")) return let_expr(name);
  if (name.is("const")) return const_expr();
  if (name.is("ramp") || name.is("broadcast")) return vector_expr(name);
  return function_call(name);
}

PrimExpr Parser::function_call(const Token& name) {
  const Array<PrimExpr> args = expressions(")");
  const auto want = [&](size_t count) {
    if (args.size() != count)
      fail(name, fmt::format("'{}' takes {}, not {}", name.text, count_of(count, "argument"), args.size()));
  };
  if (const OperatorText* op = operator_of_function(name.text)) {
    want(2);
    return binary(name, *op, args[0], args[1]);
  }
  if (name.is("logical_not")) {
    want(1);
    if (!args[0]->dtype.is_bool()) fail(name, "logical_not needs a condition");
    return unfolded_not(args[0]);
  }
  if (name.is("select")) {
    want(3);
    if (!args[0]->dtype.is_bool() || args[1]->dtype != args[2]->dtype)
      fail(name, "select needs a condition and two values of one dtype");
    return unfolded_select(args[0], args[1], args[2]);
  }
  const auto to = dtype_of_word(name.text);
  if (!to) fail(name, fmt::format("there is no function '{}'", name.text));
  want(1);
  if (to->lanes() != args[0]->dtype.lanes()) fail(name, fmt::format("a cast of {} to {}", args[0]->dtype, *to));
  return unfolded_cast(*to, args[0]);
}

PrimExpr Parser::intrinsic_call(const Token& name, Intrinsic intrinsic) {
  std::optional<DataType> given;
  if (accept("[")) {
    given = dtype();
    expect("]", "after an intrinsic's dtype");
  }
  expect("(", "after an intrinsic");
  const Array<PrimExpr> args = expressions(")");
  if (!given) given = usual_dtype(intrinsic, args);
  if (!given) fail(name, fmt::format("what dtype does it give? Write {}[float32](...)", name.text));
  return make_unfolded<IntrinsicCallNode>(*given, [&](IntrinsicCallNode& node) {
    node.intrinsic = intrinsic;
    node.args = args;
  });
}

// Parses let(v: int64 = value, body)
PrimExpr Parser::let_expr(const Token& name) {
  const std::string var_name = new_name("a variable after let");
  expect(":", "after the variable of a let");
  const DataType declared = dtype();
  expect("=", "after the dtype of a let");
  const PrimExpr value = expr();
  if (value->dtype != declared) fail(name, fmt::format("'{}' is {}, its value {}", var_name, declared, value->dtype));
  expect(",", "before the body of a let");
  const size_t mark = names_.mark();
  const PrimVar var = bind_var(var_name, declared);
  const PrimExpr body = expr();
  names_.leave(mark);
  expect(")", "after the body of a let");
  return make_unfolded<PrimLetNode>(body->dtype, [&](PrimLetNode& node) {
    node.var = var;
    node.value = value;
    node.body = body;
  });
}

// Parses const(300, int8), const(1f64, float16), const("text", handle)
PrimExpr Parser::const_expr() {
  const bool negative = accept("-");
  const Token token = take();
  expect(",", "after a number");
  const DataType named = dtype();
  expect(")", "after a dtype");
  if (token.kind == TokenKind::string && !negative) {
    return make_unfolded<StringImmNode>(named, [&](StringImmNode& node) { node.value = unquote(token.text); });
  }
  if (token.kind == TokenKind::real) return make_float(real_of(token, negative), named);
  return make_int(integer_of(token, negative, std::nullopt), named);
}

// Parses ramp(base, stride, lanes), broadcast(value, lanes)
PrimExpr Parser::vector_expr(const Token& name) {
  const PrimExpr base = expr();
  expect(",", fmt::format("in {}", name.text));
  PrimExpr stride;
  if (name.is("ramp")) {
    stride = fitted(expr(), base->dtype);
    expect(",", "in ramp");
  }
  const Token token = peek();
  const int64_t lanes = integer("a number of lanes");
  expect(")", fmt::format("after {}", name.text));
  if (lanes < 2 || lanes > 65535) fail(token, fmt::format("a vector has 2 to 65535 lanes, not {}", lanes));
  if (!base->dtype.is_scalar() || base->dtype.is_void()) fail(name, fmt::format("{} of {}", name.text, base->dtype));
  if (stride && stride->dtype != base->dtype)
    fail(name, fmt::format("ramp of {} by steps of {}", base->dtype, stride->dtype));
  const DataType vector = base->dtype.with_lanes(static_cast<int>(lanes));
  if (!stride) return make_unfolded<BroadcastNode>(vector, [&](BroadcastNode& node) { node.value = base; });
  return make_unfolded<RampNode>(vector, [&](RampNode& node) {
    node.base = base;
    node.stride = stride;
  });
}

DataType Parser::dtype() {
  const Token token = peek();
  const auto known =
      token.kind == TokenKind::word || token.kind == TokenKind::string
          ? dtype_of_word(token.kind == TokenKind::string ? unquote(token.text) : std::string(token.text))
          : std::nullopt;
  if (!known) fail_expected("a dtype such as float32 or int64x8");
  take();
  return *known;
}

int64_t Parser::integer(std::string_view what) {
  if (peek().kind != TokenKind::integer || !peek().suffix.empty()) fail_expected(what);
  return integer_of(take(), false, kIndexType);
}

int64_t Parser::integer_of(const Token& token, bool negative, std::optional<DataType> in_range_of) {
  if (token.kind != TokenKind::integer) fail(token, fmt::format("expected a number, found '{}'", token.text));
  const DataType dtype = in_range_of.value_or(kIndexType);
  const auto bits = integer_bits(token.text, negative, dtype);
  if (!bits) fail(token, integer_misfit(token.text, negative, dtype));
  return static_cast<int64_t>(*bits);
}

double Parser::real_of(const Token& token, bool negative) {
  const auto bits = real_bits(token.text, DataType::float_(64));
  if (!bits) fail(token, fmt::format("{} is not a number of 64 bits", token.text));
  return std::bit_cast<double>(*bits | (negative ? uint64_t{1} << 63 : 0));
}

PrimExpr Parser::number(bool negative) {
  const Token token = take();
  const bool is_real = token.kind == TokenKind::real;
  DataType dtype = kIndexType;
  if (is_real || !token.suffix.empty()) {
    const auto named = dtype_of_suffix(token.suffix, is_real);
    if (!named)
      fail(token, fmt::format("'{}' is not a suffix of a number; suffixes are f f16 f64 bf16 i8 i16 i32 i64 u8 ...",
                              token.suffix));
    dtype = *named;
  }
  return is_real ? make_float(real_of(token, negative), dtype) : make_int(integer_of(token, negative, dtype), dtype);
}

}  // namespace headrace::tir
