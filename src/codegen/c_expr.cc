// PrimExpr to C.
#include <cmath>

#include "base/stack.h"
#include "codegen/c_kernel.h"
#include "ir/intrinsics.h"

namespace headrace::codegen {

namespace {

std::string_view sign_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::sub:
      return "-";
    case BinaryOp::mul:
      return "*";
    case BinaryOp::eq:
      return "==";
    case BinaryOp::ne:
      return "!=";
    case BinaryOp::lt:
      return "<";
    case BinaryOp::le:
      return "<=";
    case BinaryOp::gt:
      return ">";
    case BinaryOp::ge:
      return ">=";
    default:
      return "/";
  }
}

CCode c_cast(std::string_view type, const CCode& value) {
  return {fmt::format("({}){}", type, at_least(value, CLevel::unary)), CLevel::unary};
}

// Joins a and b by a sign, left-associative.
CCode joined(const CCode& a, std::string_view sign, const CCode& b, CLevel level) {
  const CLevel next = level == CLevel::sum ? CLevel::product : CLevel::unary;
  return {fmt::format("{} {} {}", at_least(a, level), sign, at_least(b, next)), level, a.has_width || b.has_width};
}

CLevel level_of(BinaryOp op) { return op == BinaryOp::add || op == BinaryOp::sub ? CLevel::sum : CLevel::product; }

CCode c_call(const std::string& name, const CCode& a, const CCode& b) {
  return {fmt::format("{}({}, {})", name, a.text, b.text)};
}

}  // namespace

std::string at_least(const CCode& code, CLevel level) {
  return code.level >= level ? code.text : fmt::format("({})", code.text);
}

CCode as_unsigned(const CCode& code, DataType dtype) {
  if (!code.unsigned_text.empty()) return {code.unsigned_text, code.unsigned_level};
  return dtype.is_uint() && code.has_width ? code : c_cast(c_type(DataType::uint(dtype.bits())), code);
}

CCode from_unsigned(const CCode& code, DataType dtype) {
  if (dtype.is_uint()) return code;
  CCode result = c_cast(c_type(dtype), code);
  result.unsigned_text = code.text;
  result.unsigned_level = code.level;
  return result;
}

CCode CKernel::emit(const PrimExpr& e) {
  if (const auto known = memo_.find(e.get()); known != memo_.end()) return known->second;
  if (is_stack_low())
    throw_user_error("the kernel '{}' has an expression of too many operations within each other; compute it in stages",
                     symbol_);
  CCode code = emit_inner(e);
  if (named_.contains(e.get())) memo_[e.get()] = code = named(code, e->dtype, "t");
  return code;
}

CCode CKernel::named(const CCode& value, DataType dtype, std::string_view hint) {
  const std::string name = frame_->names.add(hint);
  line(fmt::format("const {} {} = {};", c_type(dtype), name, value.text));
  return {name};
}

CCode CKernel::emit_inner(const PrimExpr& e) {
  HEADRACE_CHECK(e->dtype.lanes() <= 1, "the vector '{}' is written as one number", to_string(e));
  if (const auto narrow = computed_narrow_dtype(e)) fail_to_compute_in_c(*narrow);
  if (const auto* imm = e.as<IntImmNode>()) {
    if (e->dtype.is_narrow_float()) return cast({c_integer(imm->value, kIndexType)}, kIndexType, e->dtype);
    const std::string text = c_integer(imm->value, e->dtype);
    return {text, text[0] == '-' ? CLevel::unary : CLevel::primary, false};
  }
  if (const auto* real = e.as<FloatImmNode>()) return emit_real(*real);
  if (e.is<PrimVarNode>()) {
    c_type(e->dtype);
    return {use(e.get(), to_string(e))};
  }
  if (const auto* binary = e.as<BinaryNode>()) return emit_binary(*binary);
  if (const auto* inverse = e.as<NotNode>()) return {"!" + at_least(emit(inverse->a), CLevel::primary), CLevel::unary};
  if (const auto* select = e.as<SelectNode>()) {
    const CCode condition = emit(select->condition), a = emit(select->true_value), b = emit(select->false_value);
    return {fmt::format("{} ? {} : {}", at_least(condition, CLevel::logical_or), at_least(a, CLevel::logical_or),
                        at_least(b, CLevel::logical_or)),
            CLevel::ternary, a.has_width || b.has_width};
  }
  if (const auto* node = e.as<CastNode>()) return cast(emit(node->value), node->value->dtype, e->dtype);
  if (const auto* load = e.as<BufferLoadNode>())
    return from_memory(element_of(load->buffer, load->indices), load->buffer->dtype);
  if (const auto* intrinsic = e.as<IntrinsicCallNode>()) return emit_intrinsic(*intrinsic);
  if (const auto* let = e.as<PrimLetNode>()) {
    write_let(let->var, let->value);
    CCode value;
    declared(let->var.get(), [&] { value = emit(let->body); });
    return value;
  }
  throw InternalError(fmt::format("C cannot be made of the expression '{}' ({})", to_string(e), e->key()));
}

