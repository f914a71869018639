// Makes stages of a compute form from functions that compute one element.
#pragma once

#include "tir/compute.h"

namespace headrace::lower {

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
// Makes the buffer of an intermediate stage.
Buffer make_stage_buffer(const char* name, DataType dtype, const std::vector<PrimExpr>& shape);

// Returns whether an intermediate buffer with `elements` elements is disproportionately large: more than 16 Mi
// elements, and more than 8 times `around`, the elements of the operands and results. Large padding, dilation or
// strides can make such a buffer from small data.
bool is_wasteful(double elements, double around);
// Returns the number of elements of static dimensions, as a double because it may overflow any integer.
double count_elements(const std::vector<PrimExpr>& dims);

// Returns low <= value && value < high.
PrimExpr is_within(const PrimExpr& value, const PrimExpr& low, const PrimExpr& high);
// Joins conditions; true for none.
PrimExpr all_of(const std::vector<PrimExpr>& conditions);
// Returns `value` where `condition` holds, else `otherwise`; only that side is evaluated.
PrimExpr guarded(const PrimExpr& condition, const PrimExpr& value, const PrimExpr& otherwise);

}  // namespace headrace::lower
