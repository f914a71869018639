#include "lower/stages/stage_group.h"

#include "arith/affine.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file reads loop IR and nothing else

namespace {

// Returns how many leading entries of an index are the stage's own leading axes.
size_t own_axes(const ComputeStage& stage, const std::vector<PrimExpr>& extents, const PrimExpr* begin, size_t count) {
  size_t own = 0;
  for (; own < std::min(count, stage.axes.size()); ++own) {
    const bool is_only_element = is_int(begin[own], 0) && is_int(extents[own], 1);
    if (begin[own] != PrimExpr(stage.axes[own]) && !is_only_element) break;
  }
  return own;
}

// Returns whether a combination reads everything anew for each element of axis k; otherwise the axis must stay inside,
// for tiles.
bool reads_move_with(const ComputeStage& stage, size_t k) {
  bool all = true;
  for_each(stage.value, [&](const PrimExpr& e) {
    const auto* load = e.as<BufferLoadNode>();
    if (load == nullptr) return;
    bool moves = false;
    for (const PrimExpr& index : load->indices) {
      moves = moves || arith::to_affine(index, {}).coefficient(stage.axes[k].get()) != 0;
    }
    all = all && moves;
  });
  return all;
}

int64_t product(const std::vector<PrimExpr>& extents, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= as_int(extents[i]).value_or(0);
  return result;
}

// A group while stages join it, one after the other.
class GroupFinder {
 public:
  GroupFinder(const Compute& compute, const StageReads& reads, size_t begin, const cost::Machine& machine)
      : compute_(compute),
        reads_(reads),
        machine_(machine),
        first_(compute.stages[begin].axis_extents()),
        common_(first_.size()) {
    add(begin);
  }

  // Returns whether stage `index` reads a result of a stage of the group.
  bool is_read_by(size_t index) const {
    const std::vector<Buffer>& buffers = reads_.buffers(index);
    return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& it) { return made_.contains(it.get()); });
  }

  void add(size_t index) {
    const ComputeStage& stage = compute_.stages[index];
    const std::vector<PrimExpr> extents = stage.axis_extents();
    common_ = std::min(common_, common_axes(stage, extents));
    for (const Buffer& buffer : reads_.buffers(index)) {
      if (!made_.contains(buffer.get())) continue;
      for (const Array<PrimExpr>& place : reads_.places(index, buffer)) {
        const std::vector<PrimExpr> at = place.to_vector();
        common_ = std::min(common_, own_axes(stage, extents, at.data(), at.size()));
      }
    }
    // Inner axes stay with a map until its vectors are full.
    size_t inside = extents.size();
    while (stage.combiner == Combiner::none && inside > 0 &&
           product(extents, inside, extents.size()) < machine_.min_inside_elements)
      --inside;
    inside_ = std::min(inside_, inside);
    made_.insert(stage.output.get());
  }

  // Returns how many outer axes the stages may share; 0 where sharing does not help.
  size_t depth() const {
    const size_t depth = std::min(common_, inside_);
    return product(first_, 0, depth) >= machine_.min_shared_iterations ? depth : 0;
  }

 private:
  // Returns the axes that the stage has in common with the first one, as far as loops may share them.
  size_t common_axes(const ComputeStage& stage, const std::vector<PrimExpr>& extents) const {
    const size_t most = std::min(first_.size(), extents.size());
    size_t depth = 0;
    for (; depth < most; ++depth) {
      const auto a = as_int(first_[depth]), b = as_int(extents[depth]);
      const bool keeps_axis = stage.combiner != Combiner::none && a != 1 && !reads_move_with(stage, depth);
      if (!a || a != b || keeps_axis) break;
    }
    return stage.is_partial() ? std::min(depth, own_axes(stage, extents, stage.place.data(), stage.place.size()))
                              : depth;
  }

  const Compute& compute_;
  const StageReads& reads_;
  const cost::Machine& machine_;
  std::vector<PrimExpr> first_;  // extents of the first stage
  std::unordered_set<const BufferNode*> made_;
  size_t common_, inside_ = SIZE_MAX;
};

std::vector<Buffer> local_buffers(const Compute& compute, const StageUses& uses, const StageGroup& group) {
  std::vector<Buffer> local;
  std::unordered_set<const BufferNode*> seen;
  for (size_t i = group.begin; i < group.end; ++i) {
    const Buffer& buffer = compute.stages[i].output;
    if (seen.insert(buffer.get()).second && uses.stays_within(buffer, group.begin, group.end)) local.push_back(buffer);
  }
  return local;
}

}  // namespace

StageUses::StageUses(const Compute& compute) : reads_(compute) {
  for (size_t i = 0; i < compute.stages.size(); ++i) {
    const auto [it, is_new] = writers_.try_emplace(compute.stages[i].output.get(), i, i);
    it->second.second = i;
  }
  for (const Buffer& output : compute.outputs) outputs_.insert(output.get());
}

bool StageUses::stays_within(const Buffer& buffer, size_t begin, size_t end) const {
  const auto written = writers_.find(buffer.get());
  if (written == writers_.end() || outputs_.contains(buffer.get())) return false;
  const std::set<size_t>& readers = reads_.readers(buffer);
  const bool is_read_within = readers.empty() || (*readers.begin() >= begin && *readers.rbegin() < end);
  return is_read_within && written->second.first >= begin && written->second.second < end;
}

StageGroup find_group(const Compute& compute, const StageUses& uses, size_t begin, const cost::Machine& machine) {
  StageGroup group{.begin = begin, .end = begin + 1, .depth = 0, .local = {}};
  if (compute.stages[begin].is_check()) return group;
  GroupFinder finder(compute, uses.reads(), begin, machine);
  for (size_t end = begin + 1; end < compute.stages.size(); ++end) {
    if (compute.stages[end].is_check() || !finder.is_read_by(end)) break;
    finder.add(end);
    if (finder.depth() == 0) break;
    group.end = end + 1;
    group.depth = finder.depth();
  }
  if (group.depth > 0) group.local = local_buffers(compute, uses, group);
  return group;
}

}  // namespace headrace::lower
