// PrimExpr to LLVM values.
#include "base/stack.h"
#include "codegen/llvm/kernel_builder.h"
#include "ir/intrinsics.h"

namespace headrace::codegen::llvm_plugin {

llvm::Value* KernelBuilder::emit(const PrimExpr& e) {
  const auto real_constant = [&](double value) {
    llvm::Value* exact = llvm::ConstantFP::get(vector_of(ir_.getDoubleTy(), e->dtype.lanes()), value);
    return cast(exact, DataType::float_(64, e->dtype.lanes()), e->dtype);
  };
  if (const auto* imm = e.as<IntImmNode>()) {
    if (e->dtype.is_narrow_float()) return real_constant(static_cast<double>(imm->value));
    return llvm::ConstantInt::get(register_type(e->dtype), static_cast<uint64_t>(imm->value), true);
  }
  if (const auto* real = e.as<FloatImmNode>()) return real_constant(real->value);
  if (e.is<PrimVarNode>()) {
    auto it = values_.find(e.get());
    HEADRACE_CHECK(it != values_.end(), "variable '{}' of '{}' is not in scope", to_string(e), symbol_);
    return it->second;
  }
  // Expressions share parts: each is computed once a statement.
  if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
  if (is_stack_low())
    throw_user_error("the kernel '{}' has an expression of too many operations within each other; compute it in stages",
                     symbol_);
  llvm::Value* value = emit_inner(e);
  memo_[e.get()] = value;
  return value;
}

llvm::Value* KernelBuilder::emit_inner(const PrimExpr& e) {
  if (const auto narrow = computed_narrow_dtype(e)) fail_to_compute(*narrow);
  if (const auto* binary = e.as<BinaryNode>()) return emit_binary(*binary);
  if (const auto* inverse = e.as<NotNode>()) return ir_.CreateNot(emit(inverse->a));
  if (const auto* select = e.as<SelectNode>()) {
    llvm::Value* condition = emit(select->condition);
    llvm::Value* if_true = emit(select->true_value);
    return ir_.CreateSelect(condition, if_true, emit(select->false_value));
  }
  if (const auto* node = e.as<CastNode>()) return cast(emit(node->value), node->value->dtype, e->dtype);
  if (const auto* ramp = e.as<RampNode>()) return emit_ramp(*ramp);
  if (const auto* broadcast = e.as<BroadcastNode>()) return splat(emit(broadcast->value), register_type(e->dtype));
  if (const auto* load = e.as<BufferLoadNode>()) return emit_load(*load);
  if (const auto* call = e.as<IntrinsicCallNode>()) return emit_intrinsic(*call);
  if (const auto* let = e.as<PrimLetNode>()) {
    const size_t outer = scope_.size();
    bind(let->var.get(), emit(let->value));
    llvm::Value* result = emit(let->body);
    unbind(outer);
    return result;
  }
  throw InternalError(fmt::format("native code cannot be made of the expression '{}' ({})", to_string(e), e->key()));
}

static llvm::CmpInst::Predicate predicate_of(BinaryOp op, DataType operand) {
  using P = llvm::CmpInst;
  const bool real = operand.is_float();
  const bool is_signed = operand.is_int();
  switch (op) {
    case BinaryOp::eq:
      return real ? P::FCMP_OEQ : P::ICMP_EQ;
    case BinaryOp::ne:
      return real ? P::FCMP_UNE : P::ICMP_NE;
    case BinaryOp::lt:
      return real ? P::FCMP_OLT : is_signed ? P::ICMP_SLT : P::ICMP_ULT;
    case BinaryOp::le:
      return real ? P::FCMP_OLE : is_signed ? P::ICMP_SLE : P::ICMP_ULE;
    case BinaryOp::gt:
      return real ? P::FCMP_OGT : is_signed ? P::ICMP_SGT : P::ICMP_UGT;
    default:
      return real ? P::FCMP_OGE : is_signed ? P::ICMP_SGE : P::ICMP_UGE;
  }
}

llvm::Value* KernelBuilder::emit_binary(const BinaryNode& e) {
  const DataType dtype = e.a->dtype;
  llvm::Value* a = emit(e.a);
  llvm::Value* b = emit(e.b);
  const bool real = dtype.is_float();
  if (is_comparison(e.op)) return ir_.CreateCmp(predicate_of(e.op, dtype), a, b);
  switch (e.op) {
    case BinaryOp::add:
      return real ? round_to(ir_.CreateFAdd(a, b), dtype) : ir_.CreateAdd(a, b);
    case BinaryOp::sub:
      return real ? round_to(ir_.CreateFSub(a, b), dtype) : ir_.CreateSub(a, b);
    case BinaryOp::mul:
      return real ? round_to(ir_.CreateFMul(a, b), dtype) : ir_.CreateMul(a, b);
    case BinaryOp::min:
    case BinaryOp::max:
      return min_max(e.op, a, b, dtype);
    case BinaryOp::logical_and:
      return ir_.CreateAnd(a, b);
    case BinaryOp::logical_or:
      return ir_.CreateOr(a, b);
    default:
      break;
  }
  if (!real) return divide(e.op, e.b, a, b, dtype.is_int());
  return emit_float_division(e.op, a, b, dtype);
}

// Emits a division or remainder. Remainders follow C's fmod and Python's %: exact, with the sign of the dividend or of
// the divisor.
llvm::Value* KernelBuilder::emit_float_division(BinaryOp op, llvm::Value* a, llvm::Value* b, DataType dtype) {
  if (op == BinaryOp::div) return round_to(ir_.CreateFDiv(a, b), dtype);
  if (op == BinaryOp::floor_div) {
    llvm::Value* quotient = round_to(ir_.CreateFDiv(a, b), dtype);
    return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, quotient);
  }
  llvm::Value* remainder = call_library("fmod", {a, b});
  if (op == BinaryOp::mod) return remainder;
  llvm::Constant* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* differ = ir_.CreateXor(ir_.CreateFCmpOLT(remainder, zero), ir_.CreateFCmpOLT(b, zero));
  llvm::Value* shift = ir_.CreateAnd(differ, ir_.CreateFCmpONE(remainder, zero));
  return ir_.CreateSelect(shift, round_to(ir_.CreateFAdd(remainder, b), dtype), remainder);
}

llvm::Value* KernelBuilder::emit_ramp(const RampNode& e) {
  llvm::Type* type = register_type(e.dtype);
  llvm::Value* base = splat(emit(e.base), type);
  llvm::Value* stride = splat(emit(e.stride), type);
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < e.dtype.lanes(); ++i) {
    steps.push_back(llvm::ConstantInt::get(type->getScalarType(), static_cast<uint64_t>(i)));
  }
  return ir_.CreateAdd(base, ir_.CreateMul(stride, llvm::ConstantVector::get(steps)));
}

}  // namespace headrace::codegen::llvm_plugin
