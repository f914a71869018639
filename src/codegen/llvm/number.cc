// Types, casts, rounding and integer division of kernels.
#include "codegen/llvm/kernel_builder.h"
#include "tensor/narrow_float.h"

namespace headrace::codegen::llvm_plugin {

namespace {

constexpr uint32_t kFloatInfinity = 0x7f800000;
constexpr uint32_t kRebias = 0u - (112u << 23);  // 15 - 127 in the exponent's place
constexpr uint32_t kFloatMagnitude = 0x7fffffff;

bool is_half(DataType dtype) { return dtype.is_float() && !dtype.is_bfloat16() && dtype.bits() == 16; }
bool is_signed_int(DataType dtype) { return dtype.is_int(); }
bool is_any_int(DataType dtype) { return dtype.is_int() || dtype.is_uint(); }

}  // namespace

void fail_to_compute(DataType dtype) {
  throw_user_error("native code does not compute with {}; cast to a type of whole bytes first", dtype);
}

llvm::Type* KernelBuilder::vector_of(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Type* KernelBuilder::register_type(DataType dtype) {
  llvm::Type* element = nullptr;
  if (dtype.is_bool()) {
    element = ir_.getInt1Ty();
  } else if (dtype.is_float()) {
    element = dtype.bits() == 64 ? ir_.getDoubleTy() : ir_.getFloatTy();
  } else if (dtype.is_handle()) {
    element = ir_.getPtrTy();
  } else if (dtype.is_narrow()) {
    element = ir_.getInt8Ty();  // an integer is extended; a narrow float is its code
  } else if (is_any_int(dtype) && dtype.bits() % 8 == 0) {
    element = ir_.getIntNTy(static_cast<unsigned>(dtype.bits()));
  } else {
    fail_to_compute(dtype);
  }
  return vector_of(element, dtype.lanes());
}

llvm::Type* KernelBuilder::memory_type(DataType dtype) {
  if (dtype.is_bool()) return vector_of(ir_.getInt8Ty(), dtype.lanes());
  if (dtype.is_float() && dtype.bits() == 16) return vector_of(ir_.getInt16Ty(), dtype.lanes());
  return register_type(dtype);
}

llvm::Value* KernelBuilder::splat(llvm::Value* scalar, llvm::Type* type) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type); vector && !scalar->getType()->isVectorTy()) {
    return ir_.CreateVectorSplat(vector->getNumElements(), scalar);
  }
  return scalar;
}

// The constant of `bits` in the integer type with the lanes of `type`.
llvm::Constant* KernelBuilder::same_bits(llvm::Type* type, uint64_t bits) { return llvm::ConstantInt::get(type, bits); }

namespace {
// Returns iN with the lanes of `type`.
llvm::Type* integers_like(llvm::Type* type, unsigned bits) {
  llvm::Type* element = llvm::IntegerType::get(type->getContext(), bits);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector == nullptr ? element : llvm::FixedVectorType::get(element, vector->getNumElements());
}
llvm::Type* floats_like(llvm::Type* type, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector == nullptr ? element : llvm::FixedVectorType::get(element, vector->getNumElements());
}
}  // namespace

// Converts float to the i16 bits of float16, to nearest even.
llvm::Value* KernelBuilder::half_bits(llvm::Value* value) {
  llvm::Type* bits16 = integers_like(value->getType(), 16);
  if (target_.has("f16c") || !target_.triple.starts_with("x86")) {
    return ir_.CreateBitCast(ir_.CreateFPTrunc(value, floats_like(value->getType(), ir_.getHalfTy())), bits16);
  }
  // Without instructions for it LLVM calls a function of the compiler's library. On the bits instead: the exponent is
  // rebiased by 15 - 127, 13 bits are rounded off; the subnormal ones are aligned by adding 0.5.
  llvm::Type* bits32 = integers_like(value->getType(), 32);
  auto constant = [&](uint64_t bits) { return same_bits(bits32, bits); };
  llvm::Value* bits = ir_.CreateBitCast(value, bits32);
  llvm::Value* sign = ir_.CreateAnd(ir_.CreateLShr(bits, 16), constant(0x8000));
  llvm::Value* magnitude = ir_.CreateAnd(bits, constant(kFloatMagnitude));
  llvm::Value* odd = ir_.CreateAnd(ir_.CreateLShr(magnitude, 13), constant(1));
  llvm::Value* rounded = ir_.CreateAdd(magnitude, constant(kRebias + 0xfff));
  llvm::Value* normal = ir_.CreateLShr(ir_.CreateAdd(rounded, odd), 13);
  llvm::Value* shifted =
      ir_.CreateFAdd(ir_.CreateBitCast(magnitude, value->getType()), llvm::ConstantFP::get(value->getType(), 0.5));
  llvm::Value* subnormal = ir_.CreateSub(ir_.CreateBitCast(shifted, bits32), constant(126u << 23));
  llvm::Value* is_nan = ir_.CreateICmpUGT(magnitude, constant(kFloatInfinity));
  llvm::Value* special = ir_.CreateSelect(is_nan, constant(0x7e00), constant(0x7c00));
  llvm::Value* small = ir_.CreateICmpULT(magnitude, constant(113u << 23));
  llvm::Value* large = ir_.CreateICmpUGE(magnitude, constant(143u << 23));
  llvm::Value* result = ir_.CreateSelect(large, special, ir_.CreateSelect(small, subnormal, normal));
  return ir_.CreateTrunc(ir_.CreateOr(result, sign), bits16);
}

