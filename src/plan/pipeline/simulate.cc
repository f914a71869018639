#include "plan/pipeline/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

#include "base/error.h"
#include "executors/pipeline/slots.h"

namespace headrace::plan {
namespace {

size_t to_index(int32_t number) { return static_cast<size_t>(number); }

void check_model(const PipelineModel& model, const SimulationOptions& options) {
  const auto refuse = [](const std::string& place, const std::string& message) {
    throw UserError(message, {.op = {}, .place = place});
  };
  if (model.stages.empty()) throw_user_error("there is no stage to simulate");
  for (const SimulatedGroup& group : model.groups) {
    if (group.servers < 1) refuse("group " + group.name, fmt::format("it has {} servers, below 1", group.servers));
  }
  for (const SimulatedStage& stage : model.stages) {
    const std::string place = "stage " + stage.name;
    if (stage.group < 0 || to_index(stage.group) >= model.groups.size())
      refuse(place, fmt::format("its group is {}, there are {} groups", stage.group, model.groups.size()));
    if (stage.replicas < 1) refuse(place, fmt::format("it has {} replicas, below 1", stage.replicas));
    if (stage.service_ns.empty()) refuse(place, "it has no service time");
    for (const int64_t time : stage.service_ns) {
      if (time < 0) refuse(place, fmt::format("a service time is {} ns", time));
    }
  }
  for (size_t i = 0; i < model.edges.size(); ++i) {
    const SimulatedEdge& edge = model.edges[i];
    const std::string place = fmt::format("edges[{}]", i);
    if (edge.producer < 0 || edge.consumer <= edge.producer || to_index(edge.consumer) >= model.stages.size())
      refuse(place, fmt::format("it leads from stage {} to stage {} of {}, which must come later", edge.producer,
                                edge.consumer, model.stages.size()));
    if (edge.slots < 1) refuse(place, fmt::format("it has {} slots, below 1", edge.slots));
  }
  if (model.max_inflight < 0) throw_user_error("max_inflight is {}", model.max_inflight);
  if (options.requests < 1 || options.warm_up < 0)
    throw_user_error("{} requests after {} cannot be measured", options.requests, options.warm_up);
  if (!std::is_sorted(options.arrivals_ns.begin(), options.arrivals_ns.end()))
    throw_user_error("the arrivals are not in ascending order");
}

enum class Hindrance : uint8_t { starved, blocked, waiting };

class Simulator {
 public:
  Simulator(const PipelineModel& model, const SimulationOptions& options)
      : model_(model),
        options_(options),
        total_(options.arrivals_ns.empty() ? options.warm_up + options.requests
                                           : static_cast<int32_t>(options.arrivals_ns.size())),
        first_measured_(options.arrivals_ns.empty() ? options.warm_up : 0),
        stages_(model.stages.size()),
        busy_servers_(model.groups.size(), 0),
        free_slots_(model.edges.size(), 0),
        blocked_ns_(model.edges.size(), 0) {
    for (size_t i = 0; i < model.edges.size(); ++i) {
      free_slots_[i] = model.edges[i].slots;
      stages_[to_index(model.edges[i].producer)].out.push_back(i);
      stages_[to_index(model.edges[i].consumer)].in.push_back(i);
    }
    for (const State& stage : stages_) num_ends_ += stage.out.empty() ? 1 : 0;
  }

  Simulation run() {
    if (first_measured_ == 0) measured_from_ = 0;
    start_stages();
    while (static_cast<int32_t>(finished_ns_.size()) < total_) {
      const int64_t next = next_time();
      account(next - now_);
      now_ = next;
      while (!running_.empty() && running_.top().time == now_) {
        const Running done = running_.top();
        running_.pop();
        finish(done.stage, done.request);
      }
      start_stages();
    }
    return result();
  }

 private:
  struct Running {
    int64_t time;
    int32_t request, stage;
    bool operator>(const Running& other) const {
      return std::tie(time, request, stage) > std::tie(other.time, other.request, other.stage);
    }
  };
  struct State {
    std::vector<size_t> in, out;  // edges
    int32_t next = 0;             // request to start
    int32_t running = 0;
    int32_t delivered = 0;       // requests that are finished with all before them
    std::vector<int32_t> early;  // finished before an earlier one, ascending
    Hindrance hindrance = Hindrance::starved;
    size_t blocking_edge = 0;
    int64_t busy_ns = 0;
    int64_t idle_ns[3] = {0, 0, 0};  // by hindrance
  };

  bool is_saturated() const { return options_.arrivals_ns.empty(); }

  bool has_come(int32_t request) const {
    if (is_saturated()) return true;
    return request < total_ && options_.arrivals_ns[to_index(request)] <= now_;
  }

  bool is_admitted(int32_t request) const {
    return model_.max_inflight == 0 || request < static_cast<int32_t>(finished_ns_.size()) + model_.max_inflight;
  }

