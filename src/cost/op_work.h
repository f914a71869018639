// The work of calls, for the analytic time of cost/time_of.h: estimates by the sizes of the tensors.
#pragma once

#include <functional>

#include "cost/time_of.h"
#include "relay/expr.h"

namespace headrace::cost {

// Returns the work of a typed call of an op, or of a composite function as one step that keeps what lies between its
// ops in registers. Operations are those of ops/work.h; views of their operand (ops/op_facts.h) count nothing.
StepWork work_of(const relay::CallNode& call);

// Returns the operations of the ops that a function calls in its body.
double operations_of(const relay::FunctionNode& function);

// Returns the seconds of some work, on one thread where more of them take longer; 0 for no work.
double seconds_of(const StepWork& work, const Machine& machine, int threads);

// Calls `visit` with each call of an op in the body of a function, such as a composite one.
void for_each_op(const relay::FunctionNode& function, const std::function<void(const relay::CallNode&)>& visit);
// Calls `visit` with each call of an op in the body and the calls of ops among its operands that nothing else uses, one
// by one until it returns true.
void for_each_pair(const relay::FunctionNode& function,
                   const std::function<bool(const relay::CallNode& producer, const relay::CallNode& call)>& visit);

// Returns the seconds that native code saves by computing `call` in the kernel of `producer`, an operand of it that
// nothing else uses: the tensor between them is neither written nor read. At most the seconds of the call alone; 0
// where FuseOps does not join two such ops.
double seconds_saved(const relay::CallNode& producer, const relay::CallNode& call, const Machine& machine, int threads);

// Returns the seconds that the ops of a call take natively, with the shares of the peak and of the memory's bandwidth
// that kernels reach (Machine). Those of a composite function are joined to kernels.
double native_seconds(const relay::CallNode& call, const Machine& machine, int threads);

}  // namespace headrace::cost