llvm::Value* KernelBuilder::half_value(llvm::Value* bits) {
  llvm::Type* floats = floats_like(bits->getType(), ir_.getFloatTy());
  if (target_.has("f16c") || !target_.triple.starts_with("x86")) {
    llvm::Value* value =
        ir_.CreateFPExt(ir_.CreateBitCast(bits, floats_like(bits->getType(), ir_.getHalfTy())), floats);
    // Otherwise LLVM compares the halves themselves, lane by lane where the processor has no instructions for it.
    return target_.has("f16c") && !target_.has("avx512fp16") ? ir_.CreateArithmeticFence(value, floats) : value;
  }
  llvm::Type* bits32 = integers_like(bits->getType(), 32);
  llvm::Value* wide = ir_.CreateZExt(bits, bits32);
  llvm::Value* magnitude = ir_.CreateShl(ir_.CreateAnd(wide, same_bits(bits32, 0x7fff)), 13);
  llvm::Value* scaled = ir_.CreateFMul(ir_.CreateBitCast(magnitude, floats), llvm::ConstantFP::get(floats, 0x1p112));
  llvm::Value* special = ir_.CreateOr(magnitude, same_bits(bits32, kFloatInfinity));
  llvm::Value* is_special = ir_.CreateICmpUGE(magnitude, same_bits(bits32, 0x7c00u << 13));
  llvm::Value* result = ir_.CreateSelect(is_special, special, ir_.CreateBitCast(scaled, bits32));
  llvm::Value* sign = ir_.CreateShl(ir_.CreateAnd(wide, same_bits(bits32, 0x8000)), 16);
  return ir_.CreateBitCast(ir_.CreateOr(result, sign), floats);
}

// Converts float to the i16 bits of bfloat16, to nearest even.
llvm::Value* KernelBuilder::bfloat_bits(llvm::Value* value) {
  llvm::Type* bits32 = integers_like(value->getType(), 32);
  llvm::Value* bits = ir_.CreateBitCast(value, bits32);
  llvm::Value* odd = ir_.CreateAnd(ir_.CreateLShr(bits, 16), same_bits(bits32, 1));
  llvm::Value* rounded = ir_.CreateAdd(ir_.CreateAdd(bits, same_bits(bits32, 0x7fff)), odd);
  // A NaN keeps its upper bits and becomes quiet, so that none rounds to infinity.
  llvm::Value* quiet = ir_.CreateOr(bits, same_bits(bits32, 0x400000));
  llvm::Value* result = ir_.CreateSelect(ir_.CreateFCmpUNO(value, value), quiet, rounded);
  return ir_.CreateTrunc(ir_.CreateLShr(result, 16), integers_like(value->getType(), 16));
}

