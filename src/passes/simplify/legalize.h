// Legalize: replaces calls of an op with the expression of the op's legalisation, for a target that does not support
// the op.
//
//   set_legalize(get_op("nn.relu"), ...)
//   nn.relu(%x)   ->   maximum(%x, 0f)
//
// A legalisation is an attribute of the op, named "FTVMLegalize" or as the option "legalize_map_attr_name" says. Its
// value is a function of (attributes, arguments, types) and is stored like any attribute that users set (OpKey<Value>;
// driver/ declares its type to ir/op_attrs.h). It can be set with set_legalize, "relay.op.RegisterLegalize" or
// "ir.OpSetAttr". No op has a legalisation by default, since the compiler's own kernels support every op. The function
// returns an expression over the arguments, or nothing to leave the call alone; passes/rewrite/rewrite_calls.h states
// the rules for the expression and the errors. Needs types. Preserves results as far as the legalisations do.
#pragma once

#include "object/function.h"
#include "pass/pass.h"
#include "passes/rewrite/rewrite_calls.h"
#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kLegalizeAttr = "FTVMLegalize";

using LegalizeFn = CallRewriteFn;

// Sets the op's legalisation and replaces an earlier one.
void set_legalize(const Op& op, LegalizeFn legalize, std::string attr = kLegalizeAttr);
// Sets a function of (attrs, args, types) that returns an expression or None as the op's legalisation.
void set_legalize(const Op& op, const PackedFunc& legalize, std::string attr = kLegalizeAttr);
// Removes the op's legalisation.
void clear_legalize(const Op& op, const std::string& attr = kLegalizeAttr);

// Returns "relay.Legalize.legalize_map_attr_name" of the context's configuration, or kLegalizeAttr if it is not set.
// Throws UserError if the value is not text.
std::string legalize_attr(const pass::PassContext& context);

IRModule legalize(const IRModule& module, const std::string& attr = kLegalizeAttr);

}  // namespace headrace::passes
