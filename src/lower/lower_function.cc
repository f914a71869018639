#include "lower/lower_function.h"

#include <unordered_set>

#include "lower/compute_rule.h"
#include "lower/kernel_rule.h"
#include "lower/loops/window_copies.h"
#include "lower/rule_input.h"
#include "lower/stages/fuse_stages.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
#include "relay/visit.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using relay::CallNode;
using relay::ConstantNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using tir::Compute;
using tir::ComputeStage;

namespace {

void check_params(const relay::Function& group) {
  for (const relay::Var& param : group->params)
    HEADRACE_CHECK(param->checked_type().is<TensorTypeNode>(), "the parameter {} is not a tensor", param->name_hint);
}

// Returns the size of a buffer of static shape as a double, since it may exceed any integer; 0 for other shapes.
double bytes_of(const Buffer& buffer) {
  auto bytes = static_cast<double>(buffer->dtype.bytes());
  for (const PrimExpr& dim : buffer->shape) bytes *= static_cast<double>(as_int(dim).value_or(0));
  return bytes;
}

// Checks buffers between an op's stages, because its attributes may make them far larger than its tensors.
void check_buffers(const CallNode& call, const OpNode& op, const Compute& part) {
  for (const ComputeStage& stage : part.stages) {
    if (stage.is_check() || bytes_of(stage.output) <= static_cast<double>(kMaxBufferBytes)) continue;
    throw_at(call.span, op.name,
             fmt::format("its kernel would keep {:.0f} GB in '{}', more than any machine has; its padding, strides, "
                         "dilation or window are out of proportion to its tensors",
                         bytes_of(stage.output) / 1e9, stage.output->name));
  }
}

class Composer {
 public:
  // With a machine, stages that read windows are replaced as copy_windows does.
  explicit Composer(const cost::Machine* machine) : machine_(machine) {}

  Compute compose(const relay::Function& group) {
    for (const relay::Var& param : group->params) {
      const auto type = param->checked_type().cast<TensorTypeNode>();
      compute_.inputs.push_back(make_buffer(param->name_hint, type->dtype, type->shape));
      buffers_[param.get()] = {compute_.inputs.back()};
    }
    relay::post_order(group->body, [&](const Expr& expr) { visit(expr); });
    add_results(buffers_.at(group->body.get()));
    inline_scalars();
    return std::move(compute_);
  }

 private:
  void visit(const Expr& expr) {
    if (expr.is<OpNode>() || expr.is<relay::VarNode>()) return;
    std::vector<Buffer>& own = buffers_[expr.get()];
    if (const auto* call = expr.as<CallNode>()) {
      own = visit_call(*call);
    } else if (const auto* tuple = expr.as<TupleNode>()) {
      for (const Expr& item : tuple->items) {
        const std::vector<Buffer>& more = buffers_.at(item.get());
        own.insert(own.end(), more.begin(), more.end());
      }
    } else if (const auto* item = expr.as<TupleGetItemNode>()) {
      own = relay::leaves_of_item(*item, buffers_.at(item->tuple.get()));
    } else if (const auto* constant = expr.as<ConstantNode>()) {
      own = {add_scalar(*constant)};
    } else {
      throw InternalError(fmt::format("a group contains a {}", expr->key()));
    }
  }

  std::vector<Buffer> visit_call(const CallNode& call) {
    const OpNode* op = call.as_op();
    HEADRACE_CHECK(op != nullptr, "a group calls a {}", call.op->key());
    const ComputeRuleFn* rule = op->find(kComputeRule);
    if (rule == nullptr)
      throw_at(
          call.span, op->name,
          fmt::format(
              "no compute rule for '{}', so it cannot be compiled; in Python relay.op.register_compute "
              "gives an op one (docs/user-ops.md){}; docs/ops.md tells which ops of Headrace have one",
              op->name,
              op->find(ops::kEval) == nullptr ? "" : ", and relay.create_executor('debug') interprets without one"));
    RuleInput input = rule_input_of(call);
    for (const Expr& arg : call.args) {
      for (const Buffer& buffer : buffers_.at(arg.get())) input.inputs.push_back(buffer);
    }
    Compute part = (*rule)(input);
    if (machine_ != nullptr) part = copy_windows(std::move(part), *machine_);
    check_buffers(call, *op, part);
    for (ComputeStage& stage : part.stages) compute_.stages.push_back(std::move(stage));
    return part.outputs;
  }