// Converts float to the i8 code of a narrow float, as float_to_narrow of tensor/narrow_float.h does.
llvm::Value* KernelBuilder::narrow_code(llvm::Value* value, DataType dtype) {
  const NarrowFloat row = narrow_float(dtype);
  llvm::Type* bits32 = integers_like(value->getType(), 32);
  const auto constant = [&](uint64_t bits) { return same_bits(bits32, bits & 0xffffffffu); };
  const uint32_t shift = 23u - row.mantissa_bits, aligner = (151u - row.bias - row.mantissa_bits) << 23;
  const uint32_t rebias = (127u - row.bias) << 23, half = (1u << (shift - 1)) - 1;
  llvm::Value* bits = ir_.CreateBitCast(value, bits32);
  llvm::Value* sign = ir_.CreateAnd(ir_.CreateLShr(bits, row.sign == 0x80 ? 24 : 28), constant(row.sign));
  llvm::Value* size = ir_.CreateAnd(bits, constant(kFloatMagnitude));
  llvm::Value* aligned =
      ir_.CreateFAdd(ir_.CreateBitCast(size, value->getType()), ir_.CreateBitCast(constant(aligner), value->getType()));
  llvm::Value* subnormal = ir_.CreateSub(ir_.CreateBitCast(aligned, bits32), constant(aligner));
  llvm::Value* odd = ir_.CreateAnd(ir_.CreateLShr(size, shift), constant(1));
  llvm::Value* normal = ir_.CreateLShr(ir_.CreateAdd(ir_.CreateAdd(size, constant(half - rebias)), odd), shift);
  llvm::Value* is_small = ir_.CreateICmpULT(size, constant((128u - row.bias) << 23));
  llvm::Value* code = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir_.CreateSelect(is_small, subnormal, normal),
                                                constant(row.greatest));
  llvm::Value* result = ir_.CreateOr(code, sign);
  if (row.is_unsigned_zero) result = ir_.CreateSelect(ir_.CreateICmpEQ(code, constant(0)), constant(0), result);
  llvm::Value* nan = row.has_nan() ? ir_.CreateOr(sign, constant(row.nan)) : ir_.CreateXor(sign, constant(row.nan));
  result = ir_.CreateSelect(ir_.CreateICmpUGT(size, constant(kFloatInfinity)), nan, result);
  return ir_.CreateTrunc(result, integers_like(value->getType(), 8));
}

// Converts the i8 code of a narrow float to float, as narrow_to_float of tensor/narrow_float.h does.
llvm::Value* KernelBuilder::narrow_value(llvm::Value* code, DataType dtype) {
  const NarrowFloat row = narrow_float(dtype);
  llvm::Type* bits32 = integers_like(code->getType(), 32);
  llvm::Type* floats = floats_like(code->getType(), ir_.getFloatTy());
  const auto constant = [&](uint64_t bits) { return same_bits(bits32, bits); };
  llvm::Value* wide = ir_.CreateZExt(code, bits32);
  llvm::Value* size = ir_.CreateAnd(wide, constant(row.sign - 1u));
  llvm::Value* sign = ir_.CreateShl(ir_.CreateAnd(wide, constant(row.sign)), row.sign == 0x80 ? 24 : 28);
  llvm::Constant* unit = constant(uint64_t{128u - row.bias - row.mantissa_bits} << 23);
  llvm::Value* subnormal = ir_.CreateFMul(ir_.CreateSIToFP(size, floats), ir_.CreateBitCast(unit, floats));
  llvm::Value* normal =
      ir_.CreateAdd(ir_.CreateShl(size, 23 - row.mantissa_bits), constant(uint64_t{127u - row.bias} << 23));
  llvm::Value* is_small = ir_.CreateICmpULT(size, constant(uint64_t{1} << row.mantissa_bits));
  llvm::Value* bits = ir_.CreateSelect(is_small, ir_.CreateBitCast(subnormal, bits32), normal);
  if (row.infinity != 0)
    bits = ir_.CreateSelect(ir_.CreateICmpEQ(size, constant(row.infinity)), constant(kFloatInfinity), bits);
  llvm::Value* is_nan = row.is_unsigned_zero ? ir_.CreateICmpEQ(wide, constant(row.nan))
                                             : ir_.CreateICmpUGT(size, constant(row.last_number()));
  bits = ir_.CreateSelect(is_nan, constant(0x7fc00000), bits);
  return ir_.CreateBitCast(ir_.CreateOr(bits, sign), floats);
}

// Cuts integers to the bits of a narrow dtype, and extends them to the type of its registers.
llvm::Value* KernelBuilder::cut_to_bits(llvm::Value* value, DataType from, DataType to) {
  llvm::Type* own = integers_like(value->getType(), static_cast<unsigned>(to.bits()));
  llvm::Value* cut = ir_.CreateIntCast(value, own, is_signed_int(from));
  return ir_.CreateIntCast(cut, integers_like(value->getType(), 8), is_signed_int(to));
}

