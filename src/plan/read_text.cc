// Reads a program from its text form (program_text.h).
#include <set>

#include "ops/op_handles.h"
#include "ops/tensor/memory.h"
#include "passes/forms/bound_outputs.h"
#include "plan/program_text.h"
#include "relay/match.h"

namespace headrace::plan {

using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;
using relay::LetNode;
using relay::TupleNode;

namespace {

[[noreturn]] void refuse(const Expr& at, std::string_view what) {
  throw_at(at->span, "destination passing", fmt::format("{}; plan/program_text.h shows the form", what));
}

class TextReader {
 public:
  explicit TextReader(const IRModule& module) : module_(module) {}

  Program read() {
    const auto* main = module_->lookup("main").as<FunctionNode>();
    read_parameters(*main);
    Expr at = main->body;
    for (; at.is<LetNode>(); at = at.as<LetNode>()->body) read_binding(*at.as<LetNode>());
    read_extents(*main, at);
    return std::move(program_);
  }

 private:
  void read_parameters(const FunctionNode& main) {
    const auto count = main.attrs.get(kNumOutputs);
    const bool is_count = count && count->is<int64_t>() && count->as<int64_t>() >= 0 &&
                          static_cast<size_t>(count->as<int64_t>()) <= main.params.size();
    if (!is_count)
      throw_at(main.span, "destination passing",
               fmt::format("main has no attribute {} that says how many of its parameters are outputs", kNumOutputs));
    const size_t num_inputs = main.params.size() - static_cast<size_t>(count->as<int64_t>());
    for (size_t i = 0; i < main.params.size(); ++i) {
      const relay::Var& param = main.params[i];
      const Base::Kind kind = i < num_inputs ? Base::Kind::input : Base::Kind::output;
      const TensorType type = tensor_type(param);
      const size_t base = add_base({.kind = kind, .name = param->name_hint, .type = type, .span = param->span});
      (i < num_inputs ? program_.inputs : program_.outputs).push_back(add_view(param, {.base = base, .type = type}));
      program_.bases[base].nbytes = span_bytes(program_.views.back());
    }
  }

  void read_binding(const LetNode& let) {
    const auto* call = let.value.as<CallNode>();
    if (call == nullptr || call->as_op() == nullptr) refuse(let.value, "a binding is not a call of an op");
    if (relay::is_call(*call, op::kMemoryAllocStorage)) {
      const auto& alloc = call->attrs_as<ops::AllocStorageAttrs>();
      const auto location = artifact::parse_location(alloc.location);
      if (!location) refuse(let.value, fmt::format("'{}' is not a location", alloc.location));
      storages_[let.var.get()] = add_base({.nbytes = alloc.size, .location = *location, .span = call->span});
    } else if (relay::is_call(*call, op::kMemoryView)) {
      read_view(let, *call);
    } else {
      read_effect(let.value, *call);
    }
  }

  void read_view(const LetNode& let, const CallNode& call) {
    const auto& attrs = call.attrs_as<ops::MemoryViewAttrs>();
    View view{.byte_offset = attrs.byte_offset, .type = tensor_type(let.var), .strides = attrs.strides};
    if (const auto storage = storages_.find(call.args[0].get()); storage != storages_.end()) {
      if (killed_.contains(storage->second)) refuse(let.value, "a storage is used after it was killed");
      view.base = storage->second;
    } else {
      const View& whole = program_.views[view_of(call.args[0])];
      view.base = whole.base;
      view.byte_offset += whole.byte_offset;
    }
    add_view(let.var, std::move(view));
  }

