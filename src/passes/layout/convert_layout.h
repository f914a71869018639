// ConvertLayout: convolutions and pools run in the layouts the user asks for.
//
//   nn.relu(nn.conv2d(%x, %w))       {"nn.conv2d": ["NHWC", "OHWI"]}
//     ->  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
//         %1 = nn.relu(nn.conv2d(%0, layout_transform(%w, ...), data_layout="NHWC", kernel_layout="OHWI"));
//         layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")
//
// A value stays in the new layout through ops that do not depend on layout (elementwise ones), ops whose axes can be
// renumbered (ops with ops::kKeepLayout, such as bias_add, normalizations, slices, split, reductions and those of
// users; concatenate, nn.pad, slice_like), ops with a layout of their own (pools, image.resize2d), tuples of results
// and lets. A transpose gives its result as written. A small operand of a broadcast is converted, too. All other ops
// get the original layout. So changes of layout remain only at the borders; those of weights fold (FoldConstant), and
// pairs cancel (SimplifyExpr, for which a change without parts is a transpose).
//
// Supported ops are convolutions over 1, 2 and 3 axes, their transposes, nn.deformable_conv2d, their pools and adaptive
// pools, global pools of planes, image.resize2d and vision.roi_align, which changes only where it is named; other ops
// keep their layout. A layout is an order of the op's own letters: NCHW, NHWC; OIHW, OHWI, HWIO; NCW and NCDHW
// likewise. Batch and channels may be split into parts:
//
//   {"nn.conv2d": ["NCHW16c", "OIHW16i16o"]}
//     ->  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW16c"); ...
//
// A conv2d whose channels the block does not divide (the 3 of an image) does not change, and the ops behind it begin in
// the new layout. An axis of one element has parts of one, so that the kernel of a depthwise convolution is OIHW1i16o.
// bias_add along channels in parts becomes add, and where the pass is named any bias_add in a new layout, as in Relay.
// Ops along channels in parts get the original layout: prelu, softmax, padding and reductions over them (where the pass
// is named, without `keepdims`), image.resize2d and the transposes, and a concatenation with a tensor that cannot be
// stored so. Layouts that are packed in the program stay.
//
// An op with the attribute "FTVMConvertOpLayout", built-in or of a user, is converted by that function instead:
// (attributes, arguments, types, layouts) -> expression. Users set it as an OpKey<Value>. `layouts` is the op's list as
// it was given, whose meaning the function defines. It returns an expression over the arguments, which come in the
// original layout, with the type of the call (it adds transpose or layout_transform on both sides itself), or None to
// leave the call. The rules of passes/rewrite/rewrite_calls.h hold. These calls are converted before all others.
//
// "default" for a kernel is OIHW for NCHW, HWIO for NHWC, and OIHW16i16o for NCHW16c, and likewise in other ranks (IOHW
// and HWOI for transposes). Needs types. Preserves results up to the order in which a kernel adds.
#pragma once

#include <functional>

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kConvertLayoutAttr = "FTVMConvertOpLayout";
inline constexpr OpKey<Value> kConvertLayoutKey{kConvertLayoutAttr};

// Op name -> the layout of its data, and for convolutions of its kernel.
using DesiredLayouts = Map<std::string, Array<std::string>>;

// The layouts of one call, as the list of its op in DesiredLayouts; nothing for a call that nobody asks for. A
// convolution may have a third one, of its result, where that is not the layout of its data: blocks of channels of data
// as written; or the layout as written of data in blocks, which do not divide the output channels: then the kernel gets
// channels of zeros, and a slice drops their results.
using LayoutChoice = std::function<std::optional<Array<std::string>>(const relay::CallNode& call)>;

// Decides the layout of each call of a body.
struct LayoutRequest {
  LayoutChoice choose;
  // Whether a call that nobody asks for stays as written, although it could follow its operands. Empty: none does.
  std::function<bool(const relay::CallNode& call)> stays = {};
  // Called with each call whose result is a tensor in another layout than written. May be empty.
  std::function<void(const relay::CallNode& call)> converted = {};
  // As in Relay: bias_add in another layout becomes an addition, and a pool whose layout `choose` gives says the layout
  // of its result.
  bool as_in_relay = false;
  // Whether a reduction that keeps its axes follows data whose reduced axis lies in parts: then the parts have one
  // element. A layout that is chosen for speed stops there.
  bool reduces_parts = false;
};

// Throws a UserError, which begins with `what`, when the list is not one for the op or the op has no layout.
void check_layouts(std::string_view what, const std::string& op, const Array<std::string>& layouts);

// Throws a UserError when `value` is not a map of names to lists of layouts, names an op without a layout, or gives a
// layout that the op does not have. Also called where a context, or a pass with options, is made.
void check_desired_layouts(const Value& value);

// Reads and checks "relay.ConvertLayout.desired_layouts" of the context's configuration; nothing without it.
DesiredLayouts desired_layouts(const pass::PassContext& context);

// Converts a module. UserError when a user's function returns no expression, or one of another type.
IRModule convert_layout(const IRModule& module, const DesiredLayouts& desired);
// Converts the calls that `choose` gives checked layouts for, and does not ask the functions of users.
IRModule convert_layout(const IRModule& module, const LayoutChoice& choose);
// Converts a body whose expressions have types, likewise; its own result is as written.
Expr convert_layout(const Expr& body, const LayoutRequest& request);

}  // namespace headrace::passes
