// Slices of data in another layout, for kKeepLayout of strided_slice.
#pragma once

#include "ops/op_facts.h"

namespace headrace::ops {

// Gives the attributes of a typed call of strided_slice for data stored in `form`. Nothing for bounds that are
// arguments of axes which are not named, and for a slice of an axis in parts that does not begin and end between
// blocks.
std::optional<Attrs> keep_layout_of_slice(const relay::CallNode& call, const LayoutForm& form);

}  // namespace headrace::ops
