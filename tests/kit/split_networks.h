// Graphs of operators shaped like published networks, for the planner of pipelines (plan/pipeline/split.h): the
// operators, their order, and times and sizes from their dimensions; no weights and no code.
#pragma once

#include "plan/pipeline/split.h"

namespace headrace::kit {

// Devices that all graphs run on: `gpus` accelerators of one class, and a slower processor when `with_cpu` is set.
// Links take 5 us besides.
struct SplitMachine {
  int32_t gpus = 4;
  bool with_cpu = false;
  bool overlaps = false;
  int64_t bytes_per_second = 12'000'000'000;    // bandwidth of each link; PCIe 3.0. NVLink has 150 GB/s
  int64_t memory_bytes = plan::kNoMemoryLimit;  // memory of an accelerator
};

// Forward, backward and weight updates, one node for each operator; a batch of 32 pictures.
plan::SplitProblem resnet50_training(const SplitMachine& machine);
// Inception-v3. With `fused` a convolution, its norm and its activation are one node.
plan::SplitProblem inception(const SplitMachine& machine, bool fused);
// 24 layers of attention with 1,024 features over 384 words. Training adds a backward node for each operator.
plan::SplitProblem bert24(const SplitMachine& machine, bool training);
// Translation with 8 recurrent layers on each side, unrolled over `words` steps; one node for each cell.
plan::SplitProblem gnmt(const SplitMachine& machine, int32_t words);
// Residual blocks of 7 nodes, about `nodes` nodes in all.
plan::SplitProblem residual_stack(const SplitMachine& machine, int32_t nodes);

}  // namespace headrace::kit
