#include "codegen/captures.h"

#include "tir/post_order.h"

namespace headrace::codegen {

std::unordered_set<const Object*> objects_in(const tir::Stmt& body) {
  std::unordered_set<const Object*> found;
  std::vector<PrimExpr> roots;
  const auto add_buffer = [&](const Buffer& buffer) {
    if (!found.insert(buffer.get()).second) return;
    roots.insert(roots.end(), buffer->shape.begin(), buffer->shape.end());
    roots.insert(roots.end(), buffer->strides.begin(), buffer->strides.end());
  };
  std::vector<tir::Stmt> open{body};
  while (!open.empty()) {
    const tir::Stmt at = open.back();
    open.pop_back();
    if (!at) continue;
    if (const auto* store = at.as<tir::BufferStoreNode>()) add_buffer(store->buffer);
    for (const PrimExpr& e : tir::expressions_of(at)) roots.push_back(e);
    for (const tir::Stmt& inside : tir::statements_of(at)) open.push_back(inside);
  }
  // Shapes of buffers that are met on the way are added behind.
  for (size_t i = 0; i < roots.size(); ++i) {
    for (const PrimExpr& e : tir::post_order({roots[i]})) {
      if (e.is<PrimVarNode>()) found.insert(e.get());
      if (const auto* load = e.as<BufferLoadNode>()) add_buffer(load->buffer);
    }
  }
  return found;
}

}  // namespace headrace::codegen
