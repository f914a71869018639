#include "plan/pipeline/stage_ranges.h"

#include <algorithm>
#include <bit>

#include "plan/pipeline/limits.h"

namespace headrace::plan {

int64_t TensorCase::key() const {
  const int64_t ends = ((producer_first * 8 + producer_last) * 8 + reader_first) * 8 + reader_last;
  return ends * 256 + known;
}

TensorCase case_of(const SplitGraph& graph, const StageRanges& ranges, size_t tensor) {
  const auto producer = as_index(graph.tensor_producer[tensor]);
  const uint32_t read_in = ranges.read_in[tensor];
  TensorCase made{ranges.first[producer], ranges.last[producer], 0, 0, read_in};
  for (const int32_t consumer : graph.tensor_consumers[tensor]) {
    const int32_t first = ranges.first[as_index(consumer)], last = ranges.last[as_index(consumer)];
    made.reader_first = std::max(made.reader_first, first);
    made.reader_last = std::max(made.reader_last, last);
    if (first == last) made.known |= uint32_t{1} << static_cast<uint32_t>(first);
  }
  made.reader_first = std::max(made.reader_first, static_cast<int32_t>(std::bit_width(read_in)) - 1);
  if (made.reader_first == made.reader_last) made.known |= uint32_t{1} << static_cast<uint32_t>(made.reader_last);
  return made;
}

std::vector<TensorCase> all_cases(const SplitGraph& graph, const StageRanges& ranges) {
  std::vector<TensorCase> made;
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) made.push_back(case_of(graph, ranges, tensor));
  return made;
}

std::vector<int64_t> least_transfer_times(const SplitGraph& graph) {
  std::vector<int64_t> times;
  for (const int64_t bytes : graph.tensor_bytes) {
    const LeastTransfer time = least_transfer(graph, bytes);
    times.push_back(std::min(time.in_ns, time.out_ns));
  }
  return times;
}

SureLoads sure_loads(const SplitGraph& graph, const StageRanges& ranges, const std::vector<TensorCase>& cases,
                     const std::vector<int64_t>& transfer_times) {
  SureLoads loads;
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    const int32_t first = ranges.first[as_index(unit)];
    if (first == ranges.last[as_index(unit)]) loads.compute[as_index(first)] += graph.fastest(unit);
  }
  for (size_t tensor = 0; tensor < transfer_times.size(); ++tensor) {
    const TensorCase& one = cases[tensor];
    for (int32_t stage = one.producer_last + 1; stage <= one.reader_last; ++stage) {
      if (one.is_read_in(stage)) loads.transfers[as_index(stage)] += transfer_times[tensor];
    }
    if (one.producer_first != one.producer_last) continue;
    const uint32_t above = one.known >> static_cast<uint32_t>(one.producer_last + 1);
    const int32_t last_known = one.producer_last + static_cast<int32_t>(std::bit_width(above));
    const int32_t readers = std::popcount(above) + (one.reader_first > last_known ? 1 : 0);
    loads.transfers[as_index(one.producer_last)] += readers * transfer_times[tensor];
  }
  return loads;
}

}  // namespace headrace::plan
