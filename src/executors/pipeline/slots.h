// The number of slots of each edge of a pipeline: how many tensors may be under way from one stage to another.
//
// A request takes a slot of an edge when the producer starts on it, since the producer writes straight into the slot,
// and gives the slot back when the consumer has finished with it. With too few slots a producer waits for a consumer
// that itself waits for the other inputs of an earlier request, and the whole pipeline slows down.
//
// Give each stage a step, a whole number such that every edge leads to a later step. The reach of an edge is the number
// of steps from its producer to its consumer: 1 on a chain. Then reach + 1 slots for every edge are enough: no stage
// runs less often than the slowest one could alone, whatever time each stage takes, as long as that time is constant.
// The steps chosen here make the sum of all reaches the least possible, and that sum is also necessary: when all stages
// take equal times, no numbers of slots with a smaller sum keep the throughput.
//
// In most pipelines the reach of an edge is the number of edges on the longest path between its ends. It is larger
// where two stages feed each other's consumers: for a -> x, a -> .. -> .. -> y, b -> y, b -> .. -> .. -> x, either
// a -> x or b -> y must hold more tensors than the longest path between its ends says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headrace::executors {

// One edge from a stage to a later stage. Inputs and outputs of the whole pipeline are not edges.
struct StageEdge {
  int32_t producer;
  int32_t consumer;
};

// The slots that an edge of reach 2 or more has beyond those it needs, so that a stage that is late once does not stop
// the producer of a long edge. An edge of reach 1 has none: its two slots already let both ends work at a time.
inline constexpr int32_t kJitterSlots = 1;

// Returns the slots of each edge, in the order of `edges`: 2 for an edge of reach 1, reach + 1 + kJitterSlots for any
// other. Stages are the numbers 0 .. num_stages-1 in an order in which every edge leads to a higher one (InternalError
// otherwise). Several edges may join the same two stages. Deterministic; made for hundreds of stages, since the time
// grows with the sum of reaches times the number of stages times the number of edges.
std::vector<int32_t> slots_of_edges(int32_t num_stages, std::span<const StageEdge> edges);

// Returns by how much to multiply the slots of each edge of a pipeline in which stage i takes up to `batches[i]`
// requests in one call, 1 for one at a time. Such a stage takes and gives as many tensors at a time. An edge that alone
// joins its two ends needs the larger batch of the two; any other edge the largest one of all, because tensors wait in
// it while a batch passes beside it.
std::vector<int32_t> batches_of_edges(std::span<const int32_t> batches, std::span<const StageEdge> edges);

}  // namespace headrace::executors
