// Legalize: calls of an op become what the op's legalisation makes of them, for a target that has no such op.
//
//   set_legalize(get_op("nn.relu"), ...)
//   nn.relu(%x)   ->   maximum(%x, 0f)
//
// A legalisation is an attribute of the op, "FTVMLegalize" or the name that the option "legalize_map_attr_name" gives.
// It is a function of (attributes, arguments, types), kept as any attribute that users set (OpKey<Value>; driver/ tells
// ir/op_attrs.h that nothing else may be set there):
// set_legalize, "relay.op.RegisterLegalize" and "ir.OpSetAttr" are the same. No op has one by default, since the
// compiler's own kernels take every op. It gives an expression over the arguments, or nothing to leave the call alone;
// passes/rewrite/rewrite_calls.h has what holds of it, and what is refused. Needs types. Whether results are the same
// is the legalisation's to say.
#pragma once

#include "object/function.h"
#include "pass/pass.h"
#include "passes/rewrite/rewrite_calls.h"
#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kLegalizeAttr = "FTVMLegalize";

using LegalizeFn = CallRewriteFn;

// Replaces the op's legalisation, if it has one.
void set_legalize(const Op& op, LegalizeFn legalize, std::string attr = kLegalizeAttr);
// The same from a function of (attrs, args, types) that gives an expression or None.
void set_legalize(const Op& op, const PackedFunc& legalize, std::string attr = kLegalizeAttr);
// Takes the op's legalisation away.
void clear_legalize(const Op& op, const std::string& attr = kLegalizeAttr);

// "relay.Legalize.legalize_map_attr_name" of the context's configuration, else kLegalizeAttr. UserError when it is no
// text.
std::string legalize_attr(const pass::PassContext& context);

IRModule legalize(const IRModule& module, const std::string& attr = kLegalizeAttr);

}  // namespace headrace::passes
