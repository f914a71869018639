#include "plan/pipeline/refine.h"

#include <algorithm>

namespace headrace::plan {
namespace {

class Refiner {
 public:
  Refiner(const SplitGraph& graph, Assignment& assignment)
      : graph_(graph),
        assignment_(assignment),
        slots_(graph, assignment),
        costs_(stage_costs(graph, assignment, slots_)) {
    const size_t stages = costs_.size();
    is_changed_.assign(stages, false);
    sizes_.assign(stages, 0);
    for (const int32_t stage : assignment.stage_of_unit) ++sizes_[index(stage)];
    for (size_t stage = 0; stage < stages; ++stage)
      periods_.push_back(stage_period(graph, assignment.stages[stage], costs_[stage]));
    readers_.assign(graph.shared_bytes.size() * stages, 0);
    for (int32_t unit = 0; unit < graph.num_units; ++unit) {
      for (const int32_t shared : graph.shared_of_unit[index(unit)]) ++readers(shared, stage_of(unit));
    }
  }

  // Returns whether some unit moved.
  bool pass() {
    bool moved = false;
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      int32_t low = 0, high = static_cast<int32_t>(costs_.size()) - 1;
      find_range(unit, low, high);
      if (low == high || sizes_[index(stage_of(unit))] == 1) continue;
      for (int32_t stage = low; stage <= high; ++stage) {
        if (stage != stage_of(unit) && sizes_[index(stage_of(unit))] > 1) moved = try_move(unit, stage) || moved;
      }
    }
    return moved;
  }

 private:
  static size_t index(int32_t number) { return static_cast<size_t>(number); }
  int32_t stage_of(int32_t unit) const { return assignment_.stage_of_unit[index(unit)]; }
  size_t class_of(int32_t stage) const { return index(assignment_.stages[index(stage)].device_class); }
  int32_t& readers(int32_t shared, int32_t stage) { return readers_[index(shared) * costs_.size() + index(stage)]; }

  // Finds the stages that the unit could have: from its latest producer's to its earliest consumer's.
  void find_range(int32_t unit, int32_t& low, int32_t& high) const {
    for (const int32_t tensor : graph_.inputs[index(unit)])
      low = std::max(low, stage_of(graph_.tensor_producer[index(tensor)]));
    for (const int32_t tensor : graph_.outputs[index(unit)]) {
      for (const int32_t consumer : graph_.tensor_consumers[index(tensor)]) high = std::min(high, stage_of(consumer));
    }
  }

  void note(int32_t stage) {
    if (is_changed_[index(stage)]) return;
    is_changed_[index(stage)] = true;
    changed_.push_back(stage);
    saved_.push_back(costs_[index(stage)]);
  }

  // Adds what a tensor costs to its stages, or subtracts it.
  void add_tensor(int32_t tensor, int64_t sign) {
    const int32_t from = stage_of(graph_.tensor_producer[index(tensor)]);
    const int64_t bytes = graph_.tensor_bytes[index(tensor)];
    collect_stages(graph_.tensor_consumers[index(tensor)], assignment_.stage_of_unit, from, reading_);
    if (reading_.empty()) return;
    note(from);
    const int64_t slot_bytes = slots_.of(from, reading_) * bytes;
    costs_[index(from)].memory_bytes += sign * slot_bytes;
    for (const int32_t to : reading_) {
      note(to);
      const int64_t time = graph_.devices.transfer_ns(class_of(from), class_of(to), bytes);
      costs_[index(from)].out_ns += sign * time;
      costs_[index(to)].in_ns += sign * time;
      costs_[index(to)].memory_bytes += sign * slot_bytes;
    }
  }

  void add_tensors(int32_t unit, int64_t sign) {
    for (const int32_t tensor : graph_.inputs[index(unit)]) add_tensor(tensor, sign);
    for (const int32_t tensor : graph_.outputs[index(unit)]) add_tensor(tensor, sign);
  }

  // Returns the bytes of a unit's buffers that lie in its stage.
  int64_t buffers_in_stage(int32_t unit) const {
    const BufferTable& buffers = graph_.buffers;
    const int32_t stage = stage_of(unit);
    int64_t bytes = 0;
    const auto add = [&](int32_t buffer) {
      const std::span<const int32_t> readers = buffers.readers[index(buffer)];
      const bool is_whole =
          stage_of(buffers.producer[index(buffer)]) == stage &&
          std::all_of(readers.begin(), readers.end(), [&](int32_t one) { return stage_of(one) == stage; });
      if (is_whole) bytes += buffers.bytes[index(buffer)];
    };
    for (const int32_t buffer : buffers.made[index(unit)]) add(buffer);
    for (const int32_t buffer : buffers.read[index(unit)]) add(buffer);
    const int32_t written = buffers.written[index(unit)];
    if (written >= 0 && buffers.producer[index(written)] != unit) add(written);
    return bytes;
  }

