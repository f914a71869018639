// Models whose intermediate values are outputs, to find the first one that is computed wrongly.
#pragma once

#include "driver/model.h"

namespace headrace::tools {

// Returns the model with every tensor of known size that main computes as an output, in the order of evaluation, before
// its own outputs. Their names are a number, the op and its place in the model: "12 nn.conv2d conv_5". Values inside of
// branches, matches, functions and lets are not among them, because they may be computed never or many times. UserError
// as type inference.
driver::Model with_all_values(const driver::Model& model);

}  // namespace headrace::tools
