#include "lower/fuse_stages.h"

#include "tir/rewrite.h"

namespace headrace::lower {

using tir::Compute;
using tir::ComputeStage;

namespace {

bool is_reduction(const ComputeStage& stage) { return stage.combiner != tir::Combiner::none; }

bool is_output(const Compute& compute, const Buffer& buffer) {
  return std::find(compute.outputs.begin(), compute.outputs.end(), buffer) != compute.outputs.end();
}

template <typename F>
void for_each_load(const ComputeStage& stage, F&& see) {
  for (const PrimExpr& root : {stage.value, stage.epilogue}) {
    if (!root) continue;
    tir::for_each(root, [&](const PrimExpr& e) {
      if (const auto* load = e.as<BufferLoadNode>()) see(*load);
    });
  }
}

bool same_index(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const PrimExpr& x, const PrimExpr& y) {
    const auto value = as_int(x);
    return x == y || (value && is_int(y, *value));
  });
}

// The places that a stage reads of a buffer: loads with the same index are one.
std::vector<Array<PrimExpr>> places_read(const ComputeStage& stage, const Buffer& buffer) {
  std::vector<Array<PrimExpr>> places;
  for_each_load(stage, [&](const BufferLoadNode& load) {
    if (load.buffer != buffer) return;
    const auto same = [&](const Array<PrimExpr>& other) { return same_index(other, load.indices); };
    if (std::none_of(places.begin(), places.end(), same)) places.push_back(load.indices);
  });
  return places;
}

size_t count_loads(const ComputeStage& stage, const Buffer& buffer) { return places_read(stage, buffer).size(); }

