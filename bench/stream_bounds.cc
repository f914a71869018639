#include "bench/stream_bounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "runtime/thread_pool.h"

namespace headrace::bench {

namespace {

using pipe::Clock;

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// Work whose time depends on nothing but the processor.
void compute(int64_t steps) {
  uint64_t state = 1;
  for (int64_t i = 0; i < steps; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    asm volatile("" : "+r"(state));
  }
}

// Returns how many steps take so long.
int64_t steps_of(double seconds) {
  constexpr int64_t kProbe = 2'000'000;
  const Clock::time_point begin = Clock::now();
  compute(kProbe);
  return std::max<int64_t>(1, static_cast<int64_t>(seconds / seconds_since(begin) * static_cast<double>(kProbe)));
}

// Calls a function for each request; takes any values and makes none.
class WorkStage final : public pipe::StageCode {
 public:
  WorkStage(size_t num_inputs, std::function<void()> work)
      : inputs_(num_inputs, any_value()), outputs_{any_value()}, work_(std::move(work)) {
    for (size_t i = 0; i < num_inputs; ++i) inputs_[i].spec.name = fmt::format("x{}", i);
    outputs_[0].spec.name = "y";
  }
  const std::vector<pipe::Port>& inputs() const override { return inputs_; }
  const std::vector<pipe::Port>& outputs() const override { return outputs_; }
  Ref<ErrorObj> run(std::span<const Value* const>, std::span<Value>) noexcept override {
    work_();
    return {};
  }

 private:
  std::vector<pipe::Port> inputs_, outputs_;
  std::function<void()> work_;
};

// A pipeline and its bound.
struct BoundCase {
  std::string name;
  double limit = 0.98;
  std::vector<std::function<void()>> work = {};       // one for each stage; each stage reads the one before
  std::vector<std::pair<size_t, size_t>> skips = {};  // further edges
  std::function<double(int items)> bound = {};
};

pipe::PipelineSpec spec_of(const BoundCase& one) {
  pipe::PipelineSpec spec{.inputs = {any_value()}};
  for (size_t i = 0; i < one.work.size(); ++i) {
    pipe::StageSpec stage{.name = fmt::format("s{}", i), .group = i};
    stage.inputs.push_back(i == 0 ? pipe::Source{.kind = pipe::Source::Kind::input}
                                  : pipe::Source{.kind = pipe::Source::Kind::stage, .index = i - 1});
    for (const auto& [from, to] : one.skips) {
      if (to == i) stage.inputs.push_back({.kind = pipe::Source::Kind::stage, .index = from});
    }
    stage.replicas = {std::make_shared<WorkStage>(stage.inputs.size(), one.work[i])};
    spec.stages.push_back(std::move(stage));
  }
  spec.outputs = {{.name = "y", .source = {.kind = pipe::Source::Kind::stage, .index = one.work.size() - 1}}};
  spec.groups.resize(one.work.size());
  return spec;
}

// Returns the seconds of the sleeps of the slowest stage for all items, and those of the other stages for one.
double time_sleeps(const std::vector<double>& stages, int items) {
  const double slowest = *std::max_element(stages.begin(), stages.end());
  const Clock::time_point begin = Clock::now();
  for (int i = 1; i < items; ++i) sleep(slowest);
  for (const double seconds : stages) sleep(seconds);
  return seconds_since(begin);
}

BoundCase sleeping(std::string name, const std::vector<double>& stages,
                   std::vector<std::pair<size_t, size_t>> skips = {}) {
  BoundCase made{.name = std::move(name), .skips = std::move(skips)};
  for (const double seconds : stages) made.work.emplace_back([seconds] { sleep(seconds); });
  made.bound = [stages](int items) { return time_sleeps(stages, items); };
  return made;
}

// Returns the seconds in which two threads do the work of all stages together.
double time_two_copies(int64_t steps, size_t stages, int items) {
  // Each thread has half of the work. At the begin and at the end only one stage has a request, for the time of a call.
  const auto calls = static_cast<size_t>(items) * stages / 2 + 1;
  const auto work = [&] {
    for (size_t i = 0; i < calls; ++i) compute(steps);
  };
  const Clock::time_point begin = Clock::now();
  std::thread other(work);
  work();
  other.join();
  return seconds_since(begin);
}

BoundCase computing(size_t stages, double seconds) {
  const int64_t steps = steps_of(seconds);
  BoundCase made{.name = fmt::format("{} computing stages, two processors", stages), .limit = 0.95};
  made.work.assign(stages, [steps] { compute(steps); });
  made.bound = [=](int items) { return time_two_copies(steps, stages, items); };
  return made;
}

std::vector<BoundCase> make_cases(double seconds) {
  std::vector<BoundCase> cases;
  for (const size_t stages : {2, 4, 8, 16})
    cases.push_back(sleeping(fmt::format("{} sleeping stages", stages), std::vector<double>(stages, seconds)));
  cases.push_back(sleeping("8 sleeping stages, edges that skip 7, 3 and 2", std::vector<double>(8, seconds),
                           {{0, 7}, {1, 4}, {2, 4}, {5, 7}}));
  std::vector<double> unequal(16, seconds / 2);
  for (size_t i = 0; i < unequal.size(); i += 3) unequal[i] = seconds / 4;
  unequal[9] = seconds;
  cases.push_back(sleeping("16 sleeping stages of unequal times", unequal));
  if (runtime::num_processors() >= 2) {
    for (const size_t stages : {2, 4}) cases.push_back(computing(stages, seconds));
  }
  return cases;
}

Value row_of(const BoundCase& one, const Shares& shares) {
  return Value(tools::Report{{"name", Value(one.name)},
                             {"stages", Value(static_cast<int64_t>(one.work.size()))},
                             {"share", Value(shares.median())},
                             {"share_low", Value(shares.low())},
                             {"share_high", Value(shares.high())},
                             {"limit", Value(one.limit)},
                             {"holds", Value(shares.high() >= one.limit)}});
}

}  // namespace

void Shares::add(double share) { sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), share), share); }

double Shares::median() const {
  const size_t count = sorted_.size();
  return (sorted_[(count - 1) / 2] + sorted_[count / 2]) / 2;
}

// The largest rank k, from 0, for which at most 2.5 % of all rounds have k or fewer values below the median: the
// binomial distribution with probability 1/2.
size_t Shares::rank() const {
  const auto count = static_cast<double>(sorted_.size());
  double term = std::pow(0.5, count), sum = term;
  size_t rank = 0;
  while (true) {
    term *= (count - static_cast<double>(rank)) / (static_cast<double>(rank) + 1);
    if (sum + term > 0.025 || rank + 1 >= sorted_.size() / 2) return rank;
    sum += term;
    ++rank;
  }
}

Bounds measure_bounds(const StreamBenchOptions& options, const std::vector<StreamPeer>& peers) {
  const int items = std::clamp(options.items / 100, 10, 200);
  const std::vector<BoundCase> cases = make_cases(options.sleep_seconds);
  const std::vector<double> four(4, options.sleep_seconds);
  std::vector<Shares> shares(cases.size());
  Bounds made;
  made.peers.resize(peers.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const double bound = cases[i].bound(items);
      shares[i].add(bound / time_stream(spec_of(cases[i]), Value(int64_t{1}), items));
    }
    for (size_t i = 0; i < peers.size(); ++i) {
      const double bound = time_sleeps(four, items);
      made.peers[i].add(bound / peers[i].time(4, items, options.sleep_seconds));
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) made.rows.push_back(row_of(cases[i], shares[i]));
  made.four = shares[1];
  return made;
}

}  // namespace headrace::bench
