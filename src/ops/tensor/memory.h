// The ops of destination passing: where values live and which call writes them. plan/ makes them; emitters read them.
//
//   let %s = memory.alloc_storage(size=256, alignment=64);             // 256 bytes, as a tensor of uint8
//   let %y = memory.view(%s, byte_offset=0, shape=[8, 8], dtype="float32");
//   let %_ = call_dps(@kernel, (%x,), (%y,));                          // writes what @kernel(%x) gives into %y
//   let %_ = memory.kill(%s);                                          // %s may be reused from here on
//
// They have effects, so they stand in lets and keep their order.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct AllocStorageAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AllocStorageAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<AllocStorageAttrs>& f);
  int64_t size = 0;
  int64_t alignment = 64;
  std::string location = "cpu:0";
};

struct MemoryViewAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MemoryViewAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MemoryViewAttrs>& f);
  int64_t byte_offset = 0;
  Shape shape;
  DataType dtype;
  Shape strides;
};

Expr alloc_storage(int64_t size, std::string location = "cpu:0", Span span = {});
// Makes a view of `base`, a storage or any other tensor, in another shape. Strides count elements; empty: dense.
Expr memory_view(Expr base, int64_t byte_offset, Shape shape, DataType dtype, Shape strides = {}, Span span = {});
Expr memory_kill(Expr storage, Span span = {});
Expr memory_copy(Expr source, Expr destination, Span span = {});
// Makes a call of `function`, which takes the tensors `inputs` and returns one tensor, or a tuple of as many as there
// are outputs.
Expr call_dps(Expr function, Array<Expr> inputs, Array<Expr> outputs, Span span = {});

}  // namespace headrace::ops