CCode CKernel::emit_real(const FloatImmNode& e) {
  if (e.dtype.is_narrow_float() && std::isnan(e.value)) return cast({"NAN"}, DataType::float_(32), e.dtype);
  if (!e.dtype.is_float()) return cast({c_real(e.value, DataType::float_(64))}, DataType::float_(64), e.dtype);
  const std::string type = c_type(e.dtype);
  if (std::isnan(e.value)) return e.dtype.bits() == 64 ? c_cast(type, {"NAN"}) : CCode{"NAN"};
  const std::string text = c_real(e.value, e.dtype);
  return {text, text[0] == '-' ? CLevel::unary : CLevel::primary};
}

CCode CKernel::emit_binary(const BinaryNode& e) {
  const DataType dtype = e.a->dtype;
  if (is_comparison(e.op)) return emit_comparison(e);
  if (dtype.is_bool()) return emit_conditions(e);
  if (dtype.is_float()) return emit_float(e);
  switch (e.op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
      return emit_sum(e);
    case BinaryOp::min:
    case BinaryOp::max: {
      const CCode a = emit(e.a), b = emit(e.b);
      return c_call(helpers_.use(name_of(e.op), dtype), a, b);
    }
    default:
      return emit_division(e);
  }
}

CCode CKernel::emit_comparison(const BinaryNode& e) {
  const CCode a = emit(e.a), b = emit(e.b);
  const bool is_equality = e.op == BinaryOp::eq || e.op == BinaryOp::ne;
  // Compilers warn when an integer is compared with itself, but not when a difference is compared with 0.
  if (a.text == b.text && !e.a->dtype.is_float()) {
    const bool holds = e.op == BinaryOp::eq || e.op == BinaryOp::le || e.op == BinaryOp::ge;
    return {fmt::format("{} - {} {} 0", at_least(a, CLevel::unary), at_least(a, CLevel::unary), holds ? "==" : "!="),
            CLevel::equality};
  }
  if (e.a->dtype.is_bool() && !is_equality) return emit_bool_order(e.op, a, b);
  return {fmt::format("{} {} {}", at_least(a, CLevel::sum), sign_of(e.op), at_least(b, CLevel::sum)),
          is_equality ? CLevel::equality : CLevel::relation};
}

// Compilers warn of an order between truth values where they know one.
CCode CKernel::emit_bool_order(BinaryOp op, CCode a, CCode b) {
  const bool negates_a = op == BinaryOp::lt || op == BinaryOp::le;
  const bool is_strict = op == BinaryOp::lt || op == BinaryOp::gt;
  CCode& negated = negates_a ? a : b;
  negated = {"!" + at_least(negated, CLevel::unary), CLevel::unary};
  return {fmt::format("{} {} {}", at_least(a, CLevel::bitwise), is_strict ? "&&" : "||", at_least(b, CLevel::bitwise)),
          is_strict ? CLevel::logical_and : CLevel::logical_or};
}

// Sums, differences and products of integers, which wrap.
CCode CKernel::emit_sum(const BinaryNode& e) {
  CCode a = emit(e.a);
  const CCode b = emit(e.b);
  const DataType dtype = e.dtype;
  const CLevel level = level_of(e.op);
  if (dtype.bits() < 32) {
    // Computed as int, where only a product of two numbers of 16 bits without a sign has no room.
    if (e.op == BinaryOp::mul && dtype.is_uint() && dtype.bits() == 16) a = c_cast("uint32_t", a);
    return c_cast(c_type(dtype), joined(a, sign_of(e.op), b, level));
  }
  if (dtype.is_int()) {
    const arith::Bounds bounds = arith::bounds_of(ref(&e), known_);
    if (bounds.least == INT64_MIN || bounds.greatest == INT64_MAX)
      return from_unsigned(joined(as_unsigned(a, dtype), sign_of(e.op), as_unsigned(b, dtype), level), dtype);
  }
  if (dtype.bits() == 64 && !a.has_width && !b.has_width) a = c_cast(c_type(dtype), a);
  return joined(a, sign_of(e.op), b, level);
}

// Emits a division. A known positive divisor needs no care, except for floor division of negative numbers.
CCode CKernel::emit_division(const BinaryNode& e) {
  const DataType dtype = e.dtype;
  const bool is_floor = e.op == BinaryOp::floor_div || e.op == BinaryOp::floor_mod;
  const bool is_quotient = e.op == BinaryOp::div || e.op == BinaryOp::floor_div;
  const CCode a = emit(e.a), b = emit(e.b);
  const auto divisor = as_int(e.b);
  const bool is_plain = !is_floor || dtype.is_uint() || arith::bounds_of(e.a, known_).least >= 0;
  if (divisor && *divisor > 0 && is_plain) return joined(a, is_quotient ? "/" : "%", b, CLevel::product);
  const std::string_view family =
      is_floor && dtype.is_int() ? (is_quotient ? "floor_div" : "floor_mod") : (is_quotient ? "div" : "mod");
  return c_call(helpers_.use(family, dtype), a, b);
}

