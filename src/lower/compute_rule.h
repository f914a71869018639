// A compute rule returns an op's compute form (tir/compute.h), element by element. Each op has one rule, a row in
// all_rules.cc.
#pragma once

#include "ops/op_keys.h"
#include "tir/compute.h"

namespace headrace::lower {

struct RuleInput {
  const relay::CallNode& call;
  std::vector<Buffer> inputs;         // tuples flattened in order
  std::vector<TensorType> in_types;   // of `inputs`
  std::vector<TensorType> out_types;  // tuples flattened

  template <typename T>
  const T& attrs() const {
    return call.attrs_as<T>();
  }
  // Makes a buffer with the type and name of result i.
  Buffer make_output(size_t i = 0) const;
};

using ComputeRuleFn = std::function<tir::Compute(const RuleInput&)>;
inline constexpr OpKey<ComputeRuleFn> kComputeRule{"ComputeRule"};

// Gives every op its rule, once a process; registers the ops too.
void register_all_rules();
// Returns the ops with neither a compute rule nor a kernel rule, sorted; call register_all_rules() first.
std::vector<std::string> ops_without_rule();

// --- what rules are written with ---

using Index = std::vector<PrimExpr>;

// Variables i0, i1, ... for the axes of `shape`.
std::vector<PrimVar> make_axes(const Array<PrimExpr>& shape, const char* prefix = "i");
Index to_index(const std::vector<PrimVar>& axes);
PrimExpr load(const Buffer& buffer, const Index& index);
// Loads the element of `buffer` that numpy broadcasting reads for element `index` of a result of that rank.
PrimExpr load_broadcast(const Buffer& buffer, const Index& index);

// Makes a stage without reduction: output[index] = element(index).
tir::ComputeStage map_stage(Buffer output, const std::function<PrimExpr(const Index&)>& element);
// Makes a stage that combines value(index, reduce_index) over `reduce_extents`.
tir::ComputeStage reduce_stage(Buffer output, tir::Combiner combiner, const std::vector<PrimExpr>& reduce_extents,
                               const std::function<PrimExpr(const Index&, const Index&)>& value);
// Makes a map_stage for the box of `output` that begins at `origin`.
tir::ComputeStage part_stage(Buffer output, const std::vector<PrimExpr>& origin, const Array<PrimExpr>& extents,
                             const std::function<PrimExpr(const Index&)>& element);
// Makes a stage that stops the kernel with `message` unless `condition` holds for every index below `extents`.
tir::ComputeStage check_stage(const Array<PrimExpr>& extents, std::string message,
                              const std::function<PrimExpr(const Index&)>& condition);
// Makes the compute form of one stage that writes the op's only result.
tir::Compute single_stage(const RuleInput& input, tir::ComputeStage stage);

// Returns the dtype that elements are computed in: float32 for float16 and bfloat16, else their own.
DataType wide_type(DataType dtype);
// Returns the dtype in which a mean is summed: 64-bit for integers, wide_type for others.
DataType total_type(DataType dtype);
// Casts a load, or any value, to wide_type.
PrimExpr wide(const PrimExpr& value);
// Casts an integer from the user's data to int64. A uint64 of 2^63 or more becomes the greatest int64, which is out of
// range for any axis, too.
PrimExpr as_index(const PrimExpr& value);
// Joins conditions; true for none.
PrimExpr all_of(const std::vector<PrimExpr>& conditions);
// Returns `value` where `condition` holds, else `otherwise`; only that side is evaluated.
PrimExpr guarded(const PrimExpr& condition, const PrimExpr& value, const PrimExpr& otherwise);

}  // namespace headrace::lower
