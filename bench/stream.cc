#include "bench/stream.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <thread>

#include "bench/stream_bounds.h"
#include "bench/stream_peers.h"
#include "cost/probes.h"
#include "kit/hop_harness.h"
#include "object/array.h"

namespace headrace::bench {

namespace {

using pipe::Clock;
using pipe::Port;
using tools::Report;

pipe::PipelineSpec empty_chain(size_t stages, bool one_group, const Port& port) {
  std::vector<std::shared_ptr<pipe::StageCode>> codes(stages);
  for (auto& code : codes) code = std::make_shared<kit::EmptyStage>(port);
  return kit::chain_spec(codes, one_group);
}

// A time that is measured once a round, by the best of which it counts.
struct BestTime {
  std::function<double()> measure;
  double best = std::numeric_limits<double>::infinity();
};

// The cost of one more stage: the time of a stream through `many` stages without that of one.
struct Hop {
  size_t many = 2;
  BestTime one, more;

  double nanoseconds(int items) const {
    return (more.best - one.best) / static_cast<double>(many - 1) / static_cast<double>(items) * 1e9;
  }
};

// So many stages that noise is small beside their cost, and that queues between threads are used.
size_t many_stages(bool has_threads) { return has_threads ? 5 : 17; }

Hop our_hop(const StreamBenchOptions& options, bool one_group) {
  const auto time = [=](size_t stages) {
    return time_stream(empty_chain(stages, one_group, any_value()), Value(int64_t{1}), options.items);
  };
  const size_t many = many_stages(!one_group);
  return {.many = many, .one = {[=] { return time(1); }}, .more = {[=] { return time(many); }}};
}

Hop peer_hop(const StreamBenchOptions& options, const StreamPeer& peer) {
  const size_t many = many_stages(peer.has_threads);
  const auto time = [time = peer.time, items = options.items](size_t stages) { return time(stages, items, 0); };
  return {.many = many, .one = {[=] { return time(1); }}, .more = {[=] { return time(many); }}};
}

Value count_hop(bool one_group) {
  const std::optional<double> count = kit::count_hop(one_group);
  return count ? Value(*count) : Value();
}

// Returns the median nanoseconds from a submission to the result where the pipeline and the caller sleep in between.
double time_wake(const StreamBenchOptions& options) {
  pipe::Pipeline pipeline(empty_chain(1, true, any_value()));
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

// Measures one of the other libraries as ours is measured: one more stage, and four that sleep.
Report report_of_peer(const StreamPeer& peer, const StreamBenchOptions& options, const Hop& hop, double our_hop_ns,
                      const Shares& four, const Shares& our_four) {
  const double hop_ns = hop.nanoseconds(options.items);
  return {{"name", Value(peer.name)},
          {"has_threads", Value(peer.has_threads)},
          {"hop_ns", Value(hop_ns)},
          {"hop_ratio", hop_ns > 0 ? Value(our_hop_ns / hop_ns) : Value()},
          {"share_of_four", Value(four.median())},
          {"share_ratio", Value(our_four.median() / four.median())}};
}

}  // namespace

double time_stream(pipe::PipelineSpec spec, const Value& item, int items, bool is_traced) {
  constexpr size_t kAhead = 64;
  pipe::Pipeline pipeline(std::move(spec), {.max_inflight = kAhead});
  if (is_traced) pipeline.start_trace();
  std::deque<pipe::Ticket> ahead;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < items; ++i) {
    if (ahead.size() == kAhead) {  // half of them, so that the caller is not woken for each
      ahead[kAhead / 2 - 1].wait();
      ahead.erase(ahead.begin(), ahead.begin() + kAhead / 2);
    }
    ahead.push_back(pipeline.submit({item}, {.keeps_inputs = true}));
  }
  for (const pipe::Ticket& ticket : ahead) ticket.wait();
  return seconds_since(begin);
}

// The nanoseconds until a store on one core is visible on another; nothing on a machine of one core.
Value core_to_core_hop() {
  const std::optional<double> nanoseconds = cost::hop_nanoseconds(0.1);
  return nanoseconds ? Value(*nanoseconds) : Value();
}

Report measure_streams(const StreamBenchOptions& options) {
  const Value hop_before = core_to_core_hop();
  const std::vector<StreamPeer> peers = stream_peers();
  Hop in_group = our_hop(options, true), across = our_hop(options, false);
  BestTime traced{
      [&] { return time_stream(empty_chain(17, true, any_value()), Value(int64_t{1}), options.items, true); }};
  const Value small(NDArray::zeros({64}, DataType::parse("uint8")));
  const Value large(NDArray::zeros({int64_t{4} << 20}, DataType::parse("uint8")));
  BestTime of_small{[&] { return time_stream(empty_chain(4, true, bytes(64)), small, options.items); }};
  BestTime of_large{[&] { return time_stream(empty_chain(4, true, bytes(int64_t{4} << 20)), large, options.items); }};
  std::vector<Hop> of_peers;
  for (const StreamPeer& peer : peers) of_peers.push_back(peer_hop(options, peer));
  std::vector<BestTime*> all{&in_group.one, &in_group.more, &across.one, &across.more, &traced, &of_small, &of_large};
  for (Hop& hop : of_peers) all.insert(all.end(), {&hop.one, &hop.more});
  for (int round = 0; round < options.rounds; ++round) {
    for (BestTime* timed : all) timed->best = std::min(timed->best, timed->measure());
  }
  const Bounds bounds = measure_bounds(options, peers);
  const double in_group_ns = in_group.nanoseconds(options.items), across_ns = across.nanoseconds(options.items);
  Array<Value> rows_of_peers;
  for (size_t i = 0; i < peers.size(); ++i)
    rows_of_peers.push_back(Value(report_of_peer(
        peers[i], options, of_peers[i], peers[i].has_threads ? across_ns : in_group_ns, bounds.peers[i], bounds.four)));
  return {{"hop_in_group_ns", Value(in_group_ns)},
          {"hop_across_groups_ns", Value(across_ns)},
          {"hop_in_group_instructions", count_hop(true)},
          {"hop_across_groups_instructions", count_hop(false)},
          {"trace_ns", Value((traced.best - in_group.more.best) / 17 / options.items * 1e9)},
          {"idle_round_trip_ns", Value(time_wake(options))},
          {"large_by_small", Value(of_large.best / of_small.best)},
          {"bounds", Value(bounds.rows)},
          {"peers", Value(rows_of_peers)},
          {"hop_nanoseconds", Value(Array<Value>{hop_before, core_to_core_hop()})}};
}

}  // namespace headrace::bench