// Operations on bools, which are numbers of one bit.
CCode CKernel::emit_conditions(const BinaryNode& e) {
  const CCode a = emit(e.a), b = emit(e.b);
  const auto with = [&](std::string_view sign, CLevel level, CLevel left, CLevel right) {
    return CCode{fmt::format("{} {} {}", at_least(a, left), sign, at_least(b, right)), level};
  };
  switch (e.op) {
    case BinaryOp::add:
    case BinaryOp::sub:
      return with("!=", CLevel::equality, CLevel::sum, CLevel::sum);
    case BinaryOp::max:
    case BinaryOp::logical_or: {
      const CLevel left = a.level == CLevel::logical_or ? CLevel::logical_or : CLevel::bitwise;
      return with("||", CLevel::logical_or, left, CLevel::bitwise);
    }
    case BinaryOp::mod:
    case BinaryOp::floor_mod:
      // A remainder of bools is always false; the text still uses the operands, so that compilers do not report
      // unused variables.
      return {with("&&", CLevel::logical_and, CLevel::logical_and, CLevel::bitwise).text + " && false",
              CLevel::logical_and};
    default:  // a product, the lower one, the quotient, both
      return with("&&", CLevel::logical_and, CLevel::logical_and, CLevel::bitwise);
  }
}

CCode CKernel::emit_float(const BinaryNode& e) {
  const CCode a = emit(e.a), b = emit(e.b);
  const DataType dtype = e.dtype;
  const std::string suffix = c_suffix(dtype);
  switch (e.op) {
    case BinaryOp::min:
    case BinaryOp::max:
      return c_call(helpers_.use(name_of(e.op), dtype), a, b);
    case BinaryOp::floor_div:
      return {fmt::format("floor{}({})", suffix, rounded(joined(a, "/", b, CLevel::product), dtype).text)};
    case BinaryOp::mod:
      return c_call("fmod" + suffix, a, b);
    case BinaryOp::floor_mod:
      return rounded(c_call(helpers_.use("floor_mod", dtype), a, b), dtype);
    default:
      return rounded(joined(a, sign_of(e.op), b, level_of(e.op)), dtype);
  }
}

CCode CKernel::rounded(const CCode& value, DataType dtype) {
  if (!is_c_half(dtype)) return value;
  return {fmt::format("{}({})", helpers_.use("round", dtype), value.text)};
}

CCode CKernel::cast(const CCode& value, DataType from, DataType to) {
  if (from.element() == to.element()) return value;
  const auto called = [](const std::string& function, const CCode& x) {
    return CCode{fmt::format("{}({})", function, x.text)};
  };
  if (from.is_narrow_float()) return cast(called(helpers_.use_narrow_value(from), value), DataType::float_(32), to);
  if (to.is_narrow_float()) {
    const bool is_short = from.is_bool() || from.bits() < 32 || from == DataType::float_(32);
    const CCode wide = from.bits() == 64 && !from.is_float() ? called(helpers_.use("fold", from), value)
                       : is_short || from.is_float()         ? value
                                                             : c_cast("double", value);
    const CCode real =
        is_short ? cast(value, from, DataType::float_(32)) : called(helpers_.use("odd", DataType::float_(64)), wide);
    return called(helpers_.use_narrow_code(to), real);
  }
  if (to.is_narrow_int() && !from.is_float()) return called(helpers_.use_cut(to), c_cast("uint32_t", value));
  if (to.is_bool()) return {fmt::format("{} != 0", at_least(value, CLevel::sum)), CLevel::equality};
  const std::string type = c_type(to);
  const auto odd = [&](const CCode& wide) {
    return rounded({fmt::format("{}({})", helpers_.use("odd", DataType::float_(64)), wide.text)}, to);
  };
  if (from.is_float() && to.is_float()) {
    if (is_c_half(to)) return from.bits() == 64 ? odd(value) : rounded(value, to);
    return from.bits() == 64 || to.bits() == 64 ? c_cast(type, value) : value;
  }
  if (from.is_float()) return {fmt::format("{}({})", helpers_.use_saturating(from, to), value.text)};
  // By way of double, so that numbers of more than 24 bits are rounded once.
  if (is_c_half(to) && from.bits() == 64) return odd({fmt::format("{}({})", helpers_.use("fold", from), value.text)});
  if (is_c_half(to) && from.bits() > 16) return odd(c_cast("double", value));
  return rounded(c_cast(type, value), to);
}

}  // namespace headrace::codegen
