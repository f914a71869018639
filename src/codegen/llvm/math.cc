// Mathematical functions of kernels.
#include <llvm/IR/Intrinsics.h>

#include <optional>

#include "codegen/llvm/kernel_builder.h"

namespace headrace::codegen::llvm_plugin {

namespace {

// Functions that become instructions, in LLVM's terms.
std::optional<llvm::Intrinsic::ID> instruction_of(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::sqrt:
      return llvm::Intrinsic::sqrt;
    case Intrinsic::floor:
      return llvm::Intrinsic::floor;
    case Intrinsic::ceil:
      return llvm::Intrinsic::ceil;
    case Intrinsic::trunc:
      return llvm::Intrinsic::trunc;
    case Intrinsic::round:
      return llvm::Intrinsic::roundeven;
    case Intrinsic::fma:
      return llvm::Intrinsic::fma;
    default:
      return std::nullopt;
  }
}

llvm::Value* integer_abs(llvm::IRBuilder<>& ir, llvm::Value* value) {
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, ir.getFalse());
}

}  // namespace

llvm::Value* KernelBuilder::call_library(const std::string& name, const std::vector<llvm::Value*>& args) {
  llvm::Type* type = args[0]->getType();
  llvm::Type* scalar = type->getScalarType();
  const std::vector<llvm::Type*> types(args.size(), scalar);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(name + (scalar->isFloatTy() ? "f" : ""),
                                                            llvm::FunctionType::get(scalar, types, false));
  // Free of side effects: nobody reads errno.
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
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

// `args` have the dtype of the first argument; float16 and bfloat16 come as float, and the caller rounds.
llvm::Value* KernelBuilder::emit_math(Intrinsic intrinsic, DataType dtype, const std::vector<llvm::Value*>& args) {
  llvm::Type* type = args[0]->getType();
  if (const auto id = instruction_of(intrinsic)) return ir_.CreateIntrinsic(*id, {type}, args);
  switch (intrinsic) {
    case Intrinsic::abs:
      if (dtype.is_uint() || dtype.is_bool()) return args[0];
      if (dtype.is_int()) return integer_abs(ir_, args[0]);
      return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]);
    case Intrinsic::rsqrt:
      return ir_.CreateFDiv(llvm::ConstantFP::get(type, 1.0), ir_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, args[0]));
    case Intrinsic::isnan:
      return ir_.CreateFCmpUNO(args[0], args[0]);
    case Intrinsic::isinf:
      return ir_.CreateFCmpOEQ(ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]),
                               llvm::ConstantFP::getInfinity(type));
    default:
      // The others carry the names of C's library.
      return call_library(std::string(name_of(intrinsic)), args);
  }
}

}  // namespace headrace::codegen::llvm_plugin
