// The walk goes down depth first and keeps, for each step on its way, the sums of the segment so far. Adding a unit at
// the bottom changes them by its own tensors only: those that it reads come in (once), those that it makes no longer
// come in, and they go out when a consumer is above the end. A buffer lies in the segment once its producer does, if
// all its readers do: then their needs grow.
#include "plan/pipeline/segment_walk.h"

#include <algorithm>

namespace headrace::plan {

SegmentWalk::SegmentWalk(const SplitGraph& graph, const Lattice& lattice)
    : graph_(graph),
      lattice_(lattice),
      readers_(graph.tensor_bytes.size(), 0),
      shared_readers_(graph.shared_bytes.size(), 0),
      buffer_readers_(graph.buffers.size(), 0),
      is_whole_(graph.buffers.size(), false),
      needs_(static_cast<size_t>(graph.num_units), 0),
      seen_(static_cast<size_t>(lattice.size()), 0) {
  for (const DeviceClass& one : graph.devices.classes) {
    max_memory_bytes_ = std::max(max_memory_bytes_, one.memory_bytes);
    has_limits_ = has_limits_ || one.memory_bytes != kNoMemoryLimit;
  }
  for (const int64_t bytes : graph.tensor_bytes) {
    for (size_t i = 0; i < graph.num_classes(); ++i) {
      in_ns_.push_back(graph.devices.least_in_ns(i, bytes));
      out_ns_.push_back(graph.devices.least_out_ns(i, bytes));
    }
  }
}

void SegmentWalk::begin_walk(int32_t end) {
  ++walks_;
  frames_.assign(1, {end, -1, 0});
  values_.assign(width(), 0);
}

int32_t SegmentWalk::advance(int64_t max_time_ns) {
  Frame& top = frames_.back();
  const auto steps = lattice_.below(top.downset);
  while (top.next_step < static_cast<int64_t>(steps.size())) {
    const Lattice::Step step = steps[static_cast<size_t>(top.next_step++)];
    int32_t& seen = seen_[static_cast<size_t>(step.below)];
    if (seen == walks_) continue;
    seen = walks_;
    add(step.unit);
    frames_.push_back({step.below, step.unit, 0});
    if (is_small(max_time_ns)) return step.below;
    frames_.back().next_step = static_cast<int64_t>(lattice_.below(step.below).size());
    return -1;
  }
  if (top.unit >= 0) remove(top.unit);
  frames_.pop_back();
  values_.resize(values_.size() - width());
  return -1;
}

Segment SegmentWalk::top_segment() const {
  const size_t classes = graph_.num_classes();
  const int64_t* values = values_.data() + values_.size() - width();
  const int64_t* bytes = values + 3 * classes;
  return {{values, classes},
          {values + classes, classes},
          {values + 2 * classes, classes},
          bytes[0] + bytes[1] + kBorderCopies * bytes[2]};
}

bool SegmentWalk::is_small(int64_t max_time_ns) const {
  if (values_[values_.size() - 3] > max_memory_bytes_) return false;
  const Segment segment = top_segment();
  for (size_t i = 0; i < segment.compute_ns.size(); ++i) {
    if (graph_.devices.classes[i].stage_time(segment.compute_ns[i], segment.out_ns[i]) <= max_time_ns) return true;
  }
  return false;
}

void SegmentWalk::add(int32_t unit) {
  const size_t classes = graph_.num_classes();
  values_.resize(values_.size() + width());
  int64_t* values = values_.data() + values_.size() - width();
  std::copy_n(values - width(), width(), values);
  for (size_t i = 0; i < classes; ++i) values[i] = std::min(kNever, values[i] + graph_.compute(unit, i));
  add_tensors(unit, values);
  if (!has_limits_) return;
  int64_t* bytes = values + 3 * classes;
  bytes[0] += graph_.constant_bytes[static_cast<size_t>(unit)];
  for (const int32_t shared : graph_.shared_of_unit[static_cast<size_t>(unit)]) {
    if (shared_readers_[static_cast<size_t>(shared)]++ == 0)
      bytes[0] += graph_.shared_bytes[static_cast<size_t>(shared)];
  }
  add_buffers(unit, bytes[1]);
}

void SegmentWalk::add_buffers(int32_t unit, int64_t& most) {
  const BufferTable& buffers = graph_.buffers;
  int64_t& own = needs_[static_cast<size_t>(unit)];
  own = graph_.working_bytes[static_cast<size_t>(unit)];
  for (const int32_t buffer : buffers.read[static_cast<size_t>(unit)]) ++buffer_readers_[static_cast<size_t>(buffer)];
  for (const int32_t buffer : buffers.made[static_cast<size_t>(unit)]) {
    const auto at = static_cast<size_t>(buffer);
    const auto readers = buffers.readers[at];
    is_whole_[at] = buffer_readers_[at] == static_cast<int32_t>(readers.size());
    if (!is_whole_[at]) continue;
    for (const int32_t reader : readers) {
      if (!buffers.holds[static_cast<size_t>(reader)]) continue;
      int64_t& need = needs_[static_cast<size_t>(reader)];
      need += buffers.bytes[at];
      most = std::max(most, need);
    }
  }
  const int32_t written = buffers.written[static_cast<size_t>(unit)];
  if (written >= 0 && is_whole_[static_cast<size_t>(written)]) own += buffers.bytes[static_cast<size_t>(written)];
  most = std::max(most, own);
}

void SegmentWalk::add_tensors(int32_t unit, int64_t* values) {
  const size_t classes = graph_.num_classes();
  int64_t& border_bytes = values[3 * classes + 2];
  for (const int32_t input : graph_.inputs[static_cast<size_t>(unit)]) {
    const auto tensor = static_cast<size_t>(input);
    if (readers_[tensor]++ > 0) continue;
    border_bytes += graph_.tensor_bytes[tensor];
    for (size_t i = 0; i < classes; ++i) values[classes + i] += in_ns_[tensor * classes + i];
  }
  for (const int32_t output : graph_.outputs[static_cast<size_t>(unit)]) {
    const auto tensor = static_cast<size_t>(output);
    if (readers_[tensor] > 0) {
      border_bytes -= graph_.tensor_bytes[tensor];
      for (size_t i = 0; i < classes; ++i) values[classes + i] -= in_ns_[tensor * classes + i];
    }
    // All consumers below the end are in the segment, since they come after the unit.
    if (readers_[tensor] == static_cast<int32_t>(graph_.tensor_consumers[tensor].size())) continue;
    border_bytes += graph_.tensor_bytes[tensor];
    for (size_t i = 0; i < classes; ++i) values[2 * classes + i] += out_ns_[tensor * classes + i];
  }
}

void SegmentWalk::remove(int32_t unit) {
  for (const int32_t input : graph_.inputs[static_cast<size_t>(unit)]) --readers_[static_cast<size_t>(input)];
  if (!has_limits_) return;
  for (const int32_t shared : graph_.shared_of_unit[static_cast<size_t>(unit)])
    --shared_readers_[static_cast<size_t>(shared)];
  remove_buffers(unit);
}

void SegmentWalk::remove_buffers(int32_t unit) {
  const BufferTable& buffers = graph_.buffers;
  for (const int32_t buffer : buffers.made[static_cast<size_t>(unit)]) {
    const auto at = static_cast<size_t>(buffer);
    if (!is_whole_[at]) continue;
    is_whole_[at] = false;
    for (const int32_t reader : buffers.readers[at]) {
      if (buffers.holds[static_cast<size_t>(reader)]) needs_[static_cast<size_t>(reader)] -= buffers.bytes[at];
    }
  }
  for (const int32_t buffer : buffers.read[static_cast<size_t>(unit)]) --buffer_readers_[static_cast<size_t>(buffer)];
}

}  // namespace headrace::plan
