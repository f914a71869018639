// tir to LLVM IR, one function at a time. Split over kernel.cc (frame, statements), expression.cc, number.cc, math.cc.
//
// How values are held: bool is i1; float16 and bfloat16 are float, rounded after every operation (one float operation
// on two of them, rounded, is the correctly rounded result); all else as itself. Memory holds i8 and i16 for the former.
// Integers wrap. Division by zero gives 0, as does its remainder; the lowest number divided by -1 wraps.
// min and max give NaN when a side is NaN.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <unordered_map>

#include "codegen/native.h"
#include "codegen/workspace.h"

namespace headrace::codegen::llvm_plugin {

class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module, const NativeTarget& target)
      : module_(module), context_(module.getContext()), target_(target), ir_(context_) {}

  // Adds `function` to the module under its global_symbol, with the signature of a kernel.
  void add(const tir::PrimFuncNode& function);

 private:
  // kernel.cc
  llvm::Function* make_part(const std::string& name, const std::vector<llvm::Type*>& extra);
  std::vector<llvm::Value*> captured() const;
  void bind_captured(llvm::Function* part);
  void bind_symbols(const tir::PrimFuncNode& function, llvm::Value* args);
  llvm::Value* load_field(llvm::Value* base, uint64_t offset_bytes, llvm::Type* type);
  void fail_unless(llvm::Value* good, llvm::Value* status);
  void report(const std::string& message);
  llvm::Function* message_writer();
  llvm::BasicBlock* new_block(const char* name);

  void emit(const tir::Stmt& stmt);
  void emit_store(const tir::BufferStoreNode& store);
  void emit_for(const tir::ForNode& loop);
  void emit_loop(llvm::Value* begin, llvm::Value* extent, const PrimVarNode* var, const tir::Stmt& body,
                 const char* hint);
  void emit_parallel(const tir::ForNode& loop);
  void emit_if(const tir::IfThenElseNode& branch);
  void emit_allocate(const tir::AllocateNode& allocation);
  void emit_assert(const tir::AssertNode& check);

  // expression.cc
  llvm::Value* emit(const PrimExpr& e);
  llvm::Value* emit_binary(const BinaryNode& e);
  llvm::Value* emit_intrinsic(const IntrinsicCallNode& e);
  llvm::Value* emit_if_then_else(const IntrinsicCallNode& e);
  llvm::Value* emit_ramp(const RampNode& e);
  llvm::Value* emit_load(const BufferLoadNode& e);
  llvm::Value* emit_vector_load(const IntrinsicCallNode& e);
  llvm::Value* load_memory(DataType dtype, llvm::Value* pointer);
  llvm::Value* load_scattered(DataType dtype, llvm::Value* pointer, llvm::Value* offsets);
  void store_memory(DataType dtype, llvm::Value* value, llvm::Value* pointer);
  // Where an access begins: the buffer's pointer and the element offset, an i64 or, for a gather, a vector of them.
  struct Access {
    llvm::Value* pointer;
    llvm::Value* offset;
    bool consecutive;  // lanes follow each other in memory from `offset`, a scalar
    bool uniform;      // all lanes are the one element at `offset`
  };
  Access access(const Buffer& buffer, const Array<PrimExpr>& indices);
  PrimExpr stride_of(const BufferNode& buffer, size_t dimension) const;
  llvm::Value* address_of(const PrimExpr& e, DataType* element);
  llvm::Value* element_pointer(llvm::Value* base, DataType element, llvm::Value* offset);
  llvm::Value* data_of(const Buffer& buffer) const;

  // number.cc
  llvm::Type* register_type(DataType dtype);
  llvm::Type* memory_type(DataType dtype);
  llvm::Type* vector_of(llvm::Type* element, int lanes);
  llvm::Value* splat(llvm::Value* scalar, llvm::Type* type);
  llvm::Value* cast(llvm::Value* value, DataType from, DataType to);
  llvm::Value* from_memory(llvm::Value* raw, DataType dtype);
  llvm::Value* to_memory(llvm::Value* value, DataType dtype);
  // Rounds a float to float16 or bfloat16; no change for other types.
  llvm::Value* round_to(llvm::Value* value, DataType dtype);
  llvm::Value* half_bits(llvm::Value* value);
  llvm::Value* half_value(llvm::Value* bits);
  llvm::Value* bfloat_bits(llvm::Value* value);
  llvm::Value* narrow_to_odd(llvm::Value* value);
  llvm::Value* divide(BinaryOp op, const PrimExpr& divisor_expr, llvm::Value* a, llvm::Value* b, bool is_signed);
  llvm::Value* min_max(BinaryOp op, llvm::Value* a, llvm::Value* b, DataType dtype);
  llvm::Constant* same_bits(llvm::Type* type, uint64_t bits);

  // math.cc
  llvm::Value* emit_math(Intrinsic intrinsic, DataType dtype, const std::vector<llvm::Value*>& args);
  llvm::Value* call_library(const std::string& name, const std::vector<llvm::Value*>& args);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const NativeTarget& target_;
  llvm::IRBuilder<> ir_;
  WorkspaceLayout workspace_;
  std::string symbol_;
  int parts_ = 0;
  bool no_alias_ = false;
  llvm::Value* env_ = nullptr;
  // What is in scope, in the order of binding: code outlined for a parallel loop gets all of it.
  std::vector<const Object*> scope_;
  std::unordered_map<const Object*, llvm::Value*> values_;
  // While not null: the lanes whose loads may touch memory.
  llvm::Value* mask_ = nullptr;

  class Binding;
  void bind(const Object* key, llvm::Value* value);
  void unbind(size_t scope_size);
};

}  // namespace headrace::codegen::llvm_plugin
