#include "plan/graph_program.h"

#include "ops/call_fusion.h"
#include "ops/op_handles.h"
#include "ops/tensor/memory.h"
#include "passes/forms/bound_outputs.h"
#include "plan/destination_passing.h"
#include "relay/visit.h"

namespace headrace::plan {

using artifact::Entry;
using artifact::Place;
using artifact::Program;
using artifact::StepKind;
using artifact::TensorSpec;
using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleNode;
using relay::VarNode;

namespace {

class Emitter {
 public:
  Emitter(const IRModule& module, Program& program, WeightTable& weights)
      : module_(module), program_(program), weights_(weights) {}

  void emit(const FunctionNode& main, const ProgramNames& names) {
    const auto num_outputs = static_cast<size_t>(main.attrs.at(kNumOutputs).as<int64_t>());
    const size_t num_inputs = main.params.size() - num_outputs;
    HEADRACE_CHECK(names.inputs.size() == num_inputs && names.outputs.size() == num_outputs,
                   "{} names for {} inputs, {} for {} outputs", names.inputs.size(), num_inputs, names.outputs.size(),
                   num_outputs);
    for (size_t i = 0; i < main.params.size(); ++i) {
      const bool is_input = i < num_inputs;
      const size_t index = is_input ? i : i - num_inputs;
      const auto* type = main.params[i]->type_annotation.as<TensorTypeNode>();
      const Shape shape = type->concrete_shape();
      std::vector<TensorSpec>& specs = is_input ? program_.inputs : program_.outputs;
      specs.push_back({(is_input ? names.inputs : names.outputs)[index], type->dtype, {shape.begin(), shape.end()}});
      entries_[main.params[i].get()] = add_entry({is_input ? Place::kInput : Place::kOutput,
                                                  static_cast<int64_t>(index),
                                                  0,
                                                  type->dtype,
                                                  {shape.begin(), shape.end()},
                                                  {}});
    }
    Expr at = main.body;
    for (; at.is<LetNode>(); at = at.as<LetNode>()->body) emit_binding(*at.as<LetNode>());
    emit_bounds(main, *at.as<TupleNode>());
  }

 private:
  void emit_bounds(const FunctionNode& main, const TupleNode& extents) {
    for (const passes::BoundedOutput& row : passes::bounded_outputs_of(main, kOutputExtents)) {
      program_.bounded_outputs.push_back({.output = static_cast<int64_t>(row.output),
                                          .axis = static_cast<int64_t>(row.axis),
                                          .extent = entry(extents.items[row.extent])});
    }
  }

  void emit_binding(const LetNode& let) {
    const auto* call = let.value.as<CallNode>();
    const OpNode* op = call != nullptr ? call->as_op() : nullptr;
    HEADRACE_CHECK(op != nullptr, "a binding of {} in destination passing form", let.value->key());
    if (op::kMemoryAllocStorage.is(op)) {
      HEADRACE_CHECK(arena_ == nullptr, "memory has not been planned: there are two storages");
      arena_ = let.var.get();
      program_.memory.arena_bytes = call->attrs_as<ops::AllocStorageAttrs>().size;
    } else if (op::kMemoryView.is(op)) {
      entries_[let.var.get()] = view(*call);
    } else if (op::kMemoryCopy.is(op)) {
      program_.graph.steps.push_back({StepKind::kCopy, "", {entry(call->args[0]), entry(call->args[1])}, 1, "copy"});
    } else if (op::kCallDps.is(op)) {
      emit_call(*call);
    } else {
      throw InternalError(fmt::format("'{}' in destination passing form", op->name));
    }
  }

  void emit_call(const CallNode& call) {
    artifact::Step step;
    step.callee = call.args[0].as<GlobalVarNode>()->name_hint;
    step.op = to_string(call.span);
    for (const Expr& input : call.args[1].as<TupleNode>()->items) step.args.push_back(entry(input));
    const auto group = module_->lookup(step.callee).cast<FunctionNode>();
    if (const std::string* external = ops::external_of(group->body)) {
      step.kind = StepKind::kExternal;
      step.callee = *external;
      step.args = operands_of(*group, step.args);
    }
    const Array<Expr>& outputs = call.args[2].as<TupleNode>()->items;
    for (const Expr& output : outputs) step.args.push_back(entry(output));
    step.num_outputs = static_cast<int32_t>(outputs.size());
    program_.graph.steps.push_back(std::move(step));
  }

