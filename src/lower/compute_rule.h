// A compute rule returns an op's compute form (tir/compute.h), element by element. Each op has one rule, a row in
// all_rules.cc.
#pragma once

#include "lower/stages/make_stage.h"
#include "ops/op_keys.h"

namespace headrace::lower {

struct RuleInput {
  const relay::CallNode& call;
  std::vector<Buffer> inputs;         // tuples flattened in order
  std::vector<TensorType> in_types;   // types of `inputs`
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

// Makes the compute form of one stage that writes the op's only result.
tir::Compute single_stage(const RuleInput& input, tir::ComputeStage stage);

// Returns the dtype that elements are computed in: float32 for float16 and bfloat16, else their own.
DataType wide_type(DataType dtype);
// Returns the only element of a constant, with all its bits.
PrimExpr element_of(const NDArray& constant);
// Returns the dtype in which a mean is summed: 64-bit for integers, wide_type for others.
DataType total_type(DataType dtype);
// Casts a load, or any value, to wide_type.
PrimExpr wide(const PrimExpr& value);
// Casts an integer from the user's data to int64. A uint64 of 2^63 or more becomes the greatest int64, which is out of
// range for any axis, too.
PrimExpr as_index(const PrimExpr& value);

}  // namespace headrace::lower
