// tir to LLVM IR, one function at a time. Split over kernel.cc (frame,
// statements), expression.cc, memory.cc, number.cc, math.cc.
//
// How values are held: bool is i1; float16 and bfloat16 are float, rounded after every operation (one float operation
// on two of them, rounded, is the correctly rounded result); narrow floats are their codes and narrow integers are
// extended, both as i8; all else as itself. Memory holds i8 for bool, and i16 for floats of 16 bits. Integers wrap.
// Division by zero gives 0, as does its remainder; the lowest number divided by -1 wraps. min and max give NaN when a
// side is NaN.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <unordered_map>

#include "codegen/native.h"
#include "tir/workspace.h"

namespace headrace::codegen::llvm_plugin {

// Throws the UserError of an operation on numbers that are cast and moved only.
[[noreturn]] void fail_to_compute(DataType dtype);

class KernelBuilder {
 public:
  KernelBuilder(llvm::Module& module, const NativeTarget& target)
      : module_(module), context_(module.getContext()), target_(target), ir_(context_) {}

  // Adds `function` to the module under its global_symbol, with the signature of a kernel.
  void add(const tir::PrimFuncNode& function);

 private:
  // kernel.cc
  using Job = std::function<void(llvm::Function& part)>;
  void make_part(const std::string& name, const std::vector<llvm::Value*>& leading, const Job& job);
  llvm::Function* make_parallel_entry(const std::string& part_name, llvm::StructType* closure,
                                      const tir::ForNode& loop);
  void add_attributes(llvm::Function& function);
  llvm::Value* data_of_argument(llvm::Value* tensors, size_t number);
  void bind_arguments(const tir::PrimFuncNode& function, llvm::Value* args);
  llvm::Value* load_field(llvm::Value* base, uint64_t offset_bytes, llvm::Type* type);
  void return_unless_zero(llvm::Value* status);
  llvm::Function* message_writer();
  llvm::BasicBlock* new_block(const char* name);
  llvm::Value* entry_alloca(llvm::Type* type, uint64_t align_bytes);
  void bind(const Object* key, llvm::Value* value);
  void unbind(size_t scope_size);

  void emit(const tir::Stmt& stmt);
  void in_scope_of(const tir::Stmt& body, const std::function<void()>& job);
  void emit_seq(const tir::SeqNode& seq);
  void emit_for(const tir::ForNode& loop);
  void emit_loop_kind(const tir::ForNode& loop, std::optional<int64_t> count);
  void emit_copies(const tir::ForNode& loop, int64_t count);
  void emit_loop(llvm::Value* begin, llvm::Value* extent, const tir::ForNode& loop, const char* hint);
  void emit_parallel(const tir::ForNode& loop);
  void emit_parallel_call(const tir::ForNode& loop, llvm::Value* begin, llvm::Value* extent);
  void emit_if(const tir::IfThenElseNode& branch);
  void emit_allocate(const tir::AllocateNode& allocation);
  void emit_assert(const tir::AssertNode& check);

  // expression.cc
  llvm::Value* emit(const PrimExpr& e);
  llvm::Value* emit_inner(const PrimExpr& e);
  llvm::Value* emit_binary(const BinaryNode& e);
  llvm::Value* emit_float_division(BinaryOp op, llvm::Value* a, llvm::Value* b, DataType dtype);
  llvm::Value* emit_ramp(const RampNode& e);

  // memory.cc
  enum class AccessKind : uint8_t { scalar, consecutive, alternate, scattered };  // alternate: every second element
  struct Access {
    llvm::Value* pointer;  // the buffer's first element
    llvm::Value* offset;   // elements from there, i64; a vector of them when scattered
    int lanes;
    AccessKind kind;
  };
  struct Place {
    llvm::Value* pointer;
    llvm::Value* offset;
    DataType element;
  };
  llvm::Value* index(const PrimExpr& e);
  Access access(const Buffer& buffer, const Array<PrimExpr>& indices, bool is_load = false);
  Place place_of(const PrimExpr& e, DataType element);
  llvm::Value* data_of(const Buffer& buffer) const;
  llvm::Value* element_pointer(llvm::Value* base, DataType element, llvm::Value* offset);
  llvm::Value* load_consecutive(DataType dtype, llvm::Value* pointer);
  llvm::Value* load_alternate(DataType dtype, llvm::Value* pointer);
  llvm::Value* emit_load(const BufferLoadNode& e);
  void emit_store(const tir::BufferStoreNode& store);