// Folds the bits of a 64-bit integer that a double cannot hold into one sticky bit. Rounding the double further then
// gives the same as rounding the integer once.
llvm::Value* KernelBuilder::fold_low_bits(llvm::Value* value, bool is_signed) {
  const auto constant = [&](uint64_t bits) { return same_bits(value->getType(), bits); };
  llvm::Constant* none = constant(0);
  constexpr uint64_t kExact = uint64_t{1} << 53, kBelow = 0xfff;
  llvm::Value* large = is_signed ? ir_.CreateICmpUGT(ir_.CreateAdd(value, constant(kExact)), constant(2 * kExact))
                                 : ir_.CreateICmpUGT(value, constant(kExact));
  llvm::Value* any_below = ir_.CreateICmpNE(ir_.CreateAnd(value, constant(kBelow)), none);
  llvm::Value* folded =
      ir_.CreateOr(ir_.CreateAnd(value, constant(~kBelow)), ir_.CreateSelect(any_below, constant(0x800), none));
  return ir_.CreateSelect(large, folded, value);
}

// Converts double to float, rounded to odd, so that rounding it to 16 bits gives the same as rounding the double.
llvm::Value* KernelBuilder::narrow_to_odd(llvm::Value* value) {
  llvm::Type* floats = floats_like(value->getType(), ir_.getFloatTy());
  llvm::Type* bits32 = integers_like(value->getType(), 32);
  llvm::Value* nearest = ir_.CreateFPTrunc(value, floats);
  llvm::Value* back = ir_.CreateFPExt(nearest, value->getType());
  llvm::Value* too_large = ir_.CreateFCmpOGT(ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                             ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  llvm::Value* toward_zero = ir_.CreateSub(ir_.CreateBitCast(nearest, bits32), ir_.CreateZExt(too_large, bits32));
  llvm::Value* inexact = ir_.CreateZExt(ir_.CreateFCmpONE(back, value), bits32);
  return ir_.CreateBitCast(ir_.CreateOr(toward_zero, inexact), floats);
}

llvm::Value* KernelBuilder::round_to(llvm::Value* value, DataType dtype) {
  if (is_half(dtype)) return half_value(half_bits(value));
  if (dtype.is_bfloat16()) return from_memory(bfloat_bits(value), dtype);
  return dtype.is_narrow_float() ? narrow_code(value, dtype) : value;
}

llvm::Value* KernelBuilder::from_memory(llvm::Value* raw, DataType dtype) {
  if (dtype.is_bool()) return ir_.CreateICmpNE(raw, llvm::Constant::getNullValue(raw->getType()));
  if (is_half(dtype)) return half_value(raw);
  if (dtype.is_narrow() && dtype.bits() < 8) return cut_to_bits(raw, dtype, dtype);
  if (!dtype.is_bfloat16()) return raw;
  llvm::Value* wide = ir_.CreateZExt(raw, integers_like(raw->getType(), 32));
  return ir_.CreateBitCast(ir_.CreateShl(wide, 16), floats_like(raw->getType(), ir_.getFloatTy()));
}

llvm::Value* KernelBuilder::to_memory(llvm::Value* value, DataType dtype) {
  if (dtype.is_bool()) return ir_.CreateZExt(value, memory_type(dtype));
  if (is_half(dtype)) return half_bits(value);
  return dtype.is_bfloat16() ? bfloat_bits(value) : value;
}

llvm::Value* KernelBuilder::cast(llvm::Value* value, DataType from, DataType to) {
  if (from.element() == to.element()) return value;
  if (from.is_narrow_float()) return cast(narrow_value(value, from), DataType::float_(32, from.lanes()), to);
  const bool to_float = to.is_float() || to.is_narrow_float(), is_short = to_float && to.bits() <= 16;
  const DataType dtype = (to.is_narrow_float() ? DataType::float_(32) : to).with_lanes(from.lanes());
  llvm::Type* type = register_type(dtype);
  if (to.is_bool()) {
    llvm::Constant* zero = llvm::Constant::getNullValue(value->getType());
    return from.is_float() ? ir_.CreateFCmpUNE(value, zero) : ir_.CreateICmpNE(value, zero);
  }
  if (from.is_float() && to_float) {
    if (from.bits() == 64 && is_short) return round_to(narrow_to_odd(value), to);
    return round_to(ir_.CreateFPCast(value, type), to);
  }
  if (from.is_float()) {
    HEADRACE_CHECK(is_any_int(to), "cast of {} to {}", from, to);
    const auto saturating = is_signed_int(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    llvm::Type* own = integers_like(type, static_cast<unsigned>(to.bits()));
    llvm::Value* whole = ir_.CreateIntrinsic(saturating, {own, value->getType()}, {value});
    return ir_.CreateIntCast(whole, type, is_signed_int(to));
  }
  HEADRACE_CHECK(is_any_int(from) || from.is_bool(), "cast of {} to {}", from, to);
  if (to.is_narrow_int()) return cut_to_bits(value, from, to);
  if (!to_float) return ir_.CreateIntCast(value, type, is_signed_int(from));
  // By way of double, so that numbers of more than 24 bits are rounded once.
  if (is_short && from.bits() > 16) {
    if (from.bits() == 64) value = fold_low_bits(value, is_signed_int(from));
    return cast(cast(value, from, DataType::float_(64)), DataType::float_(64), to);
  }
  return round_to(is_signed_int(from) ? ir_.CreateSIToFP(value, type) : ir_.CreateUIToFP(value, type), to);
}

llvm::Value* KernelBuilder::divide(BinaryOp op, const PrimExpr& divisor_expr, llvm::Value* a, llvm::Value* b,
                                   bool is_signed) {
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  const bool want_quotient = op == BinaryOp::div || op == BinaryOp::floor_div;
  const auto* broadcast = divisor_expr.as<BroadcastNode>();
  const auto known = as_int(broadcast != nullptr ? broadcast->value : divisor_expr);
  // Processors trap on these two; a known divisor needs no guard.
  const bool guarded = !known || *known == 0 || *known == -1;
  llvm::Value* is_zero = nullptr;
  llvm::Value* is_minus_one = nullptr;
  if (guarded) {
    is_zero = ir_.CreateICmpEQ(b, zero);
    llvm::Value* special = is_zero;
    if (is_signed) {
      is_minus_one = ir_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
      special = ir_.CreateOr(is_zero, is_minus_one);
    }
    b = ir_.CreateSelect(special, llvm::ConstantInt::get(type, 1), b);
  }
  llvm::Value* quotient = is_signed ? ir_.CreateSDiv(a, b) : ir_.CreateUDiv(a, b);
  llvm::Value* remainder = is_signed ? ir_.CreateSRem(a, b) : ir_.CreateURem(a, b);
  if (is_signed && (op == BinaryOp::floor_div || op == BinaryOp::floor_mod)) {
    llvm::Value* differ = ir_.CreateICmpSLT(ir_.CreateXor(remainder, b), zero);
    llvm::Value* down = ir_.CreateAnd(ir_.CreateICmpNE(remainder, zero), differ);
    quotient = ir_.CreateSub(quotient, ir_.CreateZExt(down, type));
    remainder = ir_.CreateAdd(remainder, ir_.CreateSelect(down, b, zero));
  }
  llvm::Value* result = want_quotient ? quotient : remainder;
  // The divisor -1 was replaced by 1: negate the quotient; the remainder is 0 either way.
  if (is_minus_one != nullptr && want_quotient) result = ir_.CreateSelect(is_minus_one, ir_.CreateNeg(a), result);
  if (is_zero != nullptr && want_quotient) result = ir_.CreateSelect(is_zero, zero, result);
  return result;
}

llvm::Value* KernelBuilder::min_max(BinaryOp op, llvm::Value* a, llvm::Value* b, DataType dtype) {
  const bool is_min = op == BinaryOp::min;
  if (!dtype.is_float()) {
    using llvm::Intrinsic::smax;
    const auto id = dtype.is_int() ? (is_min ? llvm::Intrinsic::smin : smax)
                                   : (is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
    return ir_.CreateBinaryIntrinsic(id, a, b);
  }
  // One instruction on x86; gives `a` when a side is NaN.
  llvm::Value* take_b = is_min ? ir_.CreateFCmpOLT(b, a) : ir_.CreateFCmpOGT(b, a);
  llvm::Value* result = ir_.CreateSelect(take_b, b, a);
  const auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  const llvm::Constant* element =
      constant != nullptr && b->getType()->isVectorTy() ? constant->getSplatValue() : constant;
  if (const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(element); number && !number->isNaN()) return result;
  return ir_.CreateSelect(ir_.CreateFCmpUNO(b, b), b, result);
}

}  // namespace headrace::codegen::llvm_plugin