// Drops stages that no output needs.
void drop_unread(Compute& compute) {
  for (size_t i = compute.stages.size(); i-- > 0;) {
    const Buffer& buffer = compute.stages[i].output;
    bool is_read = compute.stages[i].is_check() || is_output(compute, buffer);
    for (size_t j = i + 1; j < compute.stages.size() && !is_read; ++j) {
      is_read = count_loads(compute.stages[j], buffer) > 0;
    }
    if (!is_read) compute.stages.erase(compute.stages.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// What makes an expression too dear to compute again for every read.
struct Weight {
  bool has_guard = false;       // evaluates one side only: keeps a loop from being vectorised
  bool has_intrinsic = false;   // exp and the like
  bool has_arithmetic = false;  // anything beyond one load
};

Weight weigh(const PrimExpr& value) {
  Weight weight;
  if (!value.is<BufferLoadNode>()) weight.has_arithmetic = true;
  tir::for_each(value, [&](const PrimExpr& e) {
    const auto* call = e.as<IntrinsicCallNode>();
    if (call == nullptr) return;
    if (call->intrinsic == Intrinsic::if_then_else) {
      weight.has_guard = true;
    } else {
      weight.has_intrinsic = true;
    }
  });
  return weight;
}

// A map stage is computed where it is read when that repeats no costly work.
bool may_inline(const Compute& compute, size_t index) {
  const ComputeStage& stage = compute.stages[index];
  if (stage.is_check() || is_reduction(stage) || stage.is_partial() || stage.is_layout) return false;
  if (is_output(compute, stage.output)) return false;
  const Weight weight = weigh(stage.value);
  size_t loads = 0;
  for (size_t i = index + 1; i < compute.stages.size(); ++i) {
    const size_t here = count_loads(compute.stages[i], stage.output);
    loads += here;
    // A reduction reads its operand many times an element.
    if (here > 0 && is_reduction(compute.stages[i]) && (weight.has_guard || weight.has_arithmetic)) return false;
  }
  return loads <= 1 || !weight.has_arithmetic;
}

PrimExpr replace_loads(const PrimExpr& root, const ComputeStage& producer) {
  if (!root) return root;
  // What is read at one index in several places is computed once.
  std::vector<std::pair<Array<PrimExpr>, PrimExpr>> done;
  return tir::rewrite(root, [&](const PrimExpr& e) {
    const auto* load = e.as<BufferLoadNode>();
    if (load == nullptr || load->buffer != producer.output) return e;
    for (const auto& [index, value] : done) {
      if (same_index(index, load->indices)) return value;
    }
    std::unordered_map<const PrimVarNode*, PrimExpr> values;
    for (size_t i = 0; i < producer.axes.size(); ++i) values[producer.axes[i].get()] = load->indices[i];
    done.emplace_back(load->indices, substitute(producer.value, values));
    return done.back().second;
  });
}

void inline_maps(Compute& compute) {
  for (size_t i = 0; i < compute.stages.size();) {
    if (!may_inline(compute, i)) {
      ++i;
      continue;
    }
    const ComputeStage producer = compute.stages[i];
    for (size_t j = i + 1; j < compute.stages.size(); ++j) {
      compute.stages[j].value = replace_loads(compute.stages[j].value, producer);
      compute.stages[j].epilogue = replace_loads(compute.stages[j].epilogue, producer);
    }
    compute.stages.erase(compute.stages.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// All reads of `buffer` in `stage` are of the element being computed.
bool reads_own_element_only(const ComputeStage& stage, const Buffer& buffer) {
  bool own = true;
  for_each_load(stage, [&](const BufferLoadNode& load) {
    if (load.buffer != buffer) return;
    for (size_t i = 0; i < load.indices.size(); ++i) {
      const bool trivial = is_int(load.indices[i], 0) && is_int(buffer->shape[i], 1);
      own = own && i < stage.axes.size() && (load.indices[i] == PrimExpr(stage.axes[i]) || trivial);
    }
  });
  return own;
}

bool same_extents(const ComputeStage& first, const ComputeStage& second) {
  const std::vector<PrimExpr> a = first.axis_extents(), b = second.axis_extents();
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = as_int(a[i]);
    if (a[i] != b[i] && !(x && is_int(b[i], *x))) return false;
  }
  return true;
}

// The stage that reads reduction `index` element by element and alone; its position, or nothing.
std::optional<size_t> find_epilogue(const Compute& compute, size_t index) {
  const ComputeStage& stage = compute.stages[index];
  if (!is_reduction(stage) || stage.is_partial() || is_output(compute, stage.output)) return std::nullopt;
  std::optional<size_t> reader;
  for (size_t i = index + 1; i < compute.stages.size(); ++i) {
    if (count_loads(compute.stages[i], stage.output) == 0) continue;
    if (reader) return std::nullopt;
    reader = i;
  }
  if (!reader) return std::nullopt;
  const ComputeStage& next = compute.stages[*reader];
  const bool fits = !is_reduction(next) && same_extents(next, stage) && reads_own_element_only(next, stage.output);
  return fits ? reader : std::nullopt;
}

void fuse_epilogues(Compute& compute) {
  for (size_t i = 0; i < compute.stages.size();) {
    const auto reader = find_epilogue(compute, i);
    if (!reader) {
      ++i;
      continue;
    }
    ComputeStage merged = compute.stages[i];
    const ComputeStage& next = compute.stages[*reader];
    const PrimExpr combined = merged.epilogue ? merged.epilogue : PrimExpr(merged.reduced);
    std::unordered_map<const PrimVarNode*, PrimExpr> axes;
    for (size_t d = 0; d < next.axes.size(); ++d) axes[next.axes[d].get()] = merged.axes[d];
    const PrimExpr body = tir::rewrite(next.value, [&](const PrimExpr& e) {
      const auto* load = e.as<BufferLoadNode>();
      return load != nullptr && load->buffer == merged.output ? combined : e;
    });
    merged.epilogue = substitute(body, axes);
    merged.output = next.output;
    for (const PrimExpr& index : next.place) merged.place.push_back(substitute(index, axes));
    merged.extents = next.extents;
    // At the reader's place, since the reader may need stages between the two.
    compute.stages[*reader] = std::move(merged);
    compute.stages.erase(compute.stages.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Compute fuse_stages(Compute compute) {
  drop_unread(compute);
  inline_maps(compute);
  fuse_epilogues(compute);
  return compute;
}

}  // namespace headrace::lower
