// Makes the input of a rule from a typed call, and the errors with which a rule refuses the call.
#pragma once

#include "lower/compute_rule.h"

namespace headrace::lower {

// Collects the types of the call's inputs and results without buffers; tuples are flattened. UserError at the call: an
// argument is neither a tensor nor a tuple of tensors.
RuleInput rule_input_of(const relay::CallNode& call);

// Makes a buffer for each of the input's types. Where each argument is one tensor, buffers have the names of the op's
// arguments.
std::vector<Buffer> make_inputs(const RuleInput& input);

// Throws a UserError at the call whose message begins with the op's name.
[[noreturn]] void fail_call(const relay::CallNode& call, const std::string& message);

}  // namespace headrace::lower
