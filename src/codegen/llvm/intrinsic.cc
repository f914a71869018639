// Intrinsics of kernels: one row for each, and what the rows emit.
#include "ir/intrinsics.h"

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/kernel_builder.h"

namespace headrace::codegen::llvm_plugin {

// One row for each intrinsic: an instruction in LLVM's terms, a function of C's library (with an f behind it for
// float), or a method of its own. Results of the first two are rounded to the dtype of the call.
struct KernelBuilder::IntrinsicTable {
  using Method = llvm::Value* (KernelBuilder::*)(const IntrinsicCallNode&, const Args&);
  struct Row {
    Intrinsic intrinsic;
    llvm::Intrinsic::ID instruction = llvm::Intrinsic::not_intrinsic;
    const char* function = nullptr;  // a function of C's library
    Method own = nullptr;
    bool takes_values = true;  // false: the method emits the operands itself
  };
  static constexpr Row instruction(Intrinsic intrinsic, llvm::Intrinsic::ID id) { return {intrinsic, id}; }
  static constexpr Row library(Intrinsic intrinsic, const char* name) {
    return {intrinsic, llvm::Intrinsic::not_intrinsic, name};
  }
  static constexpr Row own(Intrinsic intrinsic, Method method, bool takes_values = true) {
    return {intrinsic, llvm::Intrinsic::not_intrinsic, nullptr, method, takes_values};
  }
  static const Row kRows[kIntrinsicCount];
};

using B = KernelBuilder;

constexpr KernelBuilder::IntrinsicTable::Row KernelBuilder::IntrinsicTable::kRows[] = {
    library(Intrinsic::exp, "exp"),
    library(Intrinsic::log, "log"),
    library(Intrinsic::log2, "log2"),
    library(Intrinsic::log10, "log10"),
    library(Intrinsic::log1p, "log1p"),
    instruction(Intrinsic::sqrt, llvm::Intrinsic::sqrt),
    own(Intrinsic::rsqrt, &B::emit_rsqrt),
    library(Intrinsic::sin, "sin"),
    library(Intrinsic::cos, "cos"),
    library(Intrinsic::tan, "tan"),
    library(Intrinsic::asin, "asin"),
    library(Intrinsic::acos, "acos"),
    library(Intrinsic::atan, "atan"),
    library(Intrinsic::sinh, "sinh"),
    library(Intrinsic::cosh, "cosh"),
    library(Intrinsic::tanh, "tanh"),
    library(Intrinsic::asinh, "asinh"),
    library(Intrinsic::acosh, "acosh"),
    library(Intrinsic::atanh, "atanh"),
    library(Intrinsic::erf, "erf"),
    instruction(Intrinsic::floor, llvm::Intrinsic::floor),
    instruction(Intrinsic::ceil, llvm::Intrinsic::ceil),
    instruction(Intrinsic::round, llvm::Intrinsic::round),
    instruction(Intrinsic::trunc, llvm::Intrinsic::trunc),
    own(Intrinsic::abs, &B::emit_abs),
    own(Intrinsic::pow, &B::emit_power),
    instruction(Intrinsic::fma, llvm::Intrinsic::fma),
    own(Intrinsic::isnan, &B::emit_isnan),
    own(Intrinsic::isinf, &B::emit_isinf),
    own(Intrinsic::if_then_else, &B::emit_if_then_else, false),
    own(Intrinsic::bitwise_and, &B::emit_bitwise),
    own(Intrinsic::bitwise_or, &B::emit_bitwise),
    own(Intrinsic::bitwise_xor, &B::emit_bitwise),
    own(Intrinsic::bitwise_not, &B::emit_bitwise),
    own(Intrinsic::shift_left, &B::emit_shift),
    own(Intrinsic::shift_right, &B::emit_shift),
    own(Intrinsic::reinterpret, &B::emit_reinterpret),
    own(Intrinsic::vector_load, &B::emit_vector_load, false),
    own(Intrinsic::reduce_add, &B::emit_reduce_add),
    own(Intrinsic::prefetch, &B::emit_prefetch, false),
    library(Intrinsic::hypot, "hypot"),
    instruction(Intrinsic::nearbyint, llvm::Intrinsic::roundeven),
};

llvm::Value* KernelBuilder::emit_intrinsic(const IntrinsicCallNode& e) {
  static_assert(lists_every_intrinsic(IntrinsicTable::kRows));
  const IntrinsicTable::Row& row = IntrinsicTable::kRows[static_cast<size_t>(e.intrinsic)];
  if (row.own != nullptr && !row.takes_values) return (this->*row.own)(e, {});
  Args args;
  for (const PrimExpr& arg : e.args) args.push_back(emit(arg));
  if (row.own != nullptr) return (this->*row.own)(e, args);
  HEADRACE_CHECK(e.args[0]->dtype.is_float(), "{} of {}", name_of(e.intrinsic), e.args[0]->dtype);
  llvm::Value* value = row.function != nullptr ? call_library(row.function, args)
                                               : ir_.CreateIntrinsic(row.instruction, {args[0]->getType()}, args);
  return round_to(value, e.dtype);
}

llvm::Value* KernelBuilder::emit_abs(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  if (dtype.is_uint() || dtype.is_bool()) return args[0];
  if (dtype.is_int()) return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, args[0], ir_.getFalse());
  return round_to(ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]), e.dtype);
}

llvm::Value* KernelBuilder::emit_rsqrt(const IntrinsicCallNode& e, const Args& args) {
  llvm::Constant* one = llvm::ConstantFP::get(args[0]->getType(), 1.0);
  return round_to(ir_.CreateFDiv(one, ir_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, args[0])), e.dtype);
}

