// The throughput of stages that sleep or compute, as a share of what the slowest stage allows.
#pragma once

#include <vector>

#include "bench/stream.h"
#include "bench/stream_peers.h"
#include "executors/pipeline/pipeline.h"
#include "object/array.h"

namespace headrace::bench {

namespace pipe = executors::pipeline;

inline pipe::Port any_value() { return {.spec = {.name = "x", .dtype = {}, .shape = {}}, .is_any = true}; }
inline pipe::Port bytes(int64_t count) {
  return {.spec = {.name = "x", .dtype = DataType::parse("uint8"), .shape = {count}}};
}
inline double seconds_since(pipe::Clock::time_point begin) {
  return std::chrono::duration<double>(pipe::Clock::now() - begin).count();
}

// Returns the seconds that a stream of `items` takes, with up to 64 requests ahead of the reader.
double time_stream(pipe::PipelineSpec spec, const Value& item, int items, bool is_traced = false);

// Shares of a bound, or other numbers, one a round.
class Shares {
 public:
  void add(double share);
  double median() const;
  const std::vector<double>& sorted() const { return sorted_; }
  // Return an interval that holds the median of all possible rounds with at least 95 %, by the ranks of the sign test,
  // or as much as few rounds allow.
  double low() const { return sorted_[rank()]; }
  double high() const { return sorted_[sorted_.size() - 1 - rank()]; }

 private:
  size_t rank() const;

  std::vector<double> sorted_;
};

struct Bounds {
  Array<Value> rows;  // {name, stages, share, share_low, share_high, limit, holds}
  Shares four;        // for four stages that sleep
  std::vector<Shares> peers;
};

// Measures in `rounds` rounds, in which all take turns. The bound of a stream is measured in the same round, just
// before it: the same sleeps in one thread, or the same work in two threads that run together, and what the first
// request takes until it has left the pipeline.
//   sleeping   2, 4, 8 and 16 stages; 8 with edges that skip stages; 16 of which one is slower than the others
//   computing  2 and 4 stages on two processors, where there are two
// `holds` is false where the interval of the share lies below the limit.
Bounds measure_bounds(const StreamBenchOptions& options, const std::vector<StreamPeer>& peers);

}  // namespace headrace::bench
