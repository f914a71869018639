// Splits a graph of operators into the stages of a pipeline over several devices, so that the slowest stage is as fast
// as possible.
//
//   time of a stage   = compute + transfers in + transfers out; on a device whose transfers overlap with its compute:
//                       max(compute, transfers in + transfers out)
//   transfers in      = over the tensors that the stage reads from other stages: the time of the link, once for each
//   transfers out     = over the tensors that the stage makes: the time of the link, once for each stage that reads it
//   period of a stage = time / replicas, rounded up; a replica is one more device of the same class (below)
//   memory of a stage = constants, each once + working memory + slots * the bytes of each tensor that it reads from or
//                       makes for other stages; the slots are those that the pipeline allocates for a tensor
//                       (executors/pipeline/slots.h): the most that one of its edges needs, and one for each replica
//                       but one at both ends
//   working memory    = the most of one node: its own working memory + the buffers that it holds or writes. A buffer
//                       lies in the stage that has its producer and all its consumers, and in none when they are in
//                       several. Of nodes that must share a stage with others, only buffers among these nodes count.
//   period of a plan  = the greatest period of a stage
//
// A stage has at least one device and no device has two stages. Every tensor leads from a stage to the same or a later
// one, so that a stage can compute when all its inputs are there. Nodes without time on a device's kind never lie
// there. Two devices are of one class when they differ in nothing but their names: kind, memory, overlap, links.
//
// Before the search, constants join the stages that read them, and nodes that must share a stage become one unit,
// together with all nodes on paths between them. Then:
//   downsets  up to max_downsets sets of units that could have been computed first: dynamic programming over all pairs
//             of them, then a search that settles what the pairs do not know (which stages read a tensor, and over
//             which links). Exact, unless the search is cut short.
//   orders    beyond it: the best cuts of five topological orders, by the same dynamic programming over each; single
//             units are then moved between stages, and random orders that keep the stages are cut again.
//             Its lower bound is raised until the gap is 1 % or the steps for it are used up (tighten.h), which may
//             also find a shorter plan.
//   cuts      past max_ordered_nodes units: as `orders`, over few cuts, namely those that the fewest bytes cross.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::plan {

inline constexpr int64_t kCannotRun = -1;
inline constexpr int64_t kNoMemoryLimit = INT64_MAX;
inline constexpr int64_t kBorderCopies = 2;  // the fewest slots of a tensor; on a chain without replicas all have these

struct SplitNode {
  std::string name{};
  std::vector<int64_t> time_ns{};  // by kind of device; kCannotRun
  int64_t constant_bytes = 0;
  int64_t working_bytes = 0;
  bool is_constant = false;  // each stage that reads it holds its constant_bytes; has no inputs, takes no time
  // The buffer that is written while the node runs and that it does not consume; -1 for none. It may be that of a later
  // node with which it is computed in one go.
  int32_t buffer = -1;
};

struct SplitTensor {
  int32_t producer = 0;
  std::vector<int32_t> consumers{};
  int64_t size_bytes = 0;
};

// Memory for a tensor that a stage keeps for itself, held while its consumers run; none of its nodes is a constant.
struct SplitBuffer {
  int32_t producer = 0;
  std::vector<int32_t> consumers{};
  int64_t size_bytes = 0;
};

// One direction between two devices. A transfer of n bytes takes latency + n / bandwidth.
struct SplitLink {
  int64_t bytes_per_second = 0;  // 0: no limit
  int64_t latency_ns = 0;
};

struct SplitDevice {
  std::string name{};
  int32_t kind = 0;
  int64_t memory_bytes = kNoMemoryLimit;
  bool overlaps = false;  // transfers run beside compute
  std::vector<SplitLink>
      links{};  // to each device, by its number; that to itself is not used. Empty: transfers are free
};

struct SplitProblem {
  std::vector<std::string> kinds{};  // names
  std::vector<SplitNode> nodes{};
  std::vector<SplitTensor> tensors{};
  std::vector<SplitBuffer> buffers{};
  std::vector<std::vector<int32_t>> colocated{};  // nodes of each list share a stage
  std::vector<SplitDevice> devices{};
  int32_t max_replicas = 1;  // limit per stage
};

struct SplitOptions {
  int32_t max_downsets = 5000;
  int32_t max_ordered_nodes = 20'000;
  int32_t restarts = 8;                   // random orders of the method `orders`
  int64_t max_steps = 500'000;            // limit for the search after the dynamic programming over downsets
  int64_t max_bound_steps = 600'000'000;  // limit for the lower bound of `orders`: arcs of networks
  uint64_t seed = 1;
};

enum class SplitMethod : uint8_t { downsets, orders, cuts };
std::string_view to_string(SplitMethod method);

struct SplitStage {
  std::vector<int32_t> devices{};  // all in one class; as many as replicas
  int32_t num_nodes = 0;
  int64_t compute_ns = 0;
  int64_t transfer_in_ns = 0;
  int64_t transfer_out_ns = 0;
  int64_t time_ns = 0;
  int64_t period_ns = 0;
  int64_t memory_bytes = 0;  // on each of its devices
};

struct SplitPlan {
  std::vector<int32_t> stage_of_node;  // a constant has the first stage that reads it
  std::vector<SplitStage> stages;
  int64_t period_ns = 0;
  int64_t lower_bound_ns = 0;  // no plan has a shorter period
  SplitMethod method = SplitMethod::downsets;
  int32_t num_units = 0;
  int32_t num_downsets = 0;  // 0 when there are more than max_downsets

  bool is_optimal() const { return period_ns == lower_bound_ns; }
  // Returns how far the period may be above the best one, as a share of the lower bound.
  double gap() const;
};

// Returns a plan of short period. UserError with the node, device or list as its place: a number out of range, a node
// that no device can run, nodes that must share a stage that no device can run, a cycle, a constant with inputs or in
// `colocated`, and when no device has the memory for a node, or no plan is found that fits into the devices' memory.
// Deterministic: the same problem and options give the same plan.
SplitPlan split_pipeline(const SplitProblem& problem, const SplitOptions& options = {});

// Returns the plan as a table of the stages, the memory of each device, and the period with its bound.
std::string format_plan(const SplitProblem& problem, const SplitPlan& plan);

}  // namespace headrace::plan
