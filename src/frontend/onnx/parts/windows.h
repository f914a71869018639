// Reads the attributes of ONNX's convolutions and pools that describe sliding windows: kernel_shape, strides,
// dilations, pads, auto_pad.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

struct Windows {
  Shape kernel, strides, dilations, pad_begin, pad_end;  // one value for each spatial axis

  // Returns the padding in the order of relay's attributes: all begins, then all ends.
  Shape padding() const;
};

// Reads the attributes of a node whose input 0 is x[N, C, spatial...] and whose kernel has these sizes. auto_pad SAME_*
// becomes explicit pads, for which a strided axis must have a known size.
Windows read_windows(NodeContext& context, Shape kernel);
// Reads the required attribute kernel_shape, which has one size for each spatial axis of input 0.
Shape read_kernel_shape(NodeContext& context);
// Returns the number of spatial axes of input 0. Throws Refused if there is none or more than `most`.
size_t spatial_rank(NodeContext& context, size_t most);
// Reads an attribute with one value for each spatial axis, none of them below `otherwise`. The default is `otherwise`
// for every axis.
Shape read_sizes(NodeContext& context, std::string_view name, size_t count, int64_t otherwise);

}  // namespace headrace::onnx