  // Returns whether the stage can start its next request, apart from its group; says why not.
  bool is_ready(State& stage, int32_t replicas) const {
    stage.hindrance = Hindrance::starved;
    if (stage.running == replicas) return false;
    if (stage.in.empty() && (!has_come(stage.next) || !is_admitted(stage.next))) return false;
    for (const size_t edge : stage.in) {
      if (stages_[to_index(model_.edges[edge].producer)].delivered <= stage.next) return false;
    }
    for (const size_t edge : stage.out) {
      if (free_slots_[edge] > 0) continue;
      stage.hindrance = Hindrance::blocked;
      stage.blocking_edge = edge;
      return false;
    }
    stage.hindrance = Hindrance::waiting;
    return true;
  }

  // Starts what can start, the oldest request first.
  void start_stages() {
    for (bool more = true; more;) {
      more = false;
      int32_t chosen = -1;
      for (int32_t i = 0; i < static_cast<int32_t>(stages_.size()); ++i) {
        const SimulatedStage& one = model_.stages[to_index(i)];
        const bool has_server = busy_servers_[to_index(one.group)] < model_.groups[to_index(one.group)].servers;
        if (is_ready(stages_[to_index(i)], one.replicas) && has_server &&
            (chosen < 0 || stages_[to_index(i)].next < stages_[to_index(chosen)].next))
          chosen = i;
      }
      if (chosen < 0) return;
      start(chosen);
      more = true;
    }
  }

  void start(int32_t number) {
    State& stage = stages_[to_index(number)];
    const SimulatedStage& one = model_.stages[to_index(number)];
    const int32_t request = stage.next++;
    ++stage.running;
    ++busy_servers_[to_index(one.group)];
    for (const size_t edge : stage.out) --free_slots_[edge];
    if (to_index(request) >= started_ns_.size()) {
      started_ns_.push_back(now_);
      ends_left_.push_back(num_ends_);
    }
    running_.push({now_ + one.service_ns[to_index(request) % one.service_ns.size()], request, number});
  }

  void finish(int32_t number, int32_t request) {
    State& stage = stages_[to_index(number)];
    --stage.running;
    --busy_servers_[to_index(model_.stages[to_index(number)].group)];
    for (const size_t edge : stage.in) ++free_slots_[edge];
    stage.early.insert(std::lower_bound(stage.early.begin(), stage.early.end(), request), request);
    while (!stage.early.empty() && stage.early.front() == stage.delivered) {
      stage.early.erase(stage.early.begin());
      if (stage.out.empty()) --ends_left_[to_index(stage.delivered)];
      ++stage.delivered;
    }
    while (finished_ns_.size() < ends_left_.size() && ends_left_[finished_ns_.size()] == 0) {
      finished_ns_.push_back(now_);
      if (static_cast<int32_t>(finished_ns_.size()) == first_measured_) begin_measuring();
    }
  }

  void begin_measuring() {
    measured_from_ = now_;
    for (State& stage : stages_) {
      stage.busy_ns = 0;
      std::fill(std::begin(stage.idle_ns), std::end(stage.idle_ns), 0);
    }
    std::fill(blocked_ns_.begin(), blocked_ns_.end(), 0);
  }

  // Returns when something ends or a request comes.
  int64_t next_time() const {
    int64_t next = running_.empty() ? INT64_MAX : running_.top().time;
    const auto coming = std::upper_bound(options_.arrivals_ns.begin(), options_.arrivals_ns.end(), now_);
    if (coming != options_.arrivals_ns.end()) next = std::min(next, *coming);
    HEADRACE_CHECK(next != INT64_MAX, "the simulation waits for nothing after {} requests", finished_ns_.size());
    return next;
  }

  void account(int64_t time_ns) {
    for (size_t i = 0; i < stages_.size(); ++i) {
      State& stage = stages_[i];
      const int32_t idle = model_.stages[i].replicas - stage.running;
      stage.busy_ns += time_ns * stage.running;
      stage.idle_ns[static_cast<size_t>(stage.hindrance)] += time_ns * idle;
      if (idle > 0 && stage.hindrance == Hindrance::blocked) blocked_ns_[stage.blocking_edge] += time_ns;
    }
  }

