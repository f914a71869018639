// Emits the frame of a kernel and its statements.
//
// A kernel `f` becomes two functions: `f` unpacks the arguments, and `f.body` has buffers, symbols and captured
// variables as parameters. The body of a parallel loop is outlined in the same way. LLVM inlines the latter into the
// former, and keeps the facts about a parameter (that no other overlaps it).
#include <headrace/kernel_abi.h>

#include <cstddef>
#include <utility>

#include "codegen/captures.h"
#include "codegen/llvm/kernel_builder.h"

namespace headrace::codegen::llvm_plugin {

namespace {

// The status that a kernel returns when an assertion fails.
constexpr uint32_t kAssertFailed = 1;
// A loop to be unrolled is copied here up to this many times; above, LLVM gets a hint instead.
constexpr int64_t kMostCopies = 64;
// Statements that follow one another in one function, outside of loops.
constexpr size_t kMostInARow = 64;
// The most parameters of a function that LLVM is told not to overlap, since it keeps a list of the others for each. The
// body of a kernel with more is not a function of its own.
constexpr size_t kMostToldApart = 128;

llvm::MDNode* loop_hint(llvm::LLVMContext& context, const char* hint) {
  llvm::MDNode* property = llvm::MDNode::get(context, llvm::MDString::get(context, hint));
  llvm::Metadata* enabled[] = {llvm::MDString::get(context, hint),
                               llvm::ConstantAsMetadata::get(llvm::ConstantInt::getTrue(context))};
  if (llvm::StringRef(hint).ends_with("enable")) property = llvm::MDNode::get(context, enabled);
  // A loop's metadata names itself first.
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, property});
  loop->replaceOperandWith(0, loop);
  return loop;
}

}  // namespace

llvm::BasicBlock* KernelBuilder::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, ir_.GetInsertBlock()->getParent());
}

llvm::Value* KernelBuilder::entry_alloca(llvm::Type* type, uint64_t align_bytes) {
  llvm::BasicBlock& entry = ir_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* memory = at_entry.CreateAlloca(type);
  memory->setAlignment(llvm::Align(align_bytes));
  return memory;
}

void KernelBuilder::bind(const Object* key, llvm::Value* value) {
  scope_.push_back(key);
  values_[key] = value;
}

void KernelBuilder::unbind(size_t scope_size) {
  while (scope_.size() > scope_size) {
    values_.erase(scope_.back());
    scope_.pop_back();
  }
}

llvm::Value* KernelBuilder::load_field(llvm::Value* base, uint64_t offset_bytes, llvm::Type* type) {
  return ir_.CreateLoad(type, ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), base, offset_bytes));
}

// Makes an internal function with the parameters env, `leading` and everything in scope, and fills it by `job`. Calls
// it at once with the present values, and returns its status when that is not zero.
void KernelBuilder::make_part(const std::string& name, const std::vector<llvm::Value*>& leading, const Job& job) {
  std::vector<llvm::Value*> arguments = {env_};
  arguments.insert(arguments.end(), leading.begin(), leading.end());
  for (const Object* key : scope_) arguments.push_back(values_.at(key));
  std::vector<llvm::Type*> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  auto* part = llvm::Function::Create(llvm::FunctionType::get(ir_.getInt32Ty(), types, false),
                                      llvm::Function::InternalLinkage, name, module_);
  add_attributes(*part);

  const auto outer_values = values_;
  llvm::Value* outer_env = env_;
  llvm::Value* outer_tensors = std::exchange(tensors_, nullptr);
  llvm::BasicBlock* outer_block = ir_.GetInsertBlock();
  env_ = part->getArg(0);
  for (size_t i = 0; i < scope_.size(); ++i) {
    llvm::Argument* argument = part->getArg(static_cast<unsigned>(1 + leading.size() + i));
    values_[scope_[i]] = argument;
    const bool is_told_apart = no_alias_ && scope_.size() <= kMostToldApart;
    if (is_told_apart && scope_[i]->is_instance<BufferNode>()) argument->addAttr(llvm::Attribute::NoAlias);
  }
  memo_.clear();
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", part));
  job(*part);
  ir_.CreateRet(ir_.getInt32(0));
  values_ = outer_values;
  env_ = outer_env;
  tensors_ = outer_tensors;
  memo_.clear();
  ir_.SetInsertPoint(outer_block);
  return_unless_zero(ir_.CreateCall(part, arguments));
}

