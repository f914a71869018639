#include "cost/op_work.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/call_fusion.h"
#include "ops/op_facts.h"
#include "ops/work.h"
#include "relay/children.h"
#include "relay/visit.h"

namespace headrace::cost {

using relay::CallNode;
using relay::FunctionNode;

namespace {

double bytes_of(const Type& type) {
  double bytes = 0;
  for (const Type& leaf : leaves_of(type)) {
    if (const auto* tensor = leaf.as<TensorTypeNode>())
      bytes += ops::elements_of(*tensor) * static_cast<double>(tensor->dtype.bytes());
  }
  return bytes;
}

double bytes_read_by(const CallNode& call) {
  double sum = 0;
  for (const Expr& arg : call.args) sum += bytes_of(arg->checked_type());
  return sum;
}

DataType arithmetic_type(const CallNode& call) {
  const std::vector<Type> leaves = leaves_of(call.checked_type());
  const auto* tensor = leaves.empty() ? nullptr : leaves[0].as<TensorTypeNode>();
  return tensor == nullptr ? DataType::float_(32) : tensor->dtype;
}

bool is_view(const CallNode& call) { return call.as_op() == nullptr || ops::only_reshapes(*call.as_op()); }

// Returns whether FuseOps puts the call into the kernel of its operand.
bool are_joined(const CallNode& producer, const CallNode& call) {
  if (is_view(producer) || is_view(call)) return false;
  const ops::FusionKind read = ops::read_kind(call, ops::fusion_kind_of(call), producer.checked_type());
  return ops::may_share_kernel(ops::fusion_kind_of(producer), read);
}

// Returns the share of the peak that the kernel of an op reaches.
double share_of_peak(const CallNode& call, const Machine& machine) {
  switch (ops::work_of(call).kernel) {
    case ops::KernelKind::plain:
    case ops::KernelKind::transposed_conv:
      return 1;
    case ops::KernelKind::conv:
    case ops::KernelKind::grouped_conv:
      return machine.network_conv_share;
    case ops::KernelKind::depthwise_conv:
      return machine.depthwise_share;
    case ops::KernelKind::strided_depthwise_conv:
      return machine.strided_depthwise_share;
  }
  return 1;
}

// Returns the seconds that reading the constant operands of an anchor takes where the L2 cache does not hold them: in a
// network, other weights took their place in the larger caches since the run before.
double weights_seconds(const CallNode& call, const Machine& machine, int threads) {
  if (call.as_op() == nullptr || ops::fusion_kind_of(call) != ops::FusionKind::anchor) return 0;
  double bytes = 0;
  for (const Expr& arg : call.args) bytes += arg.is<relay::ConstantNode>() ? bytes_of(arg->checked_type()) : 0;
  if (bytes <= static_cast<double>(machine.l2_bytes) * threads) return 0;
  return bytes / (std::min(machine.dram_gigabytes * threads, machine.all_dram_gigabytes) * 1e9 * machine.weights_share);
}

// Returns the seconds of the kernel that computes some work and begins with an op.
double kernel_seconds(const CallNode& first, StepWork work, const Machine& machine, int threads) {
  work.operations /= share_of_peak(first, machine);
  return std::max(seconds_of(work, machine, threads), weights_seconds(first, machine, threads));
}

}  // namespace

void for_each_pair(const FunctionNode& function,
                   const std::function<bool(const CallNode& producer, const CallNode& call)>& visit) {
  std::unordered_map<const Object*, int> uses;  // calls that use a value, and the result's use
  uses[function.body.object()] = 1;
  relay::post_order(function.body, [&](const Expr& expr) {
    std::unordered_set<const Object*> seen;
    relay::for_each_child(*expr.get(), [&](const ExprNode* child) {
      if (child != nullptr && seen.insert(child).second) ++uses[child];
    });
  });
  for_each_op(function, [&](const CallNode& call) {
    for (const Expr& arg : call.args) {
      const auto* producer = arg.as<CallNode>();
      if (producer == nullptr || producer->as_op() == nullptr || uses[producer] != 1) continue;
      if (visit(*producer, call)) return;
    }
  });
}

void for_each_op(const FunctionNode& function, const std::function<void(const CallNode&)>& visit) {
  relay::post_order(function.body, [&](const Expr& expr) {
    const auto* inner = expr.as<CallNode>();
    if (inner != nullptr && inner->as_op() != nullptr) visit(*inner);
  });
}

double operations_of(const FunctionNode& function) {
  double operations = 0;
  for_each_op(function, [&](const CallNode& call) { operations += work_of(call).operations; });
  return operations;
}

StepWork work_of(const CallNode& call) {
  StepWork work{.dtype = arithmetic_type(call)};
  if (call.as_op() != nullptr) {
    if (ops::only_reshapes(*call.as_op())) return work;
    work.operations = ops::work_of(call).operations;
  } else {
    work.operations = operations_of(*call.op.as<FunctionNode>());
  }
  work.bytes_read = bytes_read_by(call);
  work.bytes_written = bytes_of(call.checked_type());
  return work;
}

double seconds_of(const StepWork& work, const Machine& machine, int threads) {
  if (work.operations == 0 && work.bytes_read == 0 && work.bytes_written == 0) return 0;
  return std::min(time_of(work, machine, 1), time_of(work, machine, threads));
}

double seconds_saved(const CallNode& producer, const CallNode& call, const Machine& machine, int threads) {
  if (!are_joined(producer, call)) return 0;
  const StepWork first = work_of(producer), last = work_of(call);
  const StepWork both{.operations = first.operations + last.operations,
                      .bytes_read = first.bytes_read + last.bytes_read - first.bytes_written,
                      .bytes_written = last.bytes_written,
                      .dtype = first.dtype};
  const double alone = kernel_seconds(call, last, machine, threads);
  const double saved =
      kernel_seconds(producer, first, machine, threads) + alone - kernel_seconds(producer, both, machine, threads);
  return std::clamp(saved, 0.0, alone);
}

double native_seconds(const CallNode& call, const Machine& machine, int threads) {
  if (call.as_op() != nullptr) return kernel_seconds(call, work_of(call), machine, threads);
  double seconds = 0;
  const auto& function = *call.op.as<FunctionNode>();
  for_each_op(function, [&](const CallNode& inner) { seconds += native_seconds(inner, machine, threads); });
  for_each_pair(function, [&](const CallNode& producer, const CallNode& inner) {
    const double saved = seconds_saved(producer, inner, machine, threads);
    seconds -= saved;
    return saved > 0;
  });
  return std::max(seconds, 0.0);
}

}  // namespace headrace::cost