  Simulation result() {
    Simulation made;
    made.measured_ns = now_ - measured_from_;
    made.requests = total_ - first_measured_;
    if (made.measured_ns > 0) made.requests_per_second = made.requests * 1e9 / static_cast<double>(made.measured_ns);
    std::vector<int64_t> latencies;
    for (size_t i = to_index(first_measured_); i < to_index(total_); ++i)
      latencies.push_back(finished_ns_[i] - (is_saturated() ? started_ns_[i] : options_.arrivals_ns[i]));
    std::sort(latencies.begin(), latencies.end());
    const auto percentile = [&](size_t percent) { return latencies[(latencies.size() * percent + 99) / 100 - 1]; };
    made.latency_p50_ns = percentile(50);
    made.latency_p90_ns = percentile(90);
    made.latency_p99_ns = percentile(99);
    made.latency_max_ns = latencies.back();
    for (size_t i = 0; i < stages_.size(); ++i) {
      const double whole = static_cast<double>(std::max<int64_t>(made.measured_ns, 1)) * model_.stages[i].replicas;
      const auto share = [&](int64_t time) { return static_cast<double>(time) / whole; };
      const State& stage = stages_[i];
      made.stages.push_back(
          {share(stage.busy_ns), share(stage.idle_ns[0]), share(stage.idle_ns[1]), share(stage.idle_ns[2])});
    }
    made.bottleneck = find_bottleneck(made.measured_ns);
    finished_ns_.resize(to_index(total_));
    made.finished_ns = std::move(finished_ns_);
    return made;
  }

  std::string find_bottleneck(int64_t measured_ns) const {
    size_t busiest = 0;
    double most = -1;
    for (size_t group = 0; group < model_.groups.size(); ++group) {
      double busy = 0;
      for (size_t i = 0; i < stages_.size(); ++i)
        busy += to_index(model_.stages[i].group) == group ? static_cast<double>(stages_[i].busy_ns) : 0;
      busy /= model_.groups[group].servers;
      if (busy <= most) continue;
      most = busy;
      busiest = group;
    }
    if (most >= 0.95 * static_cast<double>(measured_ns)) return group_label(busiest);
    const auto edge = std::max_element(blocked_ns_.begin(), blocked_ns_.end());
    if (edge == blocked_ns_.end() || *edge == 0) return "the arrivals";
    const SimulatedEdge& one = model_.edges[static_cast<size_t>(edge - blocked_ns_.begin())];
    return fmt::format("the edge '{}' -> '{}' with {} slot{}", model_.stages[to_index(one.producer)].name,
                       model_.stages[to_index(one.consumer)].name, one.slots, one.slots == 1 ? "" : "s");
  }

  std::string group_label(size_t group) const {
    std::string names;
    int count = 0;
    for (const SimulatedStage& stage : model_.stages) {
      if (to_index(stage.group) != group) continue;
      names += fmt::format("{}'{}'", count++ == 0 ? "" : ", ", stage.name);
    }
    if (count == 1) return "stage " + names;
    return fmt::format("group '{}' with the stages {}", model_.groups[group].name, names);
  }

  const PipelineModel& model_;
  const SimulationOptions& options_;
  int32_t total_, first_measured_;
  std::vector<State> stages_;
  std::vector<int32_t> busy_servers_;  // by group
  std::vector<int32_t> free_slots_;    // by edge
  std::vector<int64_t> blocked_ns_;    // by edge: how long its producer waited for a slot
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  int32_t num_ends_ = 0;  // stages that nothing reads
  int64_t now_ = 0, measured_from_ = 0;
  std::vector<int64_t> started_ns_, finished_ns_;  // by request
  std::vector<int32_t> ends_left_;                 // by request: last stages that have not delivered it
};

}  // namespace

Simulation simulate(const PipelineModel& model, const SimulationOptions& options) {
  check_model(model, options);
  return Simulator(model, options).run();
}

PipelineModel model_of_plan(const SplitProblem& problem, const SplitPlan& plan) {
  PipelineModel model;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const SplitStage& stage = plan.stages[i];
    const auto replicas = static_cast<int32_t>(stage.devices.size());
    std::string devices;
    for (const int32_t device : stage.devices)
      devices += fmt::format("{}{}", devices.empty() ? "" : ",", problem.devices[to_index(device)].name);
    model.groups.push_back({.name = devices, .servers = replicas});
    model.stages.push_back({.name = fmt::format("stage{}", i),
                            .group = static_cast<int32_t>(i),
                            .replicas = replicas,
                            .service_ns = {stage.time_ns}});
  }
  std::set<std::pair<int32_t, int32_t>> pairs;
  for (const SplitTensor& tensor : problem.tensors) {
    if (problem.nodes[to_index(tensor.producer)].is_constant) continue;
    const int32_t from = plan.stage_of_node[to_index(tensor.producer)];
    for (const int32_t consumer : tensor.consumers) {
      const int32_t to = plan.stage_of_node[to_index(consumer)];
      if (from != to) pairs.emplace(from, to);
    }
  }
  std::vector<executors::StageEdge> edges;
  for (const auto& [from, to] : pairs) edges.push_back({from, to});
  const std::vector<int32_t> slots = executors::slots_of_edges(static_cast<int32_t>(plan.stages.size()), edges);
  for (size_t i = 0; i < edges.size(); ++i) {
    const int32_t further =
        model.stages[to_index(edges[i].producer)].replicas + model.stages[to_index(edges[i].consumer)].replicas - 2;
    model.edges.push_back({edges[i].producer, edges[i].consumer, slots[i] + further});
  }
  return model;
}

}  // namespace headrace::plan
