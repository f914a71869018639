#include "cost/op_work.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/call_fusion.h"
#include "ops/nn/conv.h"
#include "ops/nn/recurrent.h"
#include "ops/op_facts.h"
#include "relay/children.h"
#include "relay/visit.h"

namespace headrace::cost {

using relay::CallNode;
using relay::FunctionNode;

namespace {

double elements_of(const TensorTypeNode& tensor) {
  double count = 1;
  for (const PrimExpr& dim : tensor.shape) {
    if (const auto size = as_shape(Array<PrimExpr>{dim})) count *= static_cast<double>((*size)[0]);
  }
  return count;
}

double elements_of(const Type& type) {
  double count = 0;
  for (const Type& leaf : leaves_of(type)) {
    if (const auto* tensor = leaf.as<TensorTypeNode>()) count += elements_of(*tensor);
  }
  return count;
}

double bytes_of(const Type& type) {
  double bytes = 0;
  for (const Type& leaf : leaves_of(type)) {
    if (const auto* tensor = leaf.as<TensorTypeNode>())
      bytes += elements_of(*tensor) * static_cast<double>(tensor->dtype.bytes());
  }
  return bytes;
}

// Returns the size of the axis of a kernel that has this letter of its layout, with all its parts.
double axis_size(const TensorTypeNode& kernel, const Layout& layout, char letter) {
  double size = 1;
  const auto shape = as_shape(kernel.shape);
  for (const size_t axis : layout.positions(letter)) size *= shape ? static_cast<double>((*shape)[axis]) : 1;
  return size;
}

// Each element of a convolution's result takes the elements of the kernel for one output channel, each element of a
// transposed one's data those for one input channel.
double conv_products(const CallNode& call, const ops::ConvAttrs& attrs, const TensorTypeNode& kernel) {
  const Layout layout = Layout::parse(ops::conv_form(attrs).kernel_layout);
  const double channels = axis_size(kernel, layout, attrs.transposed ? 'I' : 'O');
  const double each = channels > 0 ? elements_of(kernel) / channels : 0;
  return each * elements_of(attrs.transposed ? call.args[0]->checked_type() : call.checked_type());
}

// Returns the multiply-adds of an anchor. One that is not a convolution is taken for a product [.., m, k] by [.., k,
// n].
double products_of(const CallNode& call) {
  if (call.args.size() < 2) return elements_of(call.checked_type());
  const auto* result = call.checked_type().as<TensorTypeNode>();
  const auto* kernel = call.args[1]->checked_type().as<TensorTypeNode>();
  if (result == nullptr || kernel == nullptr || result->shape.empty()) return elements_of(call.checked_type());
  if (const auto* conv = call.attrs.as<ops::ConvAttrs>()) return conv_products(call, *conv, *kernel);
  const auto last = as_shape(Array<PrimExpr>{result->shape[result->shape.size() - 1]});
  return elements_of(call.args[0]->checked_type()) * (last ? static_cast<double>((*last)[0]) : 1);
}

double arguments_of(const CallNode& call, double (*measure)(const Type&)) {
  double sum = 0;
  for (const Expr& arg : call.args) sum += measure(arg->checked_type());
  return sum;
}

// Returns the multiply-adds of a recurrent layer: each step of each sequence multiplies all weights.
std::optional<double> recurrent_products(const CallNode& call) {
  const bool is_layer = call.attrs.is<ops::RecurrentAttrs>();
  if (!is_layer && !call.attrs.is<ops::RecurrentStepsAttrs>()) return std::nullopt;
  const auto* data = call.args[0]->checked_type().as<TensorTypeNode>();
  const auto* own =
      is_layer ? call.args[2]->checked_type().as<TensorTypeNode>() : call.args[1]->checked_type().as<TensorTypeNode>();
  if (data == nullptr || own == nullptr || data->shape.size() != 3) return std::nullopt;
  const auto last = as_shape(Array<PrimExpr>{data->shape[2]});
  const double width = last ? std::max(static_cast<double>((*last)[0]), 1.0) : 1;
  const double weights = elements_of(*own) + (is_layer ? elements_of(call.args[1]->checked_type()) : 0);
  return elements_of(*data) / width * weights;
}

double operations_of(const CallNode& call) {
  if (const auto products = recurrent_products(call)) return 2 * *products;
  switch (ops::fusion_kind_of(call)) {
    case ops::FusionKind::anchor:
      return 2 * products_of(call);
    case ops::FusionKind::reduction:
      return arguments_of(call, &elements_of);
    case ops::FusionKind::elementwise:
    case ops::FusionKind::broadcast:
    case ops::FusionKind::injective:
    case ops::FusionKind::tuple:
    case ops::FusionKind::opaque:
      return std::max(elements_of(call.checked_type()), arguments_of(call, &elements_of));
  }
  return 0;
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
  const auto* conv = call.attrs.as<ops::ConvAttrs>();
  const auto* kernel = conv == nullptr ? nullptr : call.args[1]->checked_type().as<TensorTypeNode>();
  if (kernel == nullptr || conv->transposed) return 1;
  const Layout layout = Layout::parse(ops::conv_form(*conv).kernel_layout);
  if (axis_size(*kernel, layout, 'I') != 1 || conv->groups == 1) return machine.network_conv_share;
  const bool has_steps =
      std::any_of(conv->strides.begin(), conv->strides.end(), [](int64_t stride) { return stride > 1; });
  return has_steps ? machine.strided_depthwise_share : machine.depthwise_share;
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
    work.operations = operations_of(call);
  } else {
    work.operations = operations_of(*call.op.as<FunctionNode>());
  }
  work.bytes_read = arguments_of(call, &bytes_of);
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