llvm::Value* KernelBuilder::emit_isnan(const IntrinsicCallNode&, const Args& args) {
  return ir_.CreateFCmpUNO(args[0], args[0]);
}

llvm::Value* KernelBuilder::emit_isinf(const IntrinsicCallNode&, const Args& args) {
  return ir_.CreateFCmpOEQ(ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]),
                           llvm::ConstantFP::getInfinity(args[0]->getType()));
}

llvm::Value* KernelBuilder::emit_power(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  if (!dtype.is_float()) return call_lanes(integer_power(dtype), args);
  return round_to(call_library("pow", args), e.dtype);
}

llvm::Value* KernelBuilder::emit_bitwise(const IntrinsicCallNode& e, const Args& args) {
  switch (e.intrinsic) {
    case Intrinsic::bitwise_and:
      return ir_.CreateAnd(args[0], args[1]);
    case Intrinsic::bitwise_or:
      return ir_.CreateOr(args[0], args[1]);
    case Intrinsic::bitwise_xor:
      return ir_.CreateXor(args[0], args[1]);
    default:
      return ir_.CreateNot(args[0]);
  }
}

llvm::Value* KernelBuilder::emit_reinterpret(const IntrinsicCallNode& e, const Args& args) {
  llvm::Value* bits = ir_.CreateBitCast(to_memory(args[0], e.args[0]->dtype), memory_type(e.dtype));
  return from_memory(bits, e.dtype);
}

llvm::Value* KernelBuilder::emit_vector_load(const IntrinsicCallNode& e, const Args&) {
  const Place place = place_of(e.args[0], e.dtype.element());
  return load_consecutive(e.dtype,
                          element_pointer(place.pointer, e.dtype, ir_.CreateAdd(place.offset, index(e.args[1]))));
}

llvm::Value* KernelBuilder::emit_prefetch(const IntrinsicCallNode& e, const Args&) {
  const Place place = place_of(e.args[0], DataType::uint(8));
  llvm::Value* pointer = element_pointer(place.pointer, place.element, ir_.CreateAdd(place.offset, index(e.args[1])));
  // To be read, kept in all caches, data.
  return ir_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                             {pointer, ir_.getInt32(0), ir_.getInt32(3), ir_.getInt32(1)});
}

// Shifts by the width or more give what shifting step by step would.
llvm::Value* KernelBuilder::emit_shift(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  llvm::Value *a = args[0], *by = args[1];
  llvm::Constant* last = llvm::ConstantInt::get(a->getType(), static_cast<uint64_t>(dtype.bits() - 1));
  llvm::Value* bounded = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, by, last);
  if (e.intrinsic == Intrinsic::shift_right && dtype.is_int()) return ir_.CreateAShr(a, bounded);
  llvm::Value* shifted = e.intrinsic == Intrinsic::shift_left ? ir_.CreateShl(a, bounded) : ir_.CreateLShr(a, bounded);
  return ir_.CreateSelect(ir_.CreateICmpUGT(by, last), llvm::Constant::getNullValue(a->getType()), shifted);
}

llvm::Value* KernelBuilder::emit_reduce_add(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  llvm::Value* vector = args[0];
  if (dtype.lanes() == 1) return vector;
  if (!dtype.is_float()) return ir_.CreateAddReduce(vector);
  if (dtype.bits() > 16)
    return ir_.CreateFAddReduce(llvm::ConstantFP::get(vector->getType()->getScalarType(), -0.0), vector);
  llvm::Value* sum = ir_.CreateExtractElement(vector, uint64_t{0});
  for (int i = 1; i < dtype.lanes(); ++i) {
    sum = round_to(ir_.CreateFAdd(sum, ir_.CreateExtractElement(vector, static_cast<uint64_t>(i))), dtype.element());
  }
  return sum;
}

llvm::Value* KernelBuilder::emit_if_then_else(const IntrinsicCallNode& e, const Args&) {
  llvm::Value* condition = emit(e.args[0]);
  auto in_branch = [&](const PrimExpr& arg, llvm::Value* mask) {
    // Values computed under a condition are not available outside of it.
    const auto memo = memo_;
    llvm::Value* outer_mask = mask_;
    if (mask != nullptr) mask_ = outer_mask == nullptr ? mask : ir_.CreateAnd(outer_mask, mask);
    llvm::Value* value = emit(arg);
    memo_ = memo;
    mask_ = outer_mask;
    return value;
  };
  if (e.args[0]->dtype.lanes() > 1) {
    llvm::Value* if_true = in_branch(e.args[1], condition);
    return ir_.CreateSelect(condition, if_true, in_branch(e.args[2], ir_.CreateNot(condition)));
  }
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* else_block = new_block("else");
  llvm::BasicBlock* join = new_block("join");
  ir_.CreateCondBr(condition, then_block, else_block);
  ir_.SetInsertPoint(then_block);
  llvm::Value* if_true = in_branch(e.args[1], nullptr);
  llvm::BasicBlock* then_end = ir_.GetInsertBlock();
  ir_.CreateBr(join);
  ir_.SetInsertPoint(else_block);
  llvm::Value* if_false = in_branch(e.args[2], nullptr);
  llvm::BasicBlock* else_end = ir_.GetInsertBlock();
  ir_.CreateBr(join);
  ir_.SetInsertPoint(join);
  llvm::PHINode* phi = ir_.CreatePHI(register_type(e.dtype), 2);
  phi->addIncoming(if_true, then_end);
  phi->addIncoming(if_false, else_end);
  return phi;
}

}  // namespace headrace::codegen::llvm_plugin
