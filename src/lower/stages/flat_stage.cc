#include "lower/stages/flat_stage.h"

#include <unordered_set>

#include "tir/rewrite.h"

namespace headrace::lower {

namespace {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

int64_t extent_of(const PrimExpr& dim) {
  const auto value = as_int(dim);
  HEADRACE_CHECK(value.has_value(), "a schedule needs static shapes, not {}", to_string(dim));
  return *value;
}

// The two lists of axes of a stage: those of the result, those that are reduced.
struct AxisList {
  std::vector<PrimVar>& axes;
  std::vector<int64_t>& extents;
};

void replace_everywhere(FlatStage& stage, const Values& values) {
  stage.place = substitute(stage.place, values);
  stage.value = substitute(stage.value, values);
  if (stage.epilogue) stage.epilogue = substitute(stage.epilogue, values);
}

Extents extents_of(const FlatStage& stage) {
  Extents extents;
  for (size_t i = 0; i < stage.axes.size(); ++i) extents[stage.axes[i].get()] = stage.extents[i];
  for (size_t i = 0; i < stage.reduce_axes.size(); ++i) extents[stage.reduce_axes[i].get()] = stage.reduce_extents[i];
  return extents;
}

PrimExpr flatten_loads(const PrimExpr& root, FlatBuffers& buffers, const Extents& extents) {
  if (!root) return root;
  return tir::rewrite(root, [&](const PrimExpr& e) {
    const auto* load = e.as<BufferLoadNode>();
    if (load == nullptr) return e;
    const Affine index = linear_index(load->buffer, load->indices, extents);
    return make_load(buffers.line(load->buffer), {index.to_expr()});
  });
}

void drop_single(FlatStage& stage, AxisList list) {
  Values zeros;
  for (size_t i = list.axes.size(); i-- > 0;) {
    if (list.extents[i] != 1) continue;
    zeros[list.axes[i].get()] = make_int(0);
    list.axes.erase(list.axes.begin() + static_cast<std::ptrdiff_t>(i));
    list.extents.erase(list.extents.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!zeros.empty()) replace_everywhere(stage, zeros);
}

// Variables that stand anywhere but as a term of an index.
std::unordered_set<const PrimVarNode*> loose_variables(const FlatStage& stage) {
  std::unordered_set<const PrimVarNode*> loose;
  const auto add_all = [&](const PrimExpr& e) {
    tir::for_each(e, [&](const PrimExpr& inner) {
      if (const auto* var = inner.as<PrimVarNode>()) loose.insert(var);
    });
  };
  for (const PrimExpr& root : {stage.value, stage.epilogue}) {
    if (!root) continue;
    add_all(tir::rewrite(root, [](const PrimExpr& e) { return e.is<BufferLoadNode>() ? make_const(0, e->dtype) : e; }));
  }
  return loose;
}

// Returns whether axes (outer, inner) walk every access as one axis would.
bool walk_as_one(const std::vector<Affine>& indices, const PrimVarNode* outer, const PrimVarNode* inner,
                 int64_t inner_extent) {
  return std::all_of(indices.begin(), indices.end(), [&](const Affine& index) {
    return !index.hides(outer) && !index.hides(inner) &&
           index.coefficient(outer) == index.coefficient(inner) * inner_extent;
  });
}

void merge_axes(FlatStage& stage, AxisList list) {
  std::vector<Affine> indices{to_affine(stage.place, {})};
  for (const PrimExpr& root : {stage.value, stage.epilogue}) {
    if (!root) continue;
    for (Access& access : accesses_of(root)) indices.push_back(std::move(access.index));
  }
  const auto loose = loose_variables(stage);
  Values values;
  for (size_t i = list.axes.size(); i-- > 1;) {
    const PrimVarNode *outer = list.axes[i - 1].get(), *inner = list.axes[i].get();
    if (loose.contains(outer) || loose.contains(inner)) continue;
    if (!walk_as_one(indices, outer, inner, list.extents[i])) continue;
    // The inner axis takes over: the outer one stands at 0.
    values[outer] = make_int(0);
    list.extents[i - 1] *= list.extents[i];
    list.axes[i - 1] = list.axes[i];
    list.axes.erase(list.axes.begin() + static_cast<std::ptrdiff_t>(i));
    list.extents.erase(list.extents.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!values.empty()) replace_everywhere(stage, values);
}

// Returns the divisor of a quotient (or remainder) of this axis in some index; 0 when there is none.
int64_t divisor_of(const FlatStage& stage, const PrimVar& axis, BinaryOp op) {
  int64_t divisor = 0;
  tir::for_each(stage.value, [&](const PrimExpr& e) {
    const auto* quotient = e.as<BinaryNode>();
    if (quotient == nullptr || quotient->op != op || quotient->a != PrimExpr(axis)) return;
    divisor = as_int(quotient->b).value_or(0);
  });
  return divisor;
}

// Returns the size of the groups into which an axis is taken apart; 0 for none. The last axis stays, for vectors,
// unless what it reads lies in groups, too:  w[o / 16, k, o % 16].
int64_t group_size(const FlatStage& stage, size_t i) {
  const int64_t size = divisor_of(stage, stage.axes[i], BinaryOp::floor_div);
  const bool is_last = i + 1 == stage.axes.size();
  return is_last && divisor_of(stage, stage.axes[i], BinaryOp::floor_mod) != size ? 0 : size;
}

// Takes an axis of a reduction apart where something is read once a group of its elements, so that loops see what these
// share:  x[o / 4]  ->  x[g]  with  o = g * 4 + p.
void split_groups(FlatStage& stage) {
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    const PrimVar axis = stage.axes[i];
    const int64_t size = group_size(stage, i);
    if (size <= 1 || size >= stage.extents[i] || stage.extents[i] % size != 0) continue;
    const PrimVar group = make_prim_var(axis->name_hint + "_group"), member = make_prim_var(axis->name_hint);
    stage.axes[i] = group;
    stage.axes.insert(stage.axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, member);
    stage.extents.insert(stage.extents.begin() + static_cast<std::ptrdiff_t>(i) + 1, size);
    stage.extents[i] /= size;
    replace_everywhere(stage, {{axis.get(), group * size + member}});
    const Extents extents = extents_of(stage);
    const auto simplified = [&](const PrimExpr& root) {
      return tir::rewrite(root, [&](const PrimExpr& e) {
        const auto* load = e.as<BufferLoadNode>();
        return load == nullptr ? e : make_load(load->buffer, {to_affine(load->indices[0], extents).to_expr()});
      });
    };
    stage.value = simplified(stage.value);
    if (stage.epilogue) stage.epilogue = simplified(stage.epilogue);
    stage.place = to_affine(stage.place, extents).to_expr();
    ++i;
  }
}

}  // namespace

Buffer FlatBuffers::line(const Buffer& buffer) {
  Buffer& line = lines_[buffer.get()];
  if (!line) {
    int64_t count = 1;
    for (const PrimExpr& dim : buffer->shape) count *= extent_of(dim);
    line = make_buffer(buffer->name, buffer->dtype, to_dims({count}));
  }
  return line;
}

std::vector<Access> accesses_of(const PrimExpr& e) {
  std::vector<Access> accesses;
  tir::for_each(e, [&](const PrimExpr& inner) {
    if (const auto* load = inner.as<BufferLoadNode>()) accesses.push_back({load, to_affine(load->indices[0], {})});
  });
  return accesses;
}

FlatStage flatten(const tir::ComputeStage& stage, FlatBuffers& buffers) { return flatten(stage, buffers, {}); }

FlatStage flatten(const tir::ComputeStage& stage, FlatBuffers& buffers, const Extents& outer) {
  FlatStage flat;
  flat.is_part = !outer.empty();
  flat.axes = stage.axes;
  for (const PrimExpr& dim : stage.axis_extents()) flat.extents.push_back(extent_of(dim));
  flat.reduce_axes = stage.reduce_axes;
  for (const PrimExpr& dim : stage.reduce_extents) flat.reduce_extents.push_back(extent_of(dim));
  flat.combiner = stage.combiner;
  flat.init = stage.init;
  flat.reduced = stage.reduced;
  Extents extents = extents_of(flat);
  extents.insert(outer.begin(), outer.end());
  flat.place = make_int(0);
  if (!stage.is_check()) {
    const std::vector<PrimExpr> own(stage.axes.begin(), stage.axes.end());
    flat.output = buffers.line(stage.output);
    flat.place = linear_index(stage.output, Array<PrimExpr>(stage.is_partial() ? stage.place : own), extents).to_expr();
  }
  flat.value = flatten_loads(stage.value, buffers, extents);
  flat.epilogue = flatten_loads(stage.epilogue, buffers, extents);
  drop_single(flat, {flat.axes, flat.extents});
  drop_single(flat, {flat.reduce_axes, flat.reduce_extents});
  if (stage.combiner != tir::Combiner::none) split_groups(flat);
  merge_axes(flat, {flat.axes, flat.extents});
  if (stage.combiner != tir::Combiner::none) merge_axes(flat, {flat.reduce_axes, flat.reduce_extents});
  return flat;
}

}  // namespace headrace::lower