void KernelBuilder::add_attributes(llvm::Function& function) {
  function.setDoesNotThrow();
  function.addFnAttr("target-cpu", target_.cpu);
  function.addFnAttr("target-features", target_.features);
  // Use the widest registers, whatever the processor's tuning prefers: kernels are written for them.
  const std::string bits = std::to_string(target_.vector_bits);
  function.addFnAttr("min-legal-vector-width", bits);
  function.addFnAttr("prefer-vector-width", bits);
}

void KernelBuilder::return_unless_zero(llvm::Value* status) {
  llvm::BasicBlock* failed = new_block("failed");
  llvm::BasicBlock* next = new_block("next");
  ir_.CreateCondBr(ir_.CreateICmpEQ(status, ir_.getInt32(0)), next, failed);
  ir_.SetInsertPoint(failed);
  ir_.CreateRet(status);
  ir_.SetInsertPoint(next);
}

// Buffers get their data pointers; a symbol gets its value from the first place that it alone fills.
void KernelBuilder::bind_arguments(const tir::PrimFuncNode& function, llvm::Value* args) {
  auto bind_symbols = [&](const Array<PrimExpr>& dims, llvm::Value* tensor, uint64_t field) {
    for (size_t i = 0; i < dims.size(); ++i) {
      const PrimExpr dim = dims[i];
      if (!dim.is<PrimVarNode>() || values_.contains(dim.get())) continue;
      llvm::Value* numbers = load_field(tensor, field, ir_.getPtrTy());
      llvm::Value* number = load_field(numbers, i * sizeof(int64_t), ir_.getInt64Ty());
      bind(dim.get(), ir_.CreateIntCast(number, register_type(dim->dtype), true));
    }
  };
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Buffer buffer = function.params[i];
    llvm::Value* tensor = load_field(args, i * sizeof(DLTensor*), ir_.getPtrTy());
    numbers_[buffer.get()] = i;
    bind(buffer.get(), load_field(tensor, offsetof(DLTensor, data), ir_.getPtrTy()));
    bind_symbols(buffer->shape, tensor, offsetof(DLTensor, shape));
    bind_symbols(buffer->strides, tensor, offsetof(DLTensor, strides));
  }
}

llvm::Value* KernelBuilder::data_of_argument(llvm::Value* tensors, size_t number) {
  llvm::Value* tensor = load_field(tensors, number * sizeof(DLTensor*), ir_.getPtrTy());
  return load_field(tensor, offsetof(DLTensor, data), ir_.getPtrTy());
}

void KernelBuilder::add(const tir::PrimFuncNode& function) {
  symbol_ = tir::symbol_of(function);
  workspace_ = tir::workspace_of(function);
  const auto no_alias = function.attrs.get("tir.noalias");
  no_alias_ = no_alias.has_value() && no_alias->as<bool>();
  llvm::Type* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getInt32Ty(), {pointer, pointer}, false);
  auto* kernel = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol_, module_);
  HEADRACE_CHECK(kernel->getName() == symbol_, "two functions of a module are named '{}'", symbol_);
  add_attributes(*kernel);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", kernel));
  env_ = kernel->getArg(0);
  bind_arguments(function, kernel->getArg(1));
  if (function.params.size() <= kMostToldApart) {
    make_part(symbol_ + ".body", {}, [&](llvm::Function&) { emit(function.body); });
  } else {
    tensors_ = kernel->getArg(1);
    emit(function.body);
    tensors_ = nullptr;
  }
  ir_.CreateRet(ir_.getInt32(0));
  unbind(0);
}

void KernelBuilder::emit(const tir::Stmt& stmt) {
  // A statement may change what expressions read.
  memo_.clear();
  if (const auto* store = stmt.as<tir::BufferStoreNode>()) {
    emit_store(*store);
  } else if (const auto* seq = stmt.as<tir::SeqNode>()) {
    emit_seq(*seq);
  } else if (const auto* loop = stmt.as<tir::ForNode>()) {
    emit_for(*loop);
  } else if (const auto* branch = stmt.as<tir::IfThenElseNode>()) {
    emit_if(*branch);
  } else if (const auto* let = stmt.as<tir::LetStmtNode>()) {
    const size_t outer = scope_.size();
    bind(let->var.get(), emit(let->value));
    emit(let->body);
    unbind(outer);
  } else if (const auto* allocation = stmt.as<tir::AllocateNode>()) {
    emit_allocate(*allocation);
  } else if (const auto* evaluate = stmt.as<tir::EvaluateNode>()) {
    emit(evaluate->value);
  } else if (const auto* check = stmt.as<tir::AssertNode>()) {
    emit_assert(*check);
  } else {
    throw InternalError(fmt::format("native code cannot be made of a statement {}", stmt->key()));
  }
  memo_.clear();
}

