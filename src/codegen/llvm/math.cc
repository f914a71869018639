// Mathematical functions of kernels that are not instructions.
#include "codegen/llvm/kernel_builder.h"

namespace headrace::codegen::llvm_plugin {

llvm::Value* KernelBuilder::call_library(const std::string& name, const std::vector<llvm::Value*>& args) {
  llvm::Type* type = args[0]->getType();
  llvm::Type* scalar = type->getScalarType();
  const std::vector<llvm::Type*> types(args.size(), scalar);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(name + (scalar->isFloatTy() ? "f" : ""),
                                                            llvm::FunctionType::get(scalar, types, false));
  // Marks the function as free of side effects, because errno is never read.
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return call_lanes(callee, args);
}

// Calls a function of scalars once a lane.
llvm::Value* KernelBuilder::call_lanes(llvm::FunctionCallee callee, const std::vector<llvm::Value*>& args) {
  llvm::Type* type = args[0]->getType();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (vector == nullptr) return ir_.CreateCall(callee, args);
  llvm::Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    std::vector<llvm::Value*> scalars;
    for (llvm::Value* arg : args) scalars.push_back(ir_.CreateExtractElement(arg, lane));
    result = ir_.CreateInsertElement(result, ir_.CreateCall(callee, scalars), lane);
  }
  return result;
}

// Emits base^exponent for a negative exponent: the truncated quotient 1 / base^-exponent.
llvm::Value* KernelBuilder::inverse_power(llvm::Value* base, llvm::Value* exponent) {
  llvm::Type* type = base->getType();
  llvm::Constant *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
  llvm::Constant* minus_one = llvm::Constant::getAllOnesValue(type);
  llvm::Value* is_odd = ir_.CreateICmpNE(ir_.CreateAnd(exponent, one), zero);
  llvm::Value* sign = ir_.CreateSelect(is_odd, minus_one, one);
  llvm::Value* other = ir_.CreateSelect(ir_.CreateICmpEQ(base, minus_one), sign, zero);
  return ir_.CreateSelect(ir_.CreateICmpEQ(base, one), one, other);
}

// Makes a function (base, exponent) of integers that wraps, by squaring.
llvm::Function* KernelBuilder::integer_power(DataType dtype) {
  const std::string name = fmt::format("headrace.power.{}", dtype.element());
  if (llvm::Function* made = module_.getFunction(name)) return made;
  llvm::Type* type = register_type(dtype.element());
  llvm::Constant *zero = llvm::ConstantInt::get(type, 0), *one = llvm::ConstantInt::get(type, 1);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                          llvm::Function::InternalLinkage, name, module_);
  add_attributes(*function);
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  const llvm::IRBuilder<>::InsertPointGuard guard(ir_);
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(context_, label, function); };
  llvm::BasicBlock *entry = block("entry"), *below = block("below"), *loop = block("loop"), *end = block("end");
  llvm::Value *base = function->getArg(0), *exponent = function->getArg(1);
  ir_.SetInsertPoint(entry);
  llvm::Value* is_below = dtype.is_int() ? ir_.CreateICmpSLT(exponent, zero) : ir_.getFalse();
  ir_.CreateCondBr(is_below, below, loop);
  ir_.SetInsertPoint(below);
  ir_.CreateRet(inverse_power(base, exponent));
  ir_.SetInsertPoint(loop);
  llvm::PHINode *result = ir_.CreatePHI(type, 2), *square = ir_.CreatePHI(type, 2), *rest = ir_.CreatePHI(type, 2);
  llvm::Value* is_odd = ir_.CreateICmpNE(ir_.CreateAnd(rest, one), zero);
  llvm::Value* grown = ir_.CreateSelect(is_odd, ir_.CreateMul(result, square), result);
  llvm::Value *left = ir_.CreateLShr(rest, 1), *next = ir_.CreateMul(square, square);
  ir_.CreateCondBr(ir_.CreateICmpEQ(left, zero), end, loop);
  llvm::Value* const values[2][3] = {{one, base, exponent}, {grown, next, left}};
  llvm::PHINode* const phis[] = {result, square, rest};
  for (size_t i = 0; i < 3; ++i) {
    phis[i]->addIncoming(values[0][i], entry);
    phis[i]->addIncoming(values[1][i], loop);
  }
  ir_.SetInsertPoint(end);
  ir_.CreateRet(grown);
  return function;
}

}  // namespace headrace::codegen::llvm_plugin
