// The stages that units may have in a part of all plans, and what follows from them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

inline constexpr int32_t kMaxCutStages = 8;

// The stages that each unit may have, by unit: those from the first to the last but the barred ones between them. A
// consumer's are not below its producer's, first and last. `read_in` has stages where a tensor has a consumer for sure,
// by tensor; some consumer may have the stage. A bit is a stage.
struct StageRanges {
  std::vector<int8_t> first, last;
  std::vector<uint8_t> barred, read_in;

  StageRanges() = default;
  // All units may have all stages.
  StageRanges(const SplitGraph& graph, int32_t stages)
      : first(as_index(graph.num_units), 0),
        last(as_index(graph.num_units), static_cast<int8_t>(stages - 1)),
        barred(as_index(graph.num_units), 0),
        read_in(graph.tensor_bytes.size(), 0) {}

  bool is_barred(int32_t unit, int32_t stage) const {
    return (barred[as_index(unit)] >> static_cast<uint32_t>(stage) & 1) != 0;
  }
  bool may_have(int32_t unit, int32_t stage) const {
    return first[as_index(unit)] <= stage && stage <= last[as_index(unit)] && !is_barred(unit, stage);
  }
};

// The stages that a tensor's producer may have, and the last of those with a consumer; `known` has those that have a
// consumer for sure.
struct TensorCase {
  int32_t producer_first, producer_last, reader_first, reader_last;
  uint32_t known;

  int64_t key() const;
  bool is_read_in(int32_t stage) const { return (known >> static_cast<uint32_t>(stage) & 1) != 0; }
};
TensorCase case_of(const SplitGraph& graph, const StageRanges& ranges, size_t tensor);
std::vector<TensorCase> all_cases(const SplitGraph& graph, const StageRanges& ranges);

// Returns the least time that a transfer of each tensor takes at either end.
std::vector<int64_t> least_transfer_times(const SplitGraph& graph);

// The time that each stage has to compute and to transfer in all plans of the ranges.
struct SureLoads {
  std::array<int64_t, kMaxCutStages> compute{}, transfers{};
};
// Returns these times from the cases of all tensors and the times of their transfers.
SureLoads sure_loads(const SplitGraph& graph, const StageRanges& ranges, const std::vector<TensorCase>& cases,
                     const std::vector<int64_t>& transfer_times);

}  // namespace headrace::plan
