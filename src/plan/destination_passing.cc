#include "plan/destination_passing.h"

#include <algorithm>
#include <unordered_set>

#include "ops/tensor/memory.h"
#include "passes/forms/bound_outputs.h"
#include "plan/check_fused.h"
#include "plan/dataflow.h"
#include "plan/group_names.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::plan {

using relay::Function;
using relay::FunctionNode;
using relay::Var;

namespace {

// A step is given tensors: a group becomes one whose parameters are the tensors of those it had.
class TensorGroup {
 public:
  static Function of(const Function& group) {
    const auto is_tuple = [](const Var& param) { return param->checked_type().is<TupleTypeNode>(); };
    return std::any_of(group->params.begin(), group->params.end(), is_tuple) ? TensorGroup().rewrite(group) : group;
  }

 private:
  Function rewrite(const Function& group) {
    std::unordered_map<const Object*, Expr> values;
    for (const Var& param : group->params)
      values.emplace(param.object(), take_apart(param->checked_type(), param->name_hint));
    const Expr body = relay::rewrite_post_order(group->body, [&](const Expr& before, const Expr& after) {
      const auto value = values.find(before.object());
      return value == values.end() ? item_of(after) : value->second;
    });
    return copy_with(*group, [&](FunctionNode& copy) {
      copy.params = params_;
      copy.body = body;
    });
  }

  // Makes a parameter for each tensor of a type, and the value of that type that they form.
  Expr take_apart(const Type& type, const std::string& name) {
    const auto* tuple = type.as<TupleTypeNode>();
    if (tuple == nullptr) {
      params_.push_back(relay::make_var(name, type));
      return params_.back();
    }
    Array<Expr> items;
    for (size_t i = 0; i < tuple->items.size(); ++i)
      items.push_back(take_apart(tuple->items[i], fmt::format("{}_{}", name, i)));
    const Expr made = relay::make_tuple(items);
    made_.insert(made.object());
    return made;
  }

  // Returns the item itself for an item of a tuple made here, because the kernel of one op takes nothing else.
  Expr item_of(const Expr& expr) const {
    const auto* item = expr.as<relay::TupleGetItemNode>();
    if (item == nullptr || !made_.contains(item->tuple.object())) return expr;
    return item->tuple.as<relay::TupleNode>()->items[static_cast<size_t>(item->index)];
  }

  Array<Var> params_;
  std::unordered_set<const Object*> made_;
};

class Writer {
 public:
  explicit Writer(Dataflow flow) : flow_(std::move(flow)), last_use_(flow_.bases.size()), made_(flow_.tensors.size()) {}

  IRModule write(const Function& main) {
    const Array<int64_t> bounded = take_extents(*main);
    make_outputs();
    find_last_uses();
    for (size_t i = 0; i < flow_.steps.size(); ++i) write_step(i);
    for (const auto& [tensor, output] : copies_) bind("_", ops::memory_copy(tensor_expr(tensor), outputs_[output]));
    Array<Var> params = main->params;
    for (const Var& output : outputs_) params.push_back(output);
    Array<Expr> extents;
    Array<Type> extent_types;
    for (const size_t extent : extents_) {
      extents.push_back(tensor_expr(extent));
      extent_types.push_back(flow_.tensors[extent].type);
    }
    Map<std::string, Value> attrs{{kNumOutputs, Value(static_cast<int64_t>(outputs_.size()))}};
    if (!bounded.empty()) attrs.set(kOutputExtents, Value(bounded));
    const Function result =
        relay::make_function(params, lets(relay::make_tuple(extents)), make_tuple_type(extent_types), {}, attrs);
    IRModule module = make_module(result);
    for (const auto& [name, function] : groups_.functions()) module->add_function(name, function);
    return relay::infer_type(module);
  }

 private:
  // Removes the extents from the outputs, and returns the value of the attribute output_extents.
  Array<int64_t> take_extents(const FunctionNode& main) {
    const std::vector<passes::BoundedOutput> rows = passes::bounded_outputs_of(main);
    size_t num_outputs = flow_.results.size();
    for (const passes::BoundedOutput& row : rows) num_outputs = std::min(num_outputs, row.extent);
    const auto first = flow_.results.begin() + static_cast<std::ptrdiff_t>(num_outputs);
    extents_.assign(first, flow_.results.end());
    flow_.results.erase(first, flow_.results.end());
    Array<int64_t> numbers;
    for (const passes::BoundedOutput& row : rows) {
      for (const size_t number : {row.output, row.axis, row.extent - num_outputs})
        numbers.push_back(static_cast<int64_t>(number));
    }
    return numbers;
  }

