// The stages that could end at a downset (lattice.h), with what each would cost as far as it does not depend on the
// other stages.
#pragma once

#include "plan/pipeline/lattice.h"

namespace headrace::plan {

// The units between two downsets as a stage. Times are by device class, in each at least what a plan with that stage
// pays: transfers in and out take the fastest link, and each tensor goes out to one stage. So is memory: tensors have
// the fewest slots.
struct Segment {
  std::span<const int64_t> compute_ns;
  std::span<const int64_t> in_ns;
  std::span<const int64_t> out_ns;
  int64_t memory_bytes = 0;
};

class SegmentWalk {
 public:
  // Keeps references to both.
  SegmentWalk(const SplitGraph& graph, const Lattice& lattice);

  const SplitGraph& graph() const { return graph_; }
  const Lattice& lattice() const { return lattice_; }

  // Calls visit(below, segment) for downsets below `end`, each at most once: those whose segment, and that of some
  // downset on each step of a way down to it, computes and sends its tensors in at most `max_time_ns` on some device,
  // and has constants that fit into some device. Neither grows smaller on the way.
  template <typename Visit>
  void walk(int32_t end, int64_t max_time_ns, const Visit& visit) {
    begin_walk(end);
    while (!frames_.empty()) {
      const int32_t next = advance(max_time_ns);
      if (next >= 0) visit(next, top_segment());
    }
  }

 private:
  struct Frame {
    int32_t downset;
    int32_t unit;  // added last; -1 for the first frame
    int64_t next_step;
  };

  void begin_walk(int32_t end);
  // Goes on with the walk. Returns the downset that it came to, or -1 when it went back up, or to a downset that no
  // stage can begin at.
  int32_t advance(int64_t max_time_ns);
  Segment top_segment() const;
  bool is_small(int64_t max_time_ns) const;
  void add(int32_t unit);
  void remove(int32_t unit);
  void add_tensors(int32_t unit, int64_t* values);
  // Adds what the unit and the buffers that it makes need; raises `most`, the working memory of the segment.
  void add_buffers(int32_t unit, int64_t& most);
  void remove_buffers(int32_t unit);
  size_t width() const { return 3 * graph_.num_classes() + 3; }

  const SplitGraph& graph_;
  const Lattice& lattice_;
  int64_t max_memory_bytes_ = 0;
  bool has_limits_ = false;  // devices have limited memory; without limits, all memory counts as 0 but that of borders
  std::vector<int64_t> in_ns_, out_ns_;  // [tensor * number of classes + class]
  std::vector<int32_t> readers_;         // by tensor: consumers in the segment
  std::vector<int32_t> shared_readers_;  // by shared constant: units of the segment that read it
  std::vector<int32_t> buffer_readers_;  // by buffer: readers in the segment
  std::vector<bool> is_whole_;           // by buffer: lies in the segment
  std::vector<int64_t> needs_;           // by unit of the segment: its working memory, with the buffers that it holds
  std::vector<int32_t> seen_;            // by downset: the walk that came there
  int32_t walks_ = 0;
  std::vector<Frame> frames_;
  std::vector<int64_t> values_;  // by frame: compute, in and out by class, then constants, working memory, border bytes
};

}  // namespace headrace::plan