  // Returns the operands of a group's only call, tuples taken apart, when the group's parameters are `inputs`: a group
  // lists each operand once, and has no parameter for a constant of one element.
  std::vector<int32_t> operands_of(const FunctionNode& group, const std::vector<int32_t>& inputs) {
    std::unordered_map<const ExprNode*, int32_t> params;
    for (size_t i = 0; i < inputs.size(); ++i) params.emplace(group.params[i].get(), inputs[i]);
    std::vector<Expr> pending;
    const auto push = [&](const Array<Expr>& items) {
      for (size_t i = items.size(); i-- > 0;) pending.push_back(items[i]);
    };
    push(group.body.as<CallNode>()->args);
    std::vector<int32_t> operands;
    while (!pending.empty()) {
      const Expr arg = pending.back();
      pending.pop_back();
      if (const auto* tuple = arg.as<TupleNode>()) {
        push(tuple->items);
      } else {
        const auto param = params.find(arg.get());
        if (param == params.end() && !arg.is<ConstantNode>()) ops::refuse_computed_operand(*group.body.as<CallNode>());
        operands.push_back(param == params.end() ? entry(arg) : param->second);
      }
    }
    return operands;
  }

  int32_t view(const CallNode& call) {
    const auto& attrs = call.attrs_as<ops::MemoryViewAttrs>();
    Entry made{Place::kStorage, 0, attrs.byte_offset, attrs.dtype, {attrs.shape.begin(), attrs.shape.end()}, {}};
    if (call.args[0].as<VarNode>() == arena_ && arena_ != nullptr) {
      made.index = storage(attrs.byte_offset, num_elements(attrs.shape) * static_cast<int64_t>(attrs.dtype.bytes()));
      made.byte_offset = 0;
    } else {
      const Entry& base = program_.graph.entries[static_cast<size_t>(entry(call.args[0]))];
      made.place = base.place;
      made.index = base.index;
      made.byte_offset += base.byte_offset;
    }
    return add_entry(std::move(made));
  }

  // Returns the index of the piece of the arena; views of one piece share it.
  int64_t storage(int64_t offset, int64_t nbytes) {
    auto& storages = program_.memory.storages;
    const auto [it, is_new] = storages_.emplace(std::pair(offset, nbytes), storages.size());
    if (is_new) storages.push_back({offset, nbytes});
    return static_cast<int64_t>(it->second);
  }

  int32_t entry(const Expr& expr) {
    const auto known = entries_.find(expr.get());
    if (known != entries_.end()) return known->second;
    const auto* constant = expr.as<ConstantNode>();
    HEADRACE_CHECK(constant != nullptr, "a step takes a {}", expr->key());
    const Shape& shape = constant->data.shape();
    return entries_[expr.get()] = add_entry({Place::kWeight,
                                             weights_.add(constant->data),
                                             0,
                                             constant->data.dtype(),
                                             {shape.begin(), shape.end()},
                                             {}});
  }

  int32_t add_entry(Entry entry) {
    program_.graph.entries.push_back(std::move(entry));
    return static_cast<int32_t>(program_.graph.entries.size()) - 1;
  }

  const IRModule& module_;
  Program& program_;
  WeightTable& weights_;
  const VarNode* arena_ = nullptr;
  std::unordered_map<const ExprNode*, int32_t> entries_;
  std::map<std::pair<int64_t, int64_t>, size_t> storages_;
};

}  // namespace

Program emit_graph_program(const IRModule& module, const ProgramNames& names, WeightTable& weights) {
  Program program;
  program.name = artifact::kDefaultProgram;
  Emitter(module, program, weights).emit(*module->lookup("main").cast<FunctionNode>().get(), names);
  return program;
}

}  // namespace headrace::plan