  // Results that are storages become the outputs themselves; the others are copied at the end.
  void make_outputs() {
    for (size_t i = 0; i < flow_.results.size(); ++i) {
      const Tensor& tensor = flow_.tensors[flow_.results[i]];
      outputs_.push_back(relay::make_var(fmt::format("output{}", i), tensor.type));
      Base& base = flow_.bases[tensor.base];
      if (base.memory == Memory::storage && !base.output) {
        base.output = i;
        base.expr = outputs_.back();
      } else {
        copies_.emplace_back(flow_.results[i], i);
      }
    }
  }

  void find_last_uses() {
    const auto use = [&](size_t tensor, size_t step) { last_use_[flow_.tensors[tensor].base] = step; };
    for (size_t i = 0; i < flow_.steps.size(); ++i) {
      for (const size_t tensor : flow_.steps[i].outputs) use(tensor, i);
      for (const size_t tensor : flow_.steps[i].inputs) use(tensor, i);
    }
    for (const size_t extent : extents_) use(extent, flow_.steps.size());  // after the last step
  }

  void write_step(size_t index) {
    const Step& step = flow_.steps[index];
    Array<Expr> inputs, outputs;
    for (const size_t tensor : step.inputs) inputs.push_back(tensor_expr(tensor));
    for (const size_t tensor : step.outputs) outputs.push_back(tensor_expr(tensor));
    bind("_", ops::call_dps(groups_.add(TensorGroup::of(step.function)), inputs, outputs, step.span));
    for (const auto* tensors : {&step.inputs, &step.outputs}) {
      for (const size_t tensor : *tensors) kill_after(flow_.tensors[tensor].base, index);
    }
  }

  void kill_after(size_t index, size_t step) {
    Base& base = flow_.bases[index];
    if (base.memory != Memory::storage || base.output || last_use_[index] != step || !base.expr) return;
    bind("_", ops::memory_kill(base.expr));
    base.expr = {};
  }

  // Returns the tensor as something that a call takes; its storage and view are made at the first use.
  Expr tensor_expr(size_t index) {
    Expr& made = made_[index];
    if (made) return made;
    const Tensor& tensor = flow_.tensors[index];
    Base& base = flow_.bases[tensor.base];
    if (!base.expr) base.expr = bind(fmt::format("s{}", num_storages_++), ops::alloc_storage(base.nbytes));
    if (is_whole(base, tensor)) return made = base.expr;
    return made = bind("t", ops::memory_view(base.expr, 0, tensor.shape, tensor.type->dtype));
  }

  // Returns whether the base is already a tensor of that type.
  bool is_whole(const Base& base, const Tensor& tensor) const {
    if (base.memory == Memory::storage && !base.output) return false;
    const TensorType type = base.expr.is<relay::ConstantNode>()
                                ? base.expr.as<relay::ConstantNode>()->tensor_type()
                                : base.expr.as<relay::VarNode>()->type_annotation.cast<TensorTypeNode>();
    return type->dtype == tensor.type->dtype && as_shape(type->shape) == std::optional(tensor.shape);
  }

  Var bind(std::string name, Expr value) {
    bindings_.emplace_back(relay::make_var(std::move(name)), std::move(value));
    return bindings_.back().first;
  }

  Expr lets(Expr body) const {
    for (size_t i = bindings_.size(); i-- > 0;) body = relay::make_let(bindings_[i].first, bindings_[i].second, body);
    return body;
  }

  Dataflow flow_;
  GroupTable groups_;
  std::vector<Var> outputs_;
  std::vector<size_t> extents_;                    // tensors
  std::vector<std::pair<size_t, size_t>> copies_;  // tensor, output
  std::vector<size_t> last_use_;                   // of bases: a step
  std::vector<Expr> made_;                         // of tensors
  std::vector<std::pair<Var, Expr>> bindings_;
  size_t num_storages_ = 0;
};

}  // namespace

IRModule to_destination_passing(const IRModule& module) {
  const Function main = module->lookup("main").cast<FunctionNode>();
  check_fused(main);
  return Writer(read_dataflow(main)).write(main);
}

}  // namespace headrace::plan
