#include "lower/stage_group.h"

#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

// Iterations of the shared loops that make them worth it: threads want parts.
constexpr int64_t kMinShared = 16;
// Elements inside them, for a map: its vectors are full more often than not, and what is written is not read at once,
// with other vectors, while it is still on its way to the cache (depthwise 3x3, 7x7: 30 us apart, 40 us together;
// 14x14: 31 and 28).
constexpr int64_t kMinInside = 128;

using Indices = std::vector<const Array<PrimExpr>*>;

// Where a stage reads `buffer`.
Indices places_read(const ComputeStage& stage, const Buffer& buffer) {
  Indices places;
  for (const PrimExpr& root : {stage.value, stage.epilogue}) {
    if (!root) continue;
    for_each(root, [&](const PrimExpr& e) {
      const auto* load = e.as<BufferLoadNode>();
      if (load != nullptr && load->buffer == buffer) places.push_back(&load->indices);
    });
  }
  return places;
}

bool touches(const ComputeStage& stage, const Buffer& buffer) {
  return stage.output == buffer || !places_read(stage, buffer).empty();
}

// How many leading entries of an index are the stage's own leading axes.
size_t own_axes(const ComputeStage& stage, const std::vector<PrimExpr>& extents, const PrimExpr* begin, size_t count) {
  size_t own = 0;
  for (; own < std::min(count, stage.axes.size()); ++own) {
    const bool is_only_element = is_int(begin[own], 0) && is_int(extents[own], 1);
    if (begin[own] != PrimExpr(stage.axes[own]) && !is_only_element) break;
  }
  return own;
}

// Whether a combination reads everything anew for each element of axis k: else it must keep the axis, for its tiles.
bool reads_move_with(const ComputeStage& stage, size_t k) {
  bool all = true;
  for_each(stage.value, [&](const PrimExpr& e) {
    const auto* load = e.as<BufferLoadNode>();
    if (load == nullptr) return;
    bool moves = false;
    for (const PrimExpr& index : load->indices) {
      moves = moves || to_affine(index, {}).coefficient(stage.axes[k].get()) != 0;
    }
    all = all && moves;
  });
  return all;
}

// The most outer axes that stages begin .. end - 1 have in common, each handing on only elements of the same place.
size_t common_axes(const Compute& compute, size_t begin, size_t end) {
  const std::vector<PrimExpr> first = compute.stages[begin].axis_extents();
  size_t depth = first.size();
  for (size_t i = begin; i < end; ++i) {
    const ComputeStage& stage = compute.stages[i];
    const std::vector<PrimExpr> extents = stage.axis_extents();
    depth = std::min(depth, extents.size());
    for (size_t k = 0; k < depth; ++k) {
      const auto a = as_int(first[k]), b = as_int(extents[k]);
      const bool keeps_axis = stage.combiner != Combiner::none && a != 1 && !reads_move_with(stage, k);
      if (!a || a != b || keeps_axis) depth = k;
    }
    if (stage.is_partial()) depth = std::min(depth, own_axes(stage, extents, stage.place.data(), stage.place.size()));
    for (size_t j = begin; j < i; ++j) {
      for (const Array<PrimExpr>* place : places_read(stage, compute.stages[j].output)) {
        const std::vector<PrimExpr> index = place->to_vector();
        depth = std::min(depth, own_axes(stage, extents, index.data(), index.size()));
      }
    }
  }
  return depth;
}

int64_t product(const std::vector<PrimExpr>& extents, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= as_int(extents[i]).value_or(0);
  return result;
}

// Inner axes stay with the stages until their vectors are full.
size_t useful_depth(const Compute& compute, size_t begin, size_t end) {
  size_t depth = common_axes(compute, begin, end);
  for (size_t i = begin; i < end; ++i) {
    const ComputeStage& stage = compute.stages[i];
    const std::vector<PrimExpr> extents = stage.axis_extents();
    const bool is_map = stage.combiner == Combiner::none;
    while (is_map && depth > 0 && product(extents, depth, extents.size()) < kMinInside) --depth;
  }
  const int64_t shared = product(compute.stages[begin].axis_extents(), 0, depth);
  return shared >= kMinShared ? depth : 0;
}

bool reads_group(const Compute& compute, size_t begin, size_t index) {
  for (size_t j = begin; j < index; ++j) {
    if (!places_read(compute.stages[index], compute.stages[j].output).empty()) return true;
  }
  return false;
}

using Parts = std::unordered_map<const BufferNode*, Buffer>;

std::vector<PrimExpr> index_in_part(const std::vector<PrimExpr>& index, size_t depth) {
  std::vector<PrimExpr> rest(index.begin() + static_cast<std::ptrdiff_t>(depth), index.end());
  if (rest.empty()) rest.push_back(make_int(0));
  return rest;
}

// A stage within the shared loops: its outer axes have the values `outer`, and local buffers are parts of themselves.
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

std::vector<Buffer> local_buffers(const Compute& compute, const StageGroup& group) {
  std::vector<Buffer> local;
  for (size_t i = group.begin; i < group.end; ++i) {
    const Buffer& buffer = compute.stages[i].output;
    bool is_local = std::find(compute.outputs.begin(), compute.outputs.end(), buffer) == compute.outputs.end() &&
                    std::find(local.begin(), local.end(), buffer) == local.end();
    for (size_t j = 0; j < compute.stages.size() && is_local; ++j) {
      is_local = (j >= group.begin && j < group.end) || !touches(compute.stages[j], buffer);
    }
    if (is_local) local.push_back(buffer);
  }
  return local;
}

}  // namespace

StageGroup find_group(const Compute& compute, size_t begin) {
  StageGroup group{.begin = begin, .end = begin + 1, .depth = 0, .local = {}};
  if (compute.stages[begin].is_check()) return group;
  for (size_t end = begin + 1; end < compute.stages.size(); ++end) {
    if (compute.stages[end].is_check() || !reads_group(compute, begin, end)) break;
    const size_t depth = useful_depth(compute, begin, end + 1);
    if (depth == 0) break;
    group.end = end + 1;
    group.depth = depth;
  }
  if (group.depth > 0) group.local = local_buffers(compute, group);
  return group;
}

Stmt group_loops(const Compute& compute, const StageGroup& group, FlatBuffers& buffers,
                 const ScheduleOptions& options) {
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
    parallel = parallel || is_worth_threads(flatten(compute.stages[i], whole), true);
    bodies.push_back(stage_loops(flatten(inner_stage(compute.stages[i], outer, parts), buffers, extents), options));
  }
  Stmt body = make_seq(bodies);
  for (const Buffer& buffer : group.local) {
    body = make_allocate(buffers.line(parts.at(buffer.get())), Scope::workspace, body);
  }
  return nest(loops, parallel, {}, [&](const Values& values) { return substitute(body, values); });
}

}  // namespace headrace::lower
