#include "bench/stream.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "bench/stream_peers.h"
#include "executors/pipeline/pipeline.h"
#include "object/array.h"

namespace headrace::bench {

namespace {

namespace pipe = executors::pipeline;
using pipe::Clock;
using pipe::Port;
using tools::Report;

// Does nothing, or sleeps; its output is whatever memory the pipeline gives it.
class IdleStage final : public pipe::StageCode {
 public:
  IdleStage(Port port, double seconds) : inputs_{port}, outputs_{port}, time_(seconds) {
    inputs_[0].spec.name = "x";
    outputs_[0].spec.name = "y";
  }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  Ref<ErrorObj> run(std::span<const Value* const>, std::span<Value>) noexcept override {
    if (time_.count() > 0) std::this_thread::sleep_for(time_);
    return {};
  }

 private:
  std::vector<Port> inputs_, outputs_;
  std::chrono::duration<double> time_;
};

Port any_value() { return {.spec = {.name = "x", .dtype = {}, .shape = {}}, .is_any = true}; }
Port bytes(int64_t count) { return {.spec = {.name = "x", .dtype = DataType::parse("uint8"), .shape = {count}}}; }

pipe::PipelineSpec chain_of(size_t stages, bool one_group, const Port& port, double sleep_seconds) {
  pipe::PipelineSpec spec{.inputs = {port}};
  for (size_t i = 0; i < stages; ++i) {
    const pipe::Source source = i == 0 ? pipe::Source{.kind = pipe::Source::Kind::input}
                                       : pipe::Source{.kind = pipe::Source::Kind::stage, .index = i - 1};
    spec.stages.push_back({.name = fmt::format("s{}", i),
                           .replicas = {std::make_shared<IdleStage>(port, sleep_seconds)},
                           .inputs = {source},
                           .group = one_group ? 0 : i});
  }
  spec.outputs = {{.name = "y", .source = {.kind = pipe::Source::Kind::stage, .index = stages - 1}}};
  spec.groups.resize(one_group ? 1 : stages);
  return spec;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Returns the seconds that a stream of `items` takes, with up to 64 requests ahead of the reader.
double time_stream(pipe::PipelineSpec spec, const Value& item, int items, bool is_traced = false) {
  pipe::Pipeline pipeline(std::move(spec), {.max_inflight = 64});
  if (is_traced) pipeline.start_trace();
  std::deque<pipe::Ticket> ahead;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < items; ++i) {
    if (ahead.size() == 64) {
      ahead.front().wait();
      ahead.pop_front();
    }
    ahead.push_back(pipeline.submit({item}, {.keeps_inputs = true}));
  }
  for (const pipe::Ticket& ticket : ahead) ticket.wait();
  return seconds_since(begin);
}

template <typename F>
double best_of(int rounds, F measure) {
  double best = measure();
  for (int round = 1; round < rounds; ++round) best = std::min(best, measure());
  return best;
}

// Returns the nanoseconds that one more empty stage costs a request of a stream.
double time_hop(const StreamBenchOptions& options, bool one_group) {
  const size_t many = one_group ? 17 : 2;
  const auto time = [&](size_t stages) {
    return best_of(options.rounds, [&] {
      return time_stream(chain_of(stages, one_group, any_value(), 0), Value(int64_t{1}), options.items);
    });
  };
  return (time(many) - time(1)) / static_cast<double>(many - 1) / options.items * 1e9;
}

// Returns the nanoseconds that a trace costs a call: of 16 empty stages of one thread, whose calls are all noted.
double time_trace(const StreamBenchOptions& options) {
  const auto time = [&](bool is_traced) {
    return best_of(options.rounds, [&] {
      return time_stream(chain_of(16, true, any_value(), 0), Value(int64_t{1}), options.items, is_traced);
    });
  };
  return (time(true) - time(false)) / 16 / options.items * 1e9;
}

// Returns the median nanoseconds from a submission to the result where the pipeline and the caller sleep in between.
double time_wake(const StreamBenchOptions& options) {
  pipe::Pipeline pipeline(chain_of(1, true, any_value(), 0));
  std::vector<double> times;
  for (int i = 0; i < std::clamp(options.items / 20, 20, 1000); ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const Clock::time_point begin = Clock::now();
    pipeline.submit({Value(int64_t{1})}).wait();
    times.push_back(seconds_since(begin) * 1e9);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Returns the time of a stream of large tensors through four stages, by that of small ones: near 1 if none is copied.
double large_by_small(const StreamBenchOptions& options) {
  const auto time = [&](int64_t count) {
    const Value item(NDArray::zeros({count}, DataType::parse("uint8")));
    return best_of(options.rounds,
                   [&] { return time_stream(chain_of(4, true, bytes(count), 0), item, options.items); });
  };
  return time(int64_t{4} << 20) / time(64);
}

int sleeping_items(const StreamBenchOptions& options) { return std::clamp(options.items / 100, 10, 200); }

// Returns the seconds that a stream through sleeping stages takes at least: the slowest stage works all the time; the
// first request fills the pipeline, and the last empties it. A sleep takes longer than it is told to, so its length is
// measured.
double sleeping_bound(const StreamBenchOptions& options, size_t stages) {
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 20; ++i) std::this_thread::sleep_for(std::chrono::duration<double>(options.sleep_seconds));
  return seconds_since(begin) / 20 * static_cast<double>(sleeping_items(options) + static_cast<int>(stages) - 1);
}

Report measure_sleepers(const StreamBenchOptions& options, size_t stages) {
  const double bound = sleeping_bound(options, stages);
  const double seconds = best_of(options.rounds, [&] {
    return time_stream(chain_of(stages, false, any_value(), options.sleep_seconds), Value(int64_t{1}),
                       sleeping_items(options));
  });
  return {{"stages", Value(static_cast<int64_t>(stages))}, {"share", Value(bound / seconds)}};
}

// Measures one of the other libraries as ours is measured: one more stage, and four that sleep.
Report measure_peer(const StreamBenchOptions& options, const StreamPeer& peer) {
  const size_t many = peer.has_threads ? 2 : 17;
  const auto time = [&](size_t stages) {
    return best_of(options.rounds, [&] { return peer.time(stages, options.items, 0); });
  };
  const double hop = (time(many) - time(1)) / static_cast<double>(many - 1) / options.items * 1e9;
  const double bound = sleeping_bound(options, 4);
  const double seconds =
      best_of(options.rounds, [&] { return peer.time(4, sleeping_items(options), options.sleep_seconds); });
  return {{"name", Value(peer.name)},
          {"has_threads", Value(peer.has_threads)},
          {"hop_ns", Value(hop)},
          {"share_of_four", Value(bound / seconds)}};
}

}  // namespace

Report measure_streams(const StreamBenchOptions& options) {
  Array<Value> sleepers, peers;
  for (const size_t stages : {2, 4, 8, 16}) sleepers.push_back(Value(measure_sleepers(options, stages)));
  for (const StreamPeer& peer : stream_peers()) peers.push_back(Value(measure_peer(options, peer)));
  return {{"hop_in_group_ns", Value(time_hop(options, true))},
          {"hop_across_groups_ns", Value(time_hop(options, false))},
          {"trace_ns", Value(time_trace(options))},
          {"idle_round_trip_ns", Value(time_wake(options))},
          {"large_by_small", Value(large_by_small(options))},
          {"sleepers", Value(sleepers)},
          {"peers", Value(peers)}};
}

}  // namespace headrace::bench