void KernelBuilder::emit_for(const tir::ForNode& loop) {
  const auto count = as_int(loop.extent);
  if (count && *count <= 0) return;
  const bool was_outermost = std::exchange(is_outermost_, false);
  emit_loop_kind(loop, count);
  is_outermost_ = was_outermost;
}

void KernelBuilder::emit_loop_kind(const tir::ForNode& loop, std::optional<int64_t> count) {
  switch (loop.kind) {
    case tir::ForKind::parallel:
      return emit_parallel(loop);
    case tir::ForKind::unrolled:
      if (count && *count <= kMostCopies) return emit_copies(loop, *count);
      return emit_loop(emit(loop.begin), emit(loop.extent), loop, "llvm.loop.unroll.full");
    case tir::ForKind::vectorized:
      return emit_loop(emit(loop.begin), emit(loop.extent), loop, "llvm.loop.vectorize.enable");
    case tir::ForKind::serial:
      return emit_loop(emit(loop.begin), emit(loop.extent), loop, nullptr);
  }
}

void KernelBuilder::emit_copies(const tir::ForNode& loop, int64_t count) {
  llvm::Value* begin = emit(loop.begin);
  const size_t outer = scope_.size();
  for (int64_t i = 0; i < count; ++i) {
    bind(loop.var.get(), ir_.CreateAdd(begin, llvm::ConstantInt::get(begin->getType(), static_cast<uint64_t>(i))));
    emit(loop.body);
    unbind(outer);
  }
}

void KernelBuilder::emit_loop(llvm::Value* begin, llvm::Value* extent, const tir::ForNode& loop, const char* hint) {
  llvm::Type* type = begin->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  llvm::BasicBlock* body = new_block("loop");
  llvm::BasicBlock* end = new_block("loop.end");
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  ir_.CreateCondBr(ir_.CreateICmpSGT(extent, zero), body, end);
  ir_.SetInsertPoint(body);
  llvm::PHINode* step = ir_.CreatePHI(type, 2);
  step->addIncoming(zero, before);
  const size_t outer = scope_.size();
  bind(loop.var.get(), ir_.CreateAdd(begin, step));
  emit(loop.body);
  unbind(outer);
  llvm::Value* next = ir_.CreateAdd(step, llvm::ConstantInt::get(type, 1), "", true, true);
  step->addIncoming(next, ir_.GetInsertBlock());
  llvm::BranchInst* back = ir_.CreateCondBr(ir_.CreateICmpSLT(next, extent), body, end);
  if (hint != nullptr) back->setMetadata(llvm::LLVMContext::MD_loop, loop_hint(context_, hint));
  ir_.SetInsertPoint(end);
}

// Runs `job` with only the values in scope that `body` uses: parts of a kernel with many arguments use a few. Arguments
// are loaded again where they are used, so that not all of them are live at once.
void KernelBuilder::in_scope_of(const tir::Stmt& body, const std::function<void()>& job) {
  const std::vector<const Object*> outer_scope = scope_;
  auto outer_values = std::move(values_);
  const std::unordered_set<const Object*> used = objects_in(body);
  std::erase_if(scope_, [&](const Object* key) { return !used.contains(key); });
  values_.clear();
  for (const Object* key : scope_) {
    const auto number = numbers_.find(key);
    const bool is_at_hand = tensors_ == nullptr || number == numbers_.end();
    values_[key] = is_at_hand ? outer_values.at(key) : data_of_argument(tensors_, number->second);
  }
  job();
  scope_ = outer_scope;
  values_ = std::move(outer_values);
}

