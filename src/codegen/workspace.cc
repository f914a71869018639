#include "codegen/workspace.h"

#include <headrace/kernel_abi.h>

#include <algorithm>

namespace headrace::codegen {

uint64_t size_bytes_of(const BufferNode& buffer) {
  uint64_t count = 1;
  for (const PrimExpr& dim : buffer.shape) {
    const auto extent = as_int(dim);
    HEADRACE_CHECK(extent.has_value() && *extent >= 0, "buffer '{}' has no constant shape", buffer.name);
    HEADRACE_CHECK(!__builtin_mul_overflow(count, static_cast<uint64_t>(*extent), &count), "buffer '{}' is too large",
                   buffer.name);
  }
  HEADRACE_CHECK(!__builtin_mul_overflow(count, buffer.dtype.bytes(), &count), "buffer '{}' is too large", buffer.name);
  return count;
}

namespace {

void visit(const tir::Stmt& stmt, uint64_t top, WorkspaceLayout& layout) {
  if (const auto* seq = stmt.as<tir::SeqNode>()) {
    for (const tir::Stmt& item : seq->items) visit(item, top, layout);
  } else if (const auto* loop = stmt.as<tir::ForNode>()) {
    visit(loop->body, top, layout);
  } else if (const auto* let = stmt.as<tir::LetStmtNode>()) {
    visit(let->body, top, layout);
  } else if (const auto* branch = stmt.as<tir::IfThenElseNode>()) {
    visit(branch->then_case, top, layout);
    if (branch->else_case) visit(branch->else_case, top, layout);
  } else if (const auto* allocation = stmt.as<tir::AllocateNode>()) {
    if (allocation->scope == tir::Scope::workspace) {
      layout.offset_bytes[allocation->buffer.get()] = top;
      top += (size_bytes_of(*allocation->buffer) + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT;
      layout.size_bytes = std::max(layout.size_bytes, top);
    }
    visit(allocation->body, top, layout);
  }
}

}  // namespace

WorkspaceLayout layout_workspace(const tir::PrimFuncNode& function) {
  WorkspaceLayout layout;
  visit(function.body, 0, layout);
  return layout;
}

}  // namespace headrace::codegen
