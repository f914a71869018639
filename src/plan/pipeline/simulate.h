// Predicts how a pipeline runs: a simulation of its stages, request by request, in virtual time.
//
// A stage starts on its next request, in the order of requests, as soon as
//   the request is there    it has arrived, or each stage before has delivered it,
//   a slot is free          on each edge that leaves the stage; it is given back when the consumer has finished,
//   a replica is free       a stage runs at most `replicas` requests at a time,
//   a server is free        of the stage's group: a device, or a set of cores, that its stages share. Of several stages
//                           that could start, the one with the oldest request does; of equal ones the first.
// Replicas deliver in the order of requests: a result waits for those of earlier requests.
#pragma once

#include "plan/pipeline/split.h"

namespace headrace::plan {

struct SimulatedGroup {
  std::string name{};
  int32_t servers = 1;  // requests that its stages run at a time
};

struct SimulatedStage {
  std::string name{};
  int32_t group = 0;
  int32_t replicas = 1;
  std::vector<int64_t> service_ns{};  // request n takes the number n modulo their count
};

struct SimulatedEdge {
  int32_t producer = 0, consumer = 0;
  int32_t slots = 2;
};

struct PipelineModel {
  std::vector<SimulatedGroup> groups{};
  std::vector<SimulatedStage> stages{};  // every edge leads to a later one
  std::vector<SimulatedEdge> edges{};
  int32_t max_inflight = 0;  // requests between the start of their first stage and the end of their last; 0: no limit
};

struct SimulationOptions {
  // When each request comes, ascending. Empty: requests always wait, and the run is measured over `requests` of them
  // after `warm_up` others.
  std::vector<int64_t> arrivals_ns{};
  int32_t requests = 1000;
  int32_t warm_up = 200;
};

// Times of a stage as shares of the time measured, of all its replicas; they add up to 1.
struct StageLoad {
  double busy = 0;
  double starved = 0;  // the next request is not there
  double blocked = 0;  // no slot is free
  double waiting = 0;  // another stage has the group
};

struct Simulation {
  int64_t measured_ns = 0;
  int32_t requests = 0;  // finished in that time
  double requests_per_second = 0;
  // From the arrival of a request, or without arrivals from its start, to its end. Nearest rank.
  int64_t latency_p50_ns = 0, latency_p90_ns = 0, latency_p99_ns = 0, latency_max_ns = 0;
  std::vector<StageLoad> stages;
  std::vector<int64_t> finished_ns;  // by request, from the first one on, warm-up included
  // A group, or its only stage, that is busy at least 95 % of the time, the busiest one; otherwise the edge whose slots
  // block its producer longest; otherwise the arrivals.
  std::string bottleneck;
};

// Runs the model. UserError, with the stage, group or edge as its place, for numbers out of range. Takes time in
// proportion to requests times stages and edges.
Simulation simulate(const PipelineModel& model, const SimulationOptions& options = {});

// Returns the model of a plan: a group for each stage, with the stage's time for each request, and an edge for each two
// stages between which tensors flow. Its slots are those of executors/pipeline/slots.h, and one more for each further
// replica of both ends. max_inflight has no limit.
PipelineModel model_of_plan(const SplitProblem& problem, const SplitPlan& plan);

// Returns the simulation as a table of the stages, with throughput, latencies and the bottleneck.
std::string format_simulation(const PipelineModel& model, const Simulation& simulation);

}  // namespace headrace::plan
