// Loads and stores of buffers.
#include "codegen/llvm/kernel_builder.h"

namespace headrace::codegen::llvm_plugin {

// Emits an index as a number of elements, in 64 bits.
llvm::Value* KernelBuilder::index(const PrimExpr& e) {
  llvm::Type* type = vector_of(ir_.getInt64Ty(), e->dtype.lanes());
  return ir_.CreateIntCast(emit(e), type, !e->dtype.is_uint());
}

static llvm::Align alignment_of(DataType dtype) { return llvm::Align(dtype.element().bytes()); }

llvm::Value* KernelBuilder::element_pointer(llvm::Value* base, DataType element, llvm::Value* offset) {
  return ir_.CreateInBoundsGEP(memory_type(element.element()), base, offset);
}

llvm::Value* KernelBuilder::data_of(const Buffer& buffer) const {
  auto it = values_.find(buffer.get());
  HEADRACE_CHECK(it != values_.end(), "buffer '{}' of '{}' is neither a parameter nor allocated around its use",
                 buffer->name, symbol_);
  return it->second;
}

KernelBuilder::Access KernelBuilder::access(const Buffer& buffer, const Array<PrimExpr>& indices, bool is_load) {
  Access result{.pointer = data_of(buffer), .offset = ir_.getInt64(0), .lanes = 1, .kind = AccessKind::scalar};
  const size_t rank = indices.size();
  std::vector<llvm::Value*> values;
  for (size_t i = 0; i < rank; ++i) {
    PrimExpr it = indices[i];
    result.lanes = std::max(result.lanes, it->dtype.lanes());
    const bool last = i + 1 == rank;
    const bool unit = buffer->strides.empty() || (last && is_int(buffer->strides[i], 1));
    const auto* ramp = it.as<RampNode>();
    if (last && unit && ramp != nullptr && is_int(ramp->stride, 1) && result.kind == AccessKind::scalar) {
      result.kind = AccessKind::consecutive;
      it = ramp->base;
    } else if (is_load && last && unit && ramp != nullptr && is_int(ramp->stride, 2) &&
               result.kind == AccessKind::scalar) {
      result.kind = AccessKind::alternate;
      it = ramp->base;
    } else if (const auto* same = it.as<BroadcastNode>()) {
      it = same->value;
    } else if (it->dtype.lanes() > 1) {
      result.kind = AccessKind::scattered;
    }
    values.push_back(index(it));
  }
  llvm::Type* type = ir_.getInt64Ty();
  if (result.kind == AccessKind::scattered) type = vector_of(type, result.lanes);
  llvm::Value* offset = llvm::Constant::getNullValue(type);
  for (size_t i = 0; i < rank; ++i) {
    llvm::Value* value = splat(values[i], type);
    if (buffer->strides.empty()) {
      offset = ir_.CreateAdd(ir_.CreateMul(offset, splat(index(buffer->shape[i]), type)), value);
    } else {
      offset = ir_.CreateAdd(offset, ir_.CreateMul(value, splat(index(buffer->strides[i]), type)));
    }
  }
  result.offset = offset;
  return result;
}

llvm::Value* KernelBuilder::load_consecutive(DataType dtype, llvm::Value* pointer) {
  llvm::Type* type = memory_type(dtype);
  if (mask_ == nullptr) return from_memory(ir_.CreateAlignedLoad(type, pointer, alignment_of(dtype)), dtype);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  if (type->isVectorTy()) {
    return from_memory(ir_.CreateMaskedLoad(type, pointer, alignment_of(dtype), mask_, zero), dtype);
  }
  // One element for all lanes: read when any lane wants it.
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* read = new_block("read");
  llvm::BasicBlock* join = new_block("read.end");
  ir_.CreateCondBr(ir_.CreateOrReduce(mask_), read, join);
  ir_.SetInsertPoint(read);
  llvm::Value* value = ir_.CreateAlignedLoad(type, pointer, alignment_of(dtype));
  ir_.CreateBr(join);
  ir_.SetInsertPoint(join);
  llvm::PHINode* phi = ir_.CreatePHI(type, 2);
  phi->addIncoming(zero, before);
  phi->addIncoming(value, read);
  return from_memory(phi, dtype);
}

// Elements 0, 2, 4, ... from `pointer` on, out of two vectors: the first, and one that ends with the last element, so
// that nothing past it is read.
llvm::Value* KernelBuilder::load_alternate(DataType dtype, llvm::Value* pointer) {
  const int lanes = dtype.lanes();
  llvm::Type* type = memory_type(dtype);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  std::vector<int> picked;
  for (int i = 0; i < lanes; ++i) picked.push_back(2 * i < lanes ? 2 * i : lanes + 2 * i - (lanes - 1));
  llvm::Value* halves[2];
  for (int half = 0; half < 2; ++half) {
    llvm::Value* from = half == 0 ? pointer : element_pointer(pointer, dtype, ir_.getInt64(lanes - 1));
    if (mask_ == nullptr) {
      halves[half] = ir_.CreateAlignedLoad(type, from, alignment_of(dtype));
      continue;
    }
    // Loads only the selected elements; lane `lanes` of the shuffle is false.
    std::vector<int> wanted(static_cast<size_t>(lanes), lanes);
    for (int i = 0; i < lanes; ++i) {
      if ((2 * i >= lanes) == (half == 1)) wanted[static_cast<size_t>(picked[static_cast<size_t>(i)] % lanes)] = i;
    }
    llvm::Value* none = llvm::Constant::getNullValue(mask_->getType());
    halves[half] =
        ir_.CreateMaskedLoad(type, from, alignment_of(dtype), ir_.CreateShuffleVector(mask_, none, wanted), zero);
  }
  return from_memory(ir_.CreateShuffleVector(halves[0], halves[1], picked), dtype);
}

llvm::Value* KernelBuilder::emit_load(const BufferLoadNode& e) {
  const Access at = access(e.buffer, e.indices, true);
  const DataType element = e.buffer->dtype;
  llvm::Value* pointer = element_pointer(at.pointer, element, at.offset);
  if (at.kind == AccessKind::scattered) {
    llvm::Value* raw = ir_.CreateMaskedGather(memory_type(e.dtype), pointer, alignment_of(element), mask_,
                                              llvm::Constant::getNullValue(memory_type(e.dtype)));
    return from_memory(raw, e.dtype);
  }
  if (at.kind == AccessKind::consecutive) return load_consecutive(e.dtype, pointer);
  if (at.kind == AccessKind::alternate) return load_alternate(e.dtype, pointer);
  return splat(load_consecutive(element, pointer), register_type(e.dtype));
}

void KernelBuilder::emit_store(const tir::BufferStoreNode& store) {
  const DataType element = store.buffer->dtype;
  llvm::Value* value = to_memory(emit(store.value), store.value->dtype);
  const Access at = access(store.buffer, store.indices);
  llvm::Value* pointer = element_pointer(at.pointer, element, at.offset);
  if (at.kind == AccessKind::scattered) {
    ir_.CreateMaskedScatter(value, pointer, alignment_of(element));
    return;
  }
  // A vector stored to one place leaves its last lane there.
  if (at.kind == AccessKind::scalar && store.value->dtype.lanes() > 1) {
    value = ir_.CreateExtractElement(value, static_cast<uint64_t>(store.value->dtype.lanes() - 1));
  }
  ir_.CreateAlignedStore(value, pointer, alignment_of(element));
}

// Returns the place that an intrinsic's pointer argument means: a variable of type handle, or a load of that place.
KernelBuilder::Place KernelBuilder::place_of(const PrimExpr& e, DataType element) {
  if (const auto* load = e.as<BufferLoadNode>()) {
    const Access at = access(load->buffer, load->indices);
    HEADRACE_CHECK(at.kind == AccessKind::scalar, "the place '{}' is a vector of places", to_string(e));
    return {at.pointer, at.offset, load->buffer->dtype};
  }
  HEADRACE_CHECK(e->dtype.is_handle(), "'{}' is not a pointer", to_string(e));
  return {emit(e), ir_.getInt64(0), element};
}

}  // namespace headrace::codegen::llvm_plugin