  // Moves the unit and its costs. The working memory of the stage that it leaves is not known to shrink, and that of
  // the other one grows by all of the unit and its buffers: the sums are upper limits until the next refinement.
  void move(int32_t unit, int32_t to) {
    const int32_t from = stage_of(unit);
    note(from);
    note(to);
    add_tensors(unit, -1);
    assignment_.stage_of_unit[index(unit)] = to;
    add_tensors(unit, 1);
    costs_[index(from)].compute_ns -= graph_.compute(unit, class_of(from));
    costs_[index(to)].compute_ns += graph_.compute(unit, class_of(to));
    costs_[index(from)].memory_bytes -= graph_.constant_bytes[index(unit)];
    costs_[index(to)].memory_bytes +=
        graph_.constant_bytes[index(unit)] + graph_.working_bytes[index(unit)] + buffers_in_stage(unit);
    for (const int32_t shared : graph_.shared_of_unit[index(unit)]) {
      if (--readers(shared, from) == 0) costs_[index(from)].memory_bytes -= graph_.shared_bytes[index(shared)];
      if (readers(shared, to)++ == 0) costs_[index(to)].memory_bytes += graph_.shared_bytes[index(shared)];
    }
    --sizes_[index(from)];
    ++sizes_[index(to)];
  }

  bool is_better() const {
    int64_t old_most = 0, new_most = 0;
    double old_sum = 0, new_sum = 0;
    for (const int32_t stage : changed_) {
      const int64_t before = periods_[index(stage)];
      const int64_t now = stage_period(graph_, assignment_.stages[index(stage)], costs_[index(stage)]);
      old_most = std::max(old_most, before);
      new_most = std::max(new_most, now);
      old_sum += static_cast<double>(before) * static_cast<double>(before);
      new_sum += static_cast<double>(now) * static_cast<double>(now);
    }
    return new_most < old_most || (new_most == old_most && new_sum < old_sum);
  }

  bool try_move(int32_t unit, int32_t to) {
    const int32_t from = stage_of(unit);
    if (graph_.compute(unit, class_of(to)) >= kNever) return false;
    move(unit, to);
    const bool is_kept = is_better();
    if (!is_kept) {
      assignment_.stage_of_unit[index(unit)] = from;
      for (size_t i = 0; i < changed_.size(); ++i) costs_[index(changed_[i])] = saved_[i];
      for (const int32_t shared : graph_.shared_of_unit[index(unit)]) {
        ++readers(shared, from);
        --readers(shared, to);
      }
      ++sizes_[index(from)];
      --sizes_[index(to)];
    }
    for (const int32_t stage : changed_) {
      is_changed_[index(stage)] = false;
      if (is_kept)
        periods_[index(stage)] = stage_period(graph_, assignment_.stages[index(stage)], costs_[index(stage)]);
    }
    changed_.clear();
    saved_.clear();
    return is_kept;
  }

  const SplitGraph& graph_;
  Assignment& assignment_;
  const BorderSlots slots_;  // before the first move of the pass
  std::vector<StageCost> costs_;
  std::vector<int64_t> periods_;  // by stage
  std::vector<int32_t> sizes_;    // by stage: units
  std::vector<int32_t> readers_;  // [shared constant * number of stages + stage]
  std::vector<int32_t> changed_, reading_;
  std::vector<StageCost> saved_;  // costs of the changed stages before the move
  std::vector<bool> is_changed_;
};

}  // namespace

void refine(const SplitGraph& graph, Assignment& assignment, int32_t max_passes) {
  set_period(graph, assignment);  // a graph of groups has shown less working memory
  if (assignment.stages.size() < 2) return;
  const Assignment before = assignment;
  for (int32_t pass = 0; pass < max_passes; ++pass) {
    Refiner refiner(graph, assignment);
    if (!refiner.pass()) break;
  }
  set_period(graph, assignment);
  // A move may make other edges need more slots, which its pass does not see, and so exceed a device's memory.
  if (assignment.period_ns > before.period_ns) assignment = before;
}

}  // namespace headrace::plan