  Buffer add_scalar(const ConstantNode& constant) {
    HEADRACE_CHECK(constant.data.num_elements() == 1, "a group holds a constant of {} elements",
                   constant.data.num_elements());
    const Buffer buffer = make_buffer("constant", constant.data.dtype(), to_dims(constant.data.shape()));
    scalars_[buffer.get()] = element_of(constant.data);
    return buffer;
  }

  // Makes every result a buffer of its own that a stage writes.
  void add_results(const std::vector<Buffer>& results) {
    std::unordered_set<const BufferNode*> free;  // written, and no result yet
    for (const ComputeStage& stage : compute_.stages) free.insert(stage.output.get());
    for (const Buffer& result : results) {
      if (free.erase(result.get()) > 0) {
        compute_.outputs.push_back(result);
        continue;
      }
      const Buffer copy = make_buffer(result->name, result->dtype, result->shape);
      compute_.stages.push_back(map_stage(copy, [&](const Index& index) { return load(result, index); }));
      compute_.outputs.push_back(copy);
    }
  }

  void inline_scalars() {
    if (scalars_.empty()) return;
    const auto replace = [&](const PrimExpr& root) {
      if (!root) return root;
      return tir::rewrite(root, [&](const PrimExpr& e) {
        const auto* at = e.as<BufferLoadNode>();
        const auto scalar = at == nullptr ? scalars_.end() : scalars_.find(at->buffer.get());
        return scalar == scalars_.end() ? e : scalar->second;
      });
    };
    for (ComputeStage& stage : compute_.stages) {
      stage.value = replace(stage.value);
      stage.epilogue = replace(stage.epilogue);
    }
  }

  const cost::Machine* machine_;
  Compute compute_;
  std::unordered_map<const ExprNode*, std::vector<Buffer>> buffers_;
  std::unordered_map<const BufferNode*, PrimExpr> scalars_;
};

// Makes the only result a buffer whose rows are `strides` apart: its stages keep their extents, its inner dimensions
// grow. The strides are those of a dense tensor that the result is a part of (relay::kResultStrides).
Compute with_gaps(Compute compute, const Shape& strides) {
  HEADRACE_CHECK(compute.outputs.size() == 1, "a kernel of {} results has strides", compute.outputs.size());
  const Buffer result = compute.outputs[0];
  HEADRACE_CHECK(strides.size() == result->shape.size(), "{} strides for a result of {} dimensions", strides.size(),
                 result->shape.size());
  std::vector<PrimExpr> shape = result->shape.to_vector();
  for (size_t i = 1; i < shape.size(); ++i) shape[i] = make_int(strides[i - 1] / strides[i]);
  const Buffer wide = make_buffer(result->name, result->dtype, Array<PrimExpr>(shape));
  const auto moved = [&](const PrimExpr& root) {
    if (!root) return root;
    return tir::rewrite(root, [&](const PrimExpr& e) {
      const auto* at = e.as<BufferLoadNode>();
      return at != nullptr && at->buffer == result ? load(wide, at->indices.to_vector()) : e;
    });
  };
  for (ComputeStage& stage : compute.stages) {
    stage.value = moved(stage.value);
    stage.epilogue = moved(stage.epilogue);
    if (stage.is_check() || stage.output != result) continue;
    stage.extents = stage.axis_extents();
    stage.output = wide;
  }
  compute.outputs = {wide};
  return compute;
}

}  // namespace

Compute compute_of(const relay::Function& group) {
  check_params(group);
  return Composer(nullptr).compose(group);
}

tir::PrimFunc lower_function(const relay::Function& group, const std::string& symbol, const cost::Machine& machine) {
  check_params(group);
  const Shape strides = relay::result_strides_of(*group);
  if (auto kernel = lower_kernel(group, symbol, machine)) {
    HEADRACE_CHECK(strides.empty(), "the loops of {} are written by hand for a dense result", symbol);
    return *std::move(kernel);
  }
  Compute compute = fuse_stages(Composer(&machine).compose(group));
  if (!strides.empty()) compute = with_gaps(std::move(compute), strides);
  return schedule(compute, symbol, machine);
}

}  // namespace headrace::lower