  void read_effect(const Expr& at, const CallNode& call) {
    if (relay::is_call(call, op::kMemoryKill)) {
      const auto storage = storages_.find(call.args[0].get());
      if (storage == storages_.end()) refuse(at, "memory.kill of something that is not a storage");
      killed_.insert(storage->second);
    } else if (relay::is_call(call, op::kMemoryCopy)) {
      program_.steps.push_back({.inputs = {used(call.args[0])}, .outputs = {used(call.args[1])}, .span = call.span});
    } else if (relay::is_call(call, op::kCallDps)) {
      read_call(at, call);
    } else {
      refuse(at, fmt::format("'{}' is bound, which is not an op on memory", call.as_op()->name));
    }
  }

  void read_call(const Expr& at, const CallNode& call) {
    const auto* name = call.args[0].as<GlobalVarNode>();
    const auto* inputs = call.args[1].as<TupleNode>();
    const auto* outputs = call.args[2].as<TupleNode>();
    if (name == nullptr || inputs == nullptr || outputs == nullptr)
      refuse(at, "call_dps takes a function of the module and two tuples");
    Step step{.function = function(*name), .span = call.span};
    for (const Expr& input : inputs->items) step.inputs.push_back(used(input));
    for (const Expr& output : outputs->items) step.outputs.push_back(used(output));
    program_.steps.push_back(std::move(step));
  }

  size_t function(const GlobalVarNode& name) {
    const auto [known, is_new] = functions_.emplace(name.name_hint, program_.functions.size());
    if (is_new)
      program_.functions.emplace_back(module_->get_global_var(name.name_hint),
                                      module_->lookup(name.name_hint).cast<FunctionNode>());
    return known->second;
  }

  void read_extents(const FunctionNode& main, const Expr& body) {
    const auto* extents = body.as<TupleNode>();
    if (extents == nullptr) refuse(body, "main does not end in a tuple");
    for (const passes::BoundedOutput& row : passes::bounded_outputs_of(main, kOutputExtents)) {
      if (row.extent >= extents->items.size()) refuse(body, "an extent is missing");
      program_.bounded_outputs.push_back(
          {.output = row.output, .axis = row.axis, .extent = view_of(extents->items[row.extent])});
    }
  }

  // Returns the view of a step's argument.
  size_t used(const Expr& expr) {
    const size_t view = view_of(expr);
    if (killed_.contains(program_.views[view].base)) refuse(expr, "a storage is used after it was killed");
    return view;
  }

  size_t view_of(const Expr& expr) {
    const auto known = views_.find(expr.get());
    if (known != views_.end()) return known->second;
    const auto* constant = expr.as<ConstantNode>();
    if (constant == nullptr) refuse(expr, "a step takes something that is not a parameter, view or constant");
    const TensorType type = constant->tensor_type();
    const size_t base = add_base({.kind = Base::Kind::constant,
                                  .type = type,
                                  .constant = expr.cast<ConstantNode>(),
                                  .nbytes = static_cast<int64_t>(constant->data.size_bytes()),
                                  .span = expr->span});
    return add_view(expr, {.base = base, .type = type});
  }

  static TensorType tensor_type(const Expr& expr) {
    if (!expr->checked_type().is<TensorTypeNode>()) refuse(expr, "a value in memory is not a tensor");
    return expr->checked_type().cast<TensorTypeNode>();
  }

  size_t add_base(Base base) {
    program_.bases.push_back(std::move(base));
    return program_.bases.size() - 1;
  }

  size_t add_view(const Expr& expr, View view) {
    const auto shape = as_shape(view.type->shape);
    if (!shape) refuse(expr, "a value in memory has no static shape");
    view.shape = *shape;
    program_.views.push_back(std::move(view));
    return views_[expr.get()] = program_.views.size() - 1;
  }

  const IRModule& module_;
  Program program_;
  std::unordered_map<const ExprNode*, size_t> views_;
  std::unordered_map<const ExprNode*, size_t> storages_;  // bases
  std::unordered_map<std::string, size_t> functions_;
  std::set<size_t> killed_;  // bases
};

}  // namespace

Program from_module(const IRModule& module) { return TextReader(module).read(); }

}  // namespace headrace::plan
