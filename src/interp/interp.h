// The reference interpreter of relay: the definition of what a program computes. Slow and plain; every lowering, pass
// and executor is tested against it.
#pragma once

#include "relay/expr.h"

namespace headrace::interp {

enum class Precision : uint8_t {
  declared,  // every tensor in its own dtype
  float64,   // float32, float16 and bfloat16 tensors are computed as float64: what the model means, without rounding
};

struct Options {
  Precision precision = Precision::declared;
  int64_t max_depth = 50'000;  // nested function calls and branches; UserError beyond
};

// Runs function `name` of `module` on tensors (or ADT tuples of them) and gives its value: an NDArray, an ADT with
// tag 0 for a tuple, one with the constructor's tag for a value of a data type. The module need not be typed. UserError
// on a wrong number, shape or dtype of arguments, at the op that cannot run.
Value run(const IRModule& module, std::string_view name, const std::vector<Value>& args, const Options& options = {});
// As above, for the function `main`; the tensors of its result in order, tuples flattened.
std::vector<NDArray> run_main(const IRModule& module, const std::vector<NDArray>& args, const Options& options = {});
// The value of a closed expression.
Value run_expr(const Expr& expr, const Options& options = {});

}  // namespace headrace::interp