// Emits a sequence. LLVM's scheduler is quadratic in a block's length, so a long row of statements is split into
// functions, except inside loops and around registers, where calls would cost run time.
void KernelBuilder::emit_seq(const tir::SeqNode& seq) {
  const std::vector<tir::Stmt> items(seq.items.begin(), seq.items.end());
  if (!is_outermost_ || items.size() <= kMostInARow) {
    for (const tir::Stmt& item : items) emit(item);
    return;
  }
  for (size_t begin = 0; begin < items.size(); begin += kMostInARow) {
    const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMostInARow, items.size() - begin));
    const tir::Stmt part = tir::make_seq(std::vector<tir::Stmt>(first, first + count));
    in_scope_of(part, [&] {
      make_part(fmt::format("{}.part{}", symbol_, parts_++), {}, [&](llvm::Function& function) {
        function.addFnAttr(llvm::Attribute::NoInline);
        emit(part);
      });
    });
  }
}

// Emits a parallel loop, whose body is a function of its own.
void KernelBuilder::emit_parallel(const tir::ForNode& loop) {
  llvm::Value* begin = emit(loop.begin);
  llvm::Value* extent = ir_.CreateIntCast(emit(loop.extent), ir_.getInt64Ty(), true);
  in_scope_of(loop.body, [&] { emit_parallel_call(loop, begin, extent); });
}

// Emits env->parallel_for(env, entry, closure, extent), where the closure holds the loop's begin and everything in
// scope.
void KernelBuilder::emit_parallel_call(const tir::ForNode& loop, llvm::Value* begin, llvm::Value* extent) {
  std::vector<llvm::Type*> types = {begin->getType()};
  for (const Object* key : scope_) types.push_back(values_.at(key)->getType());
  llvm::StructType* closure_type = llvm::StructType::get(context_, types);
  llvm::Value* closure = entry_alloca(closure_type, HR_ALIGNMENT);
  ir_.CreateStore(begin, ir_.CreateStructGEP(closure_type, closure, 0));
  for (unsigned i = 0; i < scope_.size(); ++i) {
    ir_.CreateStore(values_.at(scope_[i]), ir_.CreateStructGEP(closure_type, closure, i + 1));
  }
  llvm::Function* entry = make_parallel_entry(fmt::format("{}.parallel{}", symbol_, parts_++), closure_type, loop);

  llvm::BasicBlock* run = new_block("parallel");
  llvm::BasicBlock* end = new_block("parallel.end");
  ir_.CreateCondBr(ir_.CreateICmpSGT(extent, ir_.getInt64(0)), run, end);
  ir_.SetInsertPoint(run);
  llvm::Type* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getInt32Ty(), {pointer, pointer, pointer, ir_.getInt64Ty()}, false);
  llvm::Value* parallel_for = load_field(env_, offsetof(hr_kernel_env, parallel_for), pointer);
  return_unless_zero(ir_.CreateCall(type, parallel_for, {env_, entry, closure, extent}));
  ir_.CreateBr(end);
  ir_.SetInsertPoint(end);
}

// Makes an hr_parallel_body, which unpacks the closure and runs its part of the iterations.
llvm::Function* KernelBuilder::make_parallel_entry(const std::string& name, llvm::StructType* closure,
                                                   const tir::ForNode& loop) {
  llvm::Type* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getInt32Ty(), {pointer, pointer, ir_.getInt64Ty(), ir_.getInt64Ty()}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module_);
  add_attributes(*entry);
  const auto outer_values = values_;
  llvm::Value* outer_env = env_;
  llvm::BasicBlock* outer_block = ir_.GetInsertBlock();
  env_ = entry->getArg(0);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", entry));
  auto field = [&](unsigned i) {
    return ir_.CreateLoad(closure->getElementType(i), ir_.CreateStructGEP(closure, entry->getArg(1), i));
  };
  for (unsigned i = 0; i < scope_.size(); ++i) values_[scope_[i]] = field(i + 1);
  llvm::Type* index_type = closure->getElementType(0);
  llvm::Value* first = ir_.CreateAdd(field(0), ir_.CreateIntCast(entry->getArg(2), index_type, true));
  llvm::Value* count = ir_.CreateIntCast(ir_.CreateSub(entry->getArg(3), entry->getArg(2)), index_type, true);
  make_part(name + ".body", {first, count},
            [&](llvm::Function& part) { emit_loop(part.getArg(1), part.getArg(2), loop, nullptr); });
  ir_.CreateRet(ir_.getInt32(0));
  values_ = outer_values;
  env_ = outer_env;
  ir_.SetInsertPoint(outer_block);
  return entry;
}

