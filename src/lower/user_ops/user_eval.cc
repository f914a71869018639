#include "lower/user_ops/user_eval.h"

#include <algorithm>

#include "interp/tir_interp.h"
#include "lower/rule_input.h"
#include "lower/user_ops/user_compute.h"
#include "object/function.h"
#include "ops/loops/element.h"
#include "tir/plain_loops.h"

namespace headrace::lower {

using ops::EvalInput;

namespace {

// Returns the dtypes of a typed expression's tensors; nothing when it has no type.
std::vector<DataType> declared_dtypes(const Expr& expr) {
  std::vector<DataType> dtypes;
  if (!expr->has_checked_type()) return dtypes;
  for (const Type& leaf : leaves_of(expr->checked_type())) dtypes.push_back(leaf.cast<TensorTypeNode>()->dtype);
  return dtypes;
}

// Returns the types with the dtypes that the program declares, where it has types.
std::vector<TensorType> with_dtypes(const std::vector<TensorType>& types, const std::vector<DataType>& dtypes) {
  if (dtypes.size() != types.size()) return types;
  std::vector<TensorType> result;
  for (size_t i = 0; i < types.size(); ++i) result.push_back(make_tensor_type(types[i]->shape, dtypes[i]));
  return result;
}

RuleInput rule_input(const EvalInput& input) {
  std::vector<DataType> dtypes;
  for (const Expr& arg : input.call.args) {
    for (const DataType dtype : declared_dtypes(arg)) dtypes.push_back(dtype);
  }
  RuleInput rule{input.call,
                 {},
                 with_dtypes(input.arg_types, dtypes),
                 with_dtypes(input.out_types, declared_dtypes(ref(&input.call)))};
  rule.inputs = make_inputs(rule);
  return rule;
}

std::vector<NDArray> converted_args(const EvalInput& input, const RuleInput& rule) {
  std::vector<NDArray> args;
  for (size_t i = 0; i < input.args.size(); ++i) args.push_back(ops::as_dtype(input.args[i], rule.in_types[i]->dtype));
  return args;
}

// Returns the results in the requested dtypes; UserError when they do not have those of the op's type.
std::vector<NDArray> converted_results(const EvalInput& input, const std::vector<NDArray>& results) {
  if (results.size() != input.out_types.size())
    fail_call(input.call, fmt::format("{} results, and its type says {}", results.size(), input.out_types.size()));
  std::vector<NDArray> converted;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].shape() != input.out_types[i]->concrete_shape())
      fail_call(input.call, fmt::format("result {} has shape ({}), and its type says {}", i,
                                        fmt::join(results[i].shape(), ", "), to_string(Type(input.out_types[i]))));
    converted.push_back(ops::as_dtype(results[i], input.out_types[i]->dtype));
  }
  return converted;
}

std::vector<NDArray> run_loops(const EvalInput& input, const RuleInput& rule, const tir::PrimFunc& loops) {
  try {
    return converted_results(input, interp::run_prim_func(loops, converted_args(input, rule)));
  } catch (const UserError& error) {
    if (!error.where().op.empty()) throw;
    throw_at(input.call.span, input.call.as_op()->name, error.message());
  }
}

std::vector<NDArray> call_function(const PackedFunc& function, const std::vector<NDArray>& args,
                                   const std::vector<TensorType>& out_types) {
  std::vector<NDArray> outputs;
  for (const TensorType& type : out_types) outputs.push_back(NDArray::zeros(type->concrete_shape(), type->dtype));
  std::vector<RawValue> values;
  const auto pass = [&](const NDArray& tensor) {
    RawValue value;
    value.type_index = type_index::kDLTensorPtr;
    value.v.v_ptr = const_cast<DLTensor*>(&tensor.tensor());
    values.push_back(value);
  };
  std::for_each(args.begin(), args.end(), pass);
  std::for_each(outputs.begin(), outputs.end(), pass);
  function.call(Args(values.data(), static_cast<int32_t>(values.size())));
  return outputs;
}

}  // namespace

ops::EvalFn eval_by_form(ComputeRuleFn rule) {
  return [rule = std::move(rule)](const EvalInput& input) {
    const RuleInput tensors = rule_input(input);
    // A form that keeps tensors of an earlier call fits the first time it is asked, and is refused from then on.
    rule(tensors);
    return run_loops(input, tensors, tir::plain_loops(rule(tensors), input.call.as_op()->name));
  };
}

ops::EvalFn eval_by_loops(PrimFuncFn loops) {
  return [loops = std::move(loops)](const EvalInput& input) {
    const RuleInput tensors = rule_input(input);
    const tir::PrimFunc function = loops(tensors);
    check_params(function, tensors);
    return run_loops(input, tensors, function);
  };
}

ops::EvalFn eval_by_function(std::string name) {
  return [name = std::move(name)](const EvalInput& input) {
    const PackedFunc function = find_global(name);
    if (!function)
      fail_call(input.call, fmt::format("there is no global function '{}' that computes it; register it first", name));
    const RuleInput tensors = rule_input(input);
    // Inputs may be shared with the program's constants: a function that writes them changes its own copies.
    std::vector<NDArray> args;
    for (const NDArray& arg : converted_args(input, tensors)) args.push_back(arg.copy());
    return converted_results(input, call_function(function, args, tensors.out_types));
  };
}

}  // namespace headrace::lower
