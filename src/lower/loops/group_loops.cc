#include "lower/loops/group_loops.h"

#include "lower/loops/stage_loops.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

using Parts = std::unordered_map<const BufferNode*, Buffer>;

std::vector<PrimExpr> index_in_part(const std::vector<PrimExpr>& index, size_t depth) {
  std::vector<PrimExpr> rest(index.begin() + static_cast<std::ptrdiff_t>(depth), index.end());
  if (rest.empty()) rest.push_back(make_int(0));
  return rest;
}

// Makes a stage inside the shared loops: its outer axes have the values `outer`, and local buffers have only their
// inner part.
ComputeStage inner_stage(const ComputeStage& stage, const std::vector<PrimExpr>& outer, const Parts& parts) {
  const auto depth = static_cast<std::ptrdiff_t>(outer.size());
  Values values;
  for (size_t k = 0; k < outer.size(); ++k) values[stage.axes[k].get()] = outer[k];
  const auto inside = [&](const PrimExpr& root) {
    if (!root) return root;
    return substitute(rewrite(root,
                              [&](const PrimExpr& e) {
                                const auto* load = e.as<BufferLoadNode>();
                                const auto part = load == nullptr ? parts.end() : parts.find(load->buffer.get());
                                if (part == parts.end()) return e;
                                const std::vector<PrimExpr> index = load->indices.to_vector();
                                return make_load(part->second, Array<PrimExpr>(index_in_part(index, outer.size())));
                              }),
                      values);
  };
  ComputeStage inner = stage;
  inner.value = inside(stage.value);
  inner.epilogue = inside(stage.epilogue);
  inner.place.clear();
  const std::vector<PrimExpr> own(stage.axes.begin(), stage.axes.end());
  for (const PrimExpr& index : stage.is_partial() ? stage.place : own) inner.place.push_back(substitute(index, values));
  const auto part = parts.find(stage.output.get());
  if (part != parts.end()) {
    inner.output = part->second;
    inner.place = index_in_part(inner.place, outer.size());
  }
  const std::vector<PrimExpr> extents = stage.axis_extents();
  inner.axes.assign(stage.axes.begin() + depth, stage.axes.end());
  inner.extents.assign(extents.begin() + depth, extents.end());
  if (inner.axes.empty()) {
    inner.axes = {make_prim_var("one")};
    inner.extents = {make_int(1)};
  }
  return inner;
}

Buffer part_of(const Buffer& buffer, size_t depth) {
  std::vector<PrimExpr> shape(buffer->shape.begin() + static_cast<std::ptrdiff_t>(depth), buffer->shape.end());
  if (shape.empty()) shape.push_back(make_int(1));
  return make_buffer(buffer->name, buffer->dtype, Array<PrimExpr>(shape));
}

}  // namespace

Stmt group_loops(const Compute& compute, const StageGroup& group, FlatBuffers& buffers, const cost::Machine& machine) {
  Parts parts;
  for (const Buffer& buffer : group.local) parts[buffer.get()] = part_of(buffer, group.depth);
  std::vector<PrimExpr> outer;
  std::vector<Loop> loops;
  Extents extents;
  for (size_t k = 0; k < group.depth; ++k) {
    const ComputeStage& first = compute.stages[group.begin];
    const int64_t extent = *as_int(first.axis_extents()[k]);
    if (extent == 1) {
      outer.push_back(make_int(0));
      continue;
    }
    const PrimVar axis = make_prim_var(first.axes[k]->name_hint);
    outer.push_back(axis);
    loops.push_back({axis, extent});
    extents[axis.get()] = extent;
  }
  bool parallel = false;
  std::vector<Stmt> bodies;
  for (size_t i = group.begin; i < group.end; ++i) {
    FlatBuffers whole;
    parallel = parallel || is_worth_threads(flatten(compute.stages[i], whole), true, machine);
    bodies.push_back(stage_loops(flatten(inner_stage(compute.stages[i], outer, parts), buffers, extents), machine));
  }
  Stmt body = make_seq(bodies);
  for (const Buffer& buffer : group.local) {
    body = make_allocate(buffers.line(parts.at(buffer.get())), Scope::workspace, body);
  }
  return nest(loops, parallel, {}, [&](const Values& values) { return substitute(body, values); });
}

}  // namespace headrace::lower
