#include "lower/stages/fuse_stages.h"

#include <unordered_set>

#include "lower/stages/stage_reads.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using tir::Compute;
using tir::ComputeStage;

namespace {

bool is_reduction(const ComputeStage& stage) { return stage.combiner != tir::Combiner::none; }

// The stages of a compute form while they are joined. A stage that was substituted into another is dropped: it keeps
// its number until the end, so that facts about the others stay valid.
class Stages {
 public:
  explicit Stages(Compute& compute) : reads(compute), stages_(compute.stages), is_dropped_(compute.stages.size()) {
    for (const Buffer& output : compute.outputs) outputs_.insert(output.get());
  }

  StageReads reads;

  size_t size() const { return stages_.size(); }
  const ComputeStage& operator[](size_t index) const { return stages_[index]; }
  bool is_dropped(size_t index) const { return is_dropped_[index]; }
  bool is_output(const Buffer& buffer) const { return outputs_.contains(buffer.get()); }

  void replace(size_t index, ComputeStage stage) {
    stages_[index] = std::move(stage);
    reads.update(index, stages_[index]);
  }
  void drop(size_t index) {
    is_dropped_[index] = true;
    reads.drop(index);
  }
  void remove_dropped() {
    size_t kept = 0;
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (is_dropped_[i]) continue;
      if (kept != i) stages_[kept] = std::move(stages_[i]);
      ++kept;
    }
    stages_.resize(kept);
  }

 private:
  std::vector<ComputeStage>& stages_;
  std::vector<bool> is_dropped_;
  std::unordered_set<const BufferNode*> outputs_;
};

// Drops stages that no output needs.
void drop_unread(Stages& stages) {
  for (size_t i = stages.size(); i-- > 0;) {
    const ComputeStage& stage = stages[i];
    const bool is_read =
        stage.is_check() || stages.is_output(stage.output) || !stages.reads.readers(stage.output).empty();
    if (!is_read) stages.drop(i);
  }
}

// The cost of an expression, which decides whether to compute it again at every read.
struct Weight {
  bool has_guard = false;       // evaluates one side only: keeps a loop from being vectorised
  bool has_arithmetic = false;  // anything beyond one load
  size_t intrinsics = 0;        // exp and the like
  size_t nodes = 0;
};

Weight weigh(const PrimExpr& value) {
  Weight weight;
  if (!value.is<BufferLoadNode>()) weight.has_arithmetic = true;
  tir::for_each(value, [&](const PrimExpr& e) {
    ++weight.nodes;
    const auto* call = e.as<IntrinsicCallNode>();
    if (call == nullptr) return;
    if (call->intrinsic == Intrinsic::if_then_else) {
      weight.has_guard = true;
    } else {
      ++weight.intrinsics;
    }
  });
  return weight;
}

// Returns whether a map stage is computed where it is read: when that repeats no costly work.
bool may_inline(const Stages& stages, size_t index) {
  const ComputeStage& stage = stages[index];
  if (stage.is_check() || is_reduction(stage) || stage.is_partial() || stage.is_layout) return false;
  if (stages.is_output(stage.output)) return false;
  const Weight weight = weigh(stage.value);
  size_t loads = 0;
  for (const size_t reader : stages.reads.readers(stage.output)) {
    loads += stages.reads.places(reader, stage.output).size();
    // A reduction reads its operand many times an element.
    if (is_reduction(stages[reader]) && (weight.has_guard || weight.has_arithmetic)) return false;
  }
  return loads <= 1 || !weight.has_arithmetic;
}

PrimExpr replace_loads(const PrimExpr& root, const ComputeStage& producer) {
  if (!root) return root;
  // Computes a value once that is read at one index in several places.
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

void inline_maps(Stages& stages) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages.is_dropped(i) || !may_inline(stages, i)) continue;
    const std::set<size_t> readers = stages.reads.readers(stages[i].output);
    for (const size_t reader : readers) {
      ComputeStage joined = stages[reader];
      joined.value = replace_loads(joined.value, stages[i]);
      joined.epilogue = replace_loads(joined.epilogue, stages[i]);
      stages.replace(reader, std::move(joined));
    }
    stages.drop(i);
  }
}

// Returns whether all reads of `buffer` by stage `index` are of the element being computed.
bool reads_own_element_only(const Stages& stages, size_t index, const Buffer& buffer) {
  const ComputeStage& stage = stages[index];
  bool own = true;
  for (const Array<PrimExpr>& place : stages.reads.places(index, buffer)) {
    for (size_t i = 0; i < place.size(); ++i) {
      const bool trivial = is_int(place[i], 0) && is_int(buffer->shape[i], 1);
      own = own && i < stage.axes.size() && (place[i] == PrimExpr(stage.axes[i]) || trivial);
    }
  }
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

// Returns whether an epilogue is small enough: its code is copied for each vector of a register tile, some fifty times.
bool is_short(const PrimExpr& value) {
  constexpr size_t kMostIntrinsics = 4, kMostNodes = 150;
  const Weight weight = weigh(value);
  return weight.intrinsics <= kMostIntrinsics && weight.nodes <= kMostNodes;
}

// Returns the position of the only stage that reads reduction `index`, element by element; nothing when there is none.
std::optional<size_t> find_epilogue(const Stages& stages, size_t index) {
  const ComputeStage& stage = stages[index];
  if (!is_reduction(stage) || stage.is_partial() || stages.is_output(stage.output)) return std::nullopt;
  const std::set<size_t>& readers = stages.reads.readers(stage.output);
  if (readers.size() != 1) return std::nullopt;
  const size_t reader = *readers.begin();
  const ComputeStage& next = stages[reader];
  const bool fits = !is_reduction(next) && !next.is_check() && is_short(next.value) && same_extents(next, stage) &&
                    reads_own_element_only(stages, reader, stage.output);
  return fits ? std::optional(reader) : std::nullopt;
}

// Makes `next`, the only reader of reduction `stage`, its epilogue.
ComputeStage joined_epilogue(const ComputeStage& stage, const ComputeStage& next) {
  ComputeStage merged = stage;
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
  return merged;
}

void fuse_epilogues(Stages& stages) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages.is_dropped(i)) continue;
    const auto reader = find_epilogue(stages, i);
    if (!reader) continue;
    // At the reader's place, since the reader may need stages between the two.
    stages.replace(*reader, joined_epilogue(stages[i], stages[*reader]));
    stages.drop(i);
  }
}

}  // namespace

Compute fuse_stages(Compute compute) {
  Stages stages(compute);
  drop_unread(stages);
  inline_maps(stages);
  fuse_epilogues(stages);
  stages.remove_dropped();
  return compute;
}

}  // namespace headrace::lower