void KernelBuilder::emit_if(const tir::IfThenElseNode& branch) {
  llvm::Value* condition = emit(branch.condition);
  llvm::BasicBlock* then_block = new_block("then");
  llvm::BasicBlock* else_block = branch.else_case ? new_block("else") : nullptr;
  llvm::BasicBlock* join = new_block("join");
  ir_.CreateCondBr(condition, then_block, else_block == nullptr ? join : else_block);
  ir_.SetInsertPoint(then_block);
  emit(branch.then_case);
  ir_.CreateBr(join);
  if (else_block != nullptr) {
    ir_.SetInsertPoint(else_block);
    emit(branch.else_case);
    ir_.CreateBr(join);
  }
  ir_.SetInsertPoint(join);
}

void KernelBuilder::emit_allocate(const tir::AllocateNode& allocation) {
  const BufferNode& buffer = *allocation.buffer;
  llvm::Value* memory = nullptr;
  if (allocation.scope == tir::Scope::registers) {
    const uint64_t count = tir::size_bytes_of(buffer) / buffer.dtype.bytes();
    memory = entry_alloca(llvm::ArrayType::get(memory_type(buffer.dtype), count), HR_ALIGNMENT);
  } else {
    llvm::Value* block = load_field(env_, offsetof(hr_kernel_env, workspace), ir_.getPtrTy());
    const uint64_t offset_bytes = workspace_.offset_bytes.at(&buffer);
    memory = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), block, offset_bytes);
  }
  const size_t outer = scope_.size();
  const bool was_outermost = is_outermost_;
  is_outermost_ = was_outermost && allocation.scope != tir::Scope::registers;
  bind(&buffer, memory);
  emit(allocation.body);
  unbind(outer);
  is_outermost_ = was_outermost;
}

void KernelBuilder::emit_assert(const tir::AssertNode& check) {
  llvm::Value* condition = emit(check.condition);
  llvm::BasicBlock* failed = new_block("assert");
  llvm::BasicBlock* next = new_block("next");
  ir_.CreateCondBr(condition, next, failed);
  ir_.SetInsertPoint(failed);
  llvm::Value* text = ir_.CreateGlobalString(check.message, symbol_ + ".message");
  ir_.CreateCall(message_writer(), {env_, text, ir_.getInt64(check.message.size())});
  ir_.CreateRet(ir_.getInt32(kAssertFailed));
  ir_.SetInsertPoint(next);
}

// Makes void (env, text, length), which copies the text into the host's buffer as far as it fits, and terminates it.
llvm::Function* KernelBuilder::message_writer() {
  constexpr const char* kName = "headrace.write_message";
  if (llvm::Function* made = module_.getFunction(kName)) return made;
  llvm::Type* pointer = ir_.getPtrTy();
  llvm::Type* number = ir_.getInt64Ty();
  auto* function = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), {pointer, pointer, number}, false),
                                          llvm::Function::InternalLinkage, kName, module_);
  add_attributes(*function);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  const llvm::IRBuilder<>::InsertPointGuard guard(ir_);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function));
  llvm::Value* text = function->getArg(1);
  llvm::Value* buffer = load_field(function->getArg(0), offsetof(hr_kernel_env, message), pointer);
  llvm::Value* size = load_field(function->getArg(0), offsetof(hr_kernel_env, message_size), number);
  llvm::BasicBlock* write = new_block("write");
  llvm::BasicBlock* end = new_block("end");
  llvm::Value* nobody = ir_.CreateOr(ir_.CreateIsNull(buffer), ir_.CreateICmpEQ(size, ir_.getInt64(0)));
  ir_.CreateCondBr(nobody, end, write);
  ir_.SetInsertPoint(write);
  llvm::Value* room = ir_.CreateSub(size, ir_.getInt64(1));
  llvm::Value* count = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, room, function->getArg(2));
  ir_.CreateMemCpy(buffer, llvm::MaybeAlign(1), text, llvm::MaybeAlign(1), count);
  ir_.CreateStore(ir_.getInt8(0), ir_.CreateInBoundsGEP(ir_.getInt8Ty(), buffer, count));
  ir_.CreateBr(end);
  ir_.SetInsertPoint(end);
  ir_.CreateRetVoid();
  return function;
}

}  // namespace headrace::codegen::llvm_plugin
