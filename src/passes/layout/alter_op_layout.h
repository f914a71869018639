// AlterOpLayout: calls of an op become what a function that users set on the op makes of them, in another layout.
//
//   register_alter_op_layout("nn.conv2d", lambda attrs, inputs, tinfos, out_type: conv2d of them, data_layout="NHWC")
//   nn.relu(nn.conv2d(%x, %w))  ->  %0 = transpose(%x, axes=[0, 2, 3, 1]);
//                                   %1 = nn.relu(nn.conv2d(%0, %w, data_layout="NHWC"));
//                                   transpose(%1, axes=[0, 3, 1, 2])
//
// The function is the op's attribute "FTVMAlterOpLayout": (attributes, arguments, types of the arguments, type of the
// result) -> expression over the arguments, or None to leave the call. A call of the same op in other layouts keeps its
// arguments in the layouts as written: the pass converts them and the result, and ConvertLayout's rules say how far the
// new layout reaches (convert_layout.h); it reaches no further than a call whose layout as written is packed. Any other
// expression has the type of the call. The rules of passes/rewrite/rewrite_calls.h hold. Needs types. UserError when
// the function returns no expression, one of another type, or layouts that the op does not have or its operands cannot
// be stored in.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kAlterLayoutAttr = "FTVMAlterOpLayout";

IRModule alter_op_layout(const IRModule& module);

}  // namespace headrace::passes
