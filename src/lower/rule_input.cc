#include "lower/rule_input.h"

namespace headrace::lower {

void fail_call(const relay::CallNode& call, const std::string& message) {
  const OpNode* op = call.as_op();
  HEADRACE_CHECK(op != nullptr, "a rule is asked of a call of {}", call.op->key());
  throw_at(call.span, op->name, fmt::format("{}: {}", op->name, message));
}

RuleInput rule_input_of(const relay::CallNode& call) {
  RuleInput input{call, {}, {}, {}};
  for (size_t i = 0; i < call.args.size(); ++i) {
    for (const Type& leaf : leaves_of(call.args[i]->checked_type())) {
      const TensorType type = leaf.cast<TensorTypeNode>();
      if (!type)
        fail_call(call, fmt::format("argument {} is {}, and only tensors are computed with", i, to_string(leaf)));
      input.in_types.push_back(type);
    }
  }
  for (const Type& leaf : leaves_of(call.checked_type())) input.out_types.push_back(leaf.cast<TensorTypeNode>());
  return input;
}

std::vector<Buffer> make_inputs(const RuleInput& input) {
  const OpNode* op = input.call.as_op();
  const bool has_names = op != nullptr && op->arguments.size() == input.in_types.size();
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < input.in_types.size(); ++i) {
    const std::string name = has_names ? op->arguments[i].name : fmt::format("input{}", i);
    buffers.push_back(make_buffer(name, input.in_types[i]->dtype, input.in_types[i]->shape));
  }
  return buffers;
}

}  // namespace headrace::lower
