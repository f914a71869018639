// Ops of one argument and of its type, as the tests of users' ops register them.
#pragma once

#include "lower/user_ops/user_op.h"

namespace headrace::lower {

inline Type same_type(const relay::RelationInput& input) { return input.tensor(0); }

inline UserOp unary(const std::string& name) {
  return {.name = name, .arguments = {{"data", "Tensor", ""}}, .relation = same_type};
}

inline tir::Compute copy_form(const RuleInput& input) {
  return single_stage(input, map_stage(input.make_output(), [&](const Index& i) { return load(input.inputs[0], i); }));
}

}  // namespace headrace::lower
