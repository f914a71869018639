// The op attributes that more than one room above reads: fusion kind and reference evaluation.
#pragma once

#include "ops/eval_work.h"
#include "relay/op_keys.h"

namespace headrace::ops {

// How an op may take part in a fused group, from the most to the least willing.
enum class FusionKind : uint8_t {
  elementwise = 0,  // output i reads input i only
  broadcast = 1,    // as elementwise, after broadcasting
  injective = 2,    // each output element reads one element of each input: transpose, slice
  reduction = 3,    // reduces an injective prologue: sum
  anchor = 4,       // heavy; takes elementwise epilogues: conv2d
  tuple = 7,
  opaque = 8,  // never fused
};
inline constexpr OpKey<FusionKind> kFusionKind{"FusionKind"};

// The input of a reference evaluation. Tensors are dense and on the CPU.
struct EvalInput {
  const relay::CallNode& call;
  std::vector<NDArray> args;          // tuples flattened in order
  std::vector<TensorType> arg_types;  // concrete types of args
  std::vector<TensorType>
      out_types;             // concrete types of the results; a float64 run has float64 where the call says float32
  EvalWork* work = nullptr;  // null: without limits, on the calling thread

  template <typename T>
  const T& attrs() const {
    return call.attrs_as<T>();
  }
  // Makes a new tensor for result i.
  NDArray make_output(size_t i = 0) const;
  // Counts work beyond one step for each element that is read or written; see EvalWork. Call it in the loops of ops
  // whose work is more than their operands and results are large.
  void spend(int64_t steps) const {
    if (work != nullptr) work->spend(steps);
  }
  void for_each_part(int64_t count, double steps_each, const std::function<void(int64_t, int64_t)>& body) const {
    if (work == nullptr) return body(0, count);
    work->for_each_part(count, steps_each, body);
  }
};

// Defines the op: plain loops, accumulation in the output's dtype (float16 and bfloat16 accumulate in float32), no
// reassociation. Gives one tensor a result.
using EvalFn = std::function<std::vector<NDArray>(const EvalInput&)>;
inline constexpr OpKey<EvalFn> kEval{"Eval"};

using relay::kStateful;

}  // namespace headrace::ops
