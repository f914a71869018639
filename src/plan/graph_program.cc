#include "plan/graph_program.h"

#include <algorithm>

#include "cost/op_work.h"
#include "ops/call_fusion.h"
#include "plan/plan_memory.h"
#include "relay/function_attrs.h"

namespace headrace::plan {

using artifact::Entry;
using artifact::Place;
using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;

namespace {

constexpr double kMostOperations = 1e18;  // more is no work that ends

std::vector<int64_t> numbers_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

class Emitter {
 public:
  Emitter(const Program& program, WeightTable& weights)
      : program_(program), weights_(weights), entries_(program.views.size(), -1), indices_(program.bases.size(), -1) {}

  artifact::Program emit(const ProgramNames& names) {
    HEADRACE_CHECK(names.inputs.size() == program_.inputs.size() && names.outputs.size() == program_.outputs.size(),
                   "{} names for {} inputs, {} for {} outputs", names.inputs.size(), program_.inputs.size(),
                   names.outputs.size(), program_.outputs.size());
    emitted_.name = names.program;
    emit_ports(program_.inputs, names.inputs, emitted_.inputs);
    emit_ports(program_.outputs, names.outputs, emitted_.outputs);
    emit_arenas();
    for (const Step& step : program_.steps) emit_step(step);
    for (const BoundedOutput& bounded : program_.bounded_outputs) {
      emitted_.bounded_outputs.push_back({.output = static_cast<int64_t>(bounded.output),
                                          .axis = static_cast<int64_t>(bounded.axis),
                                          .extent = entry(bounded.extent)});
    }
    return std::move(emitted_);
  }

 private:
  void emit_ports(const std::vector<size_t>& ports, const std::vector<std::string>& names,
                  std::vector<artifact::TensorSpec>& specs) {
    for (size_t i = 0; i < ports.size(); ++i) {
      const View& view = program_.views[ports[i]];
      indices_[view.base] = static_cast<int64_t>(i);
      specs.push_back({.name = names[i],
                       .dtype = view.type->dtype,
                       .shape = numbers_of(view.shape),
                       .location = program_.bases[view.base].location});
      entry(ports[i]);
    }
  }

  void emit_arenas() {
    for (const Base& base : program_.bases) {
      if (base.offset && !find_arena(base.location))
        emitted_.memory.arenas.push_back({.location = base.location, .nbytes = arena_bytes(program_, base.location)});
    }
  }

  std::optional<int32_t> find_arena(const artifact::Location& location) const {
    const auto& arenas = emitted_.memory.arenas;
    const auto found =
        std::find_if(arenas.begin(), arenas.end(), [&](const auto& one) { return one.location == location; });
    if (found == arenas.end()) return std::nullopt;
    return static_cast<int32_t>(found - arenas.begin());
  }

  void emit_step(const Step& step) {
    artifact::Step made{.action = artifact::CopyStep{}, .num_outputs = static_cast<int32_t>(step.outputs.size())};
    std::vector<int32_t> inputs;
    for (const size_t input : step.inputs) inputs.push_back(entry(input));
    made.op = step.function ? to_string(step.span) : "copy";
    if (step.function) {
      const auto& [name, function] = program_.functions[*step.function];
      const bool is_op_of_process = ops::external_of(function->body) != nullptr;
      if (is_op_of_process) inputs = operands_of(*function, inputs);
      made.action = action_of(name, *function);
      made.operations = static_cast<int64_t>(std::min(cost::operations_of(*function), kMostOperations));
    }
    made.args = std::move(inputs);
    for (const size_t output : step.outputs) made.args.push_back(entry(output));
    emitted_.graph.steps.push_back(std::move(made));
  }

  static artifact::StepAction action_of(const GlobalVar& name, const FunctionNode& function) {
    const auto import = import_of(name, function);
    if (import && relay::compiler_of(function)) return artifact::RegionCall{*import};
    if (import) return artifact::ExternalCall{*import};
    return artifact::KernelCall{name->name_hint};
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
      if (const auto* tuple = arg.as<relay::TupleNode>()) {
        push(tuple->items);
      } else {
        const auto param = params.find(arg.get());
        const auto* constant = arg.as<ConstantNode>();
        if (param == params.end() && constant == nullptr) ops::refuse_computed_operand(*group.body.as<CallNode>());
        operands.push_back(param == params.end() ? add_constant(constant->data) : param->second);
      }
    }
    return operands;
  }

  // Returns the entry of a view, which is made at its first use.
  int32_t entry(size_t index) {
    int32_t& known = entries_[index];
    if (known >= 0) return known;
    const View& view = program_.views[index];
    const Base& base = program_.bases[view.base];
    return known = add_entry({.place = place_of(base.kind),
                              .index = base_index(view.base),
                              .byte_offset = view.byte_offset,
                              .dtype = view.type->dtype,
                              .shape = numbers_of(view.shape),
                              .strides = numbers_of(view.strides),
                              .location = base.location});
  }

  int32_t add_constant(const NDArray& data) {
    return add_entry({.place = Place::kWeight,
                      .index = weights_.add(data),
                      .dtype = data.dtype(),
                      .shape = numbers_of(data.shape()),
                      .strides = {}});
  }

  static Place place_of(Base::Kind kind) {
    switch (kind) {
      case Base::Kind::input:
        return Place::kInput;
      case Base::Kind::output:
        return Place::kOutput;
      case Base::Kind::constant:
        return Place::kWeight;
      case Base::Kind::storage:
        return Place::kStorage;
    }
    throw InternalError("a base of a program is of no kind");
  }

  // Returns the base's index among the manifest's inputs, outputs, weights or storages.
  int64_t base_index(size_t index) {
    int64_t& known = indices_[index];
    if (known >= 0) return known;
    const Base& base = program_.bases[index];
    if (base.kind == Base::Kind::constant) return known = weights_.add(base.constant->data);
    HEADRACE_CHECK(base.kind == Base::Kind::storage && base.offset, "the memory of a program is not planned");
    auto& storages = emitted_.memory.storages;
    storages.push_back({.arena = *find_arena(base.location), .offset = *base.offset, .nbytes = base.nbytes});
    return known = static_cast<int64_t>(storages.size()) - 1;
  }

  int32_t add_entry(Entry made) {
    emitted_.graph.entries.push_back(std::move(made));
    return static_cast<int32_t>(emitted_.graph.entries.size()) - 1;
  }

  const Program& program_;
  WeightTable& weights_;
  artifact::Program emitted_;
  std::vector<int32_t> entries_;  // entry per view
  std::vector<int64_t> indices_;  // index per base
};

}  // namespace

artifact::Program emit_graph_program(const Program& program, const ProgramNames& names, WeightTable& weights) {
  return Emitter(program, weights).emit(names);
}

}  // namespace headrace::plan
