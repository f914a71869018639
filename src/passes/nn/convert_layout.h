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
// The ops are convolutions over 1, 2 and 3 axes, their transposes, their pools and adaptive pools, global pools of
// planes and image.resize2d; what else has a layout keeps it. A layout is an order of the op's own letters: NCHW, NHWC;
// OIHW, OHWI, HWIO; NCW and NCDHW likewise; batch and channels perhaps in parts:
//
//   {"nn.conv2d": ["NCHW16c", "OIHW16i16o"]}
//     ->  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW16c"); ...
//
// Of a conv2d whose channels such a block does not divide (the 3 of an image) nothing changes: what follows begins in
// the new layout. An axis of one element has parts of one, so that the kernel of a depthwise convolution is OIHW1i16o.
// bias_add along channels in parts becomes add. What works along such channels gets the layout that was written:
// prelu, softmax and reductions over them, padding of them; so do image.resize2d and the transposes, and so does a
// concatenation of which one tensor cannot be stored so. Layouts that are packed as written stay.
//
// An op with the attribute "FTVMConvertOpLayout" is converted by it instead, be it a user's op or one of ours: a
// function of (attributes, arguments, types, layouts), kept as any attribute that users set (OpKey<Value>). `layouts`
// is the op's list as it was given; the function knows what it may say. It gives an expression over the arguments,
// which come in the layout that was written, of the type that the call had (it changes both itself, by transpose or
// layout_transform), or nothing to leave the call alone. passes/rewrite/rewrite_calls.h has what else holds of it.
// These calls are converted before all others.
//
// "default" for a kernel is OIHW for NCHW, HWIO for NHWC, and OIHW16i16o for NCHW16c, and alike in other ranks (of
// transposes IOHW and HWOI). Needs types. Preserves results to the last bit, up to the order in which a kernel adds.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kConvertLayoutAttr = "FTVMConvertOpLayout";

// Op name -> the layout of its data, and for convolutions of its kernel.
using DesiredLayouts = Map<std::string, Array<std::string>>;

// Throws a UserError when `value` is not a map of names to lists of layouts, names an op without a layout, or gives a
// layout that the op does not have. Also called where a context, or a pass with options, is made.
void check_desired_layouts(const Value& value);

// "relay.ConvertLayout.desired_layouts" of the context's configuration, checked; nothing without it.
DesiredLayouts desired_layouts(const pass::PassContext& context);

// UserError when a function of a user gives what does not fit: no expression, or one of another type.
IRModule convert_layout(const IRModule& module, const DesiredLayouts& desired);

}  // namespace headrace::passes
