// Splits an expression by a pattern: what matches becomes a call of a function literal that computes the same.
//
//   nn.relu(nn.conv2d(%x, %w))   ->   %0 = fn (%FunctionVar_0_0, %FunctionVar_0_1,
//                                              PartitionedFromPattern="nn.conv2d_nn.relu_") {
//                                       %1 = nn.conv2d(%FunctionVar_0_0, %FunctionVar_0_1);
//                                       nn.relu(%1)
//                                     };
//                                     %0(%x, %w)
#pragma once

#include "relay/patterns/groups.h"

namespace headrace::relay {

// Returns the root of `graph` with each group (groups.h) replaced; the root itself when there is none. The graph has
// types if the pattern asks for any.
Expr partition_graph(const PatternIndex& pattern, const ExprIndex& graph, const DictAttrs& attrs,
                     const GroupOptions& options);

// Returns `expr` with each group (groups.h) replaced; `expr` itself when there is none. `attrs` are added to the
// functions. Replaced nodes and those that use them have no type. A pattern that is a function pattern by itself
// changes nothing, because the function that it matches is not called there. UserError as Matcher::match.
Expr partition_pattern(const DFPattern& pattern, const Expr& expr, const DictAttrs& attrs = {},
                       const GroupOptions& options = {});

}  // namespace headrace::relay