  // number.cc
  llvm::Type* register_type(DataType dtype);
  llvm::Type* memory_type(DataType dtype);
  llvm::Type* vector_of(llvm::Type* element, int lanes);
  llvm::Value* splat(llvm::Value* scalar, llvm::Type* type);
  llvm::Value* cast(llvm::Value* value, DataType from, DataType to);
  llvm::Value* from_memory(llvm::Value* raw, DataType dtype);
  llvm::Value* to_memory(llvm::Value* value, DataType dtype);
  // Rounds a float to float16 or bfloat16, or to the code of a narrow float; no change for other types.
  llvm::Value* round_to(llvm::Value* value, DataType dtype);
  llvm::Value* half_bits(llvm::Value* value);
  llvm::Value* half_value(llvm::Value* bits);
  llvm::Value* bfloat_bits(llvm::Value* value);
  llvm::Value* narrow_code(llvm::Value* value, DataType dtype);
  llvm::Value* narrow_value(llvm::Value* code, DataType dtype);
  llvm::Value* cut_to_bits(llvm::Value* value, DataType from, DataType to);
  llvm::Value* narrow_to_odd(llvm::Value* value);
  llvm::Value* fold_low_bits(llvm::Value* value, bool is_signed);
  llvm::Value* divide(BinaryOp op, const PrimExpr& divisor_expr, llvm::Value* a, llvm::Value* b, bool is_signed);
  llvm::Value* min_max(BinaryOp op, llvm::Value* a, llvm::Value* b, DataType dtype);
  llvm::Constant* same_bits(llvm::Type* type, uint64_t bits);

  // intrinsic.cc: what each row of its table emits. `args` are the operands; float16 and bfloat16 arrive as float. They
  // are empty for rows that emit their operands themselves.
  using Args = std::vector<llvm::Value*>;
  struct IntrinsicTable;
  llvm::Value* emit_intrinsic(const IntrinsicCallNode& e);
  llvm::Value* emit_abs(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_rsqrt(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_isnan(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_isinf(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_power(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_bitwise(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_shift(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_reinterpret(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_reduce_add(const IntrinsicCallNode& e, const Args& args);
  llvm::Value* emit_vector_load(const IntrinsicCallNode& e, const Args&);
  llvm::Value* emit_prefetch(const IntrinsicCallNode& e, const Args&);
  llvm::Value* emit_if_then_else(const IntrinsicCallNode& e, const Args&);

  // math.cc
  llvm::Value* call_library(const std::string& name, const std::vector<llvm::Value*>& args);
  llvm::Value* call_lanes(llvm::FunctionCallee callee, const std::vector<llvm::Value*>& args);
  llvm::Function* integer_power(DataType dtype);
  llvm::Value* inverse_power(llvm::Value* base, llvm::Value* exponent);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const NativeTarget& target_;
  llvm::IRBuilder<> ir_;
  tir::WorkspaceLayout workspace_;
  std::string symbol_;
  int parts_ = 0;
  bool no_alias_ = false;
  bool is_outermost_ = true;  // no loop and no register around the statement at hand
  llvm::Value* env_ = nullptr;
  llvm::Value* tensors_ = nullptr;                     // the arguments, in the frame of a kernel that has many
  std::unordered_map<const Object*, size_t> numbers_;  // numbers of the parameters
  // The names in scope, in the order of binding; code outlined for a parallel loop gets those that it uses.
  std::vector<const Object*> scope_;
  std::unordered_map<const Object*, llvm::Value*> values_;
  // The lanes whose loads may access memory; null for all.
  llvm::Value* mask_ = nullptr;
  // The values that the current statement has computed already.
  std::unordered_map<const Object*, llvm::Value*> memo_;
};

}  // namespace headrace::codegen::llvm_plugin
