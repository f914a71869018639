// ConvertLayout: convolutions and pools run in the layouts the user asks for.
//
//   nn.relu(nn.conv2d(%x, %w))       {"nn.conv2d": ["NHWC", "OHWI"]}
//     ->  %0 = transpose(%x, axes=[0, 2, 3, 1]);
//         %1 = nn.relu(nn.conv2d(%0, transpose(%w, ...), data_layout="NHWC", kernel_layout="OHWI"));
//         transpose(%1, axes=[0, 3, 1, 2])
//
// A value stays in the new layout through the ops that do not care (elementwise ones), those whose axes are renumbered
// (bias_add, prelu, concatenate, softmax, batch-wise reductions that keep their dimensions, nn.pad), those with a
// layout of their own (pools, image.resize2d), and lets; a small operand of a broadcast is brought to it. Anything else
// gets the layout that was written. So transposes stand only at the borders; those of weights fold (FoldConstant), what
// is left of pairs cancels (SimplifyExpr).
//
// A layout is an order of the op's own letters: NCHW, NHWC; OIHW, OHWI, HWIO. "default" for a kernel is OIHW for NCHW
// and HWIO for NHWC. Needs types. Preserves results to the last bit, up to the order in which a kernel adds.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Op name -> the layout of its data, and for convolutions of its kernel.
using DesiredLayouts = Map<std::string, Array<std::string>>;

// "relay.ConvertLayout.desired_layouts" of the context's configuration; nothing without it. UserError when it is no map
// of names to lists of layouts, names an op that has no layout, or a layout that is none of the op's.
DesiredLayouts desired_layouts(const pass::PassContext& context);

IRModule convert_layout(const IRModule& module, const DesiredLayouts& desired);

}  // namespace headrace::passes
