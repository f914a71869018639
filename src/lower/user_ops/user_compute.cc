#include "lower/user_ops/user_compute.h"

#include <algorithm>

#include "arith/canonical.h"
#include "ir/map_operands.h"
#include "lower/rule_input.h"
#include "lower/user_ops/check_indices.h"
#include "tir/own_variables.h"
#include "tir/raise.h"
#include "tir/rewrite.h"
#include "tir/verify_compute.h"

namespace headrace::lower {

using ops::FusionKind;
using tir::Compute;
using tir::ComputeStage;
using tir::PrimFunc;
using tir::Stmt;

namespace {

using Buffers = std::unordered_map<const BufferNode*, Buffer>;
using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

std::string show(const Buffer& buffer) { return to_string(Type(make_tensor_type(buffer->shape, buffer->dtype))); }

bool same_shape(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!arith::is_equal(a[i], b[i])) return false;
  }
  return true;
}

// Checks indices here, because compiled loops do not check them.
void check_indices(const Compute& form, const RuleInput& input) {
  if (const auto outside = find_index_outside(form)) fail_call(input.call, *outside);
}

// A copy of a form with other buffers and symbols, and axes of its own.
class Copier {
 public:
  Copier(Buffers buffers, Values values) : buffers_(std::move(buffers)), values_(std::move(values)) {}

  Compute copy(const Compute& form) {
    Compute result;
    for (const Buffer& buffer : form.inputs) result.inputs.push_back(this->buffer(buffer));
    for (const ComputeStage& stage : form.stages) result.stages.push_back(copy(stage));
    for (const Buffer& buffer : form.outputs) result.outputs.push_back(this->buffer(buffer));
    return tir::with_own_variables(std::move(result));
  }

 private:
  ComputeStage copy(const ComputeStage& stage) {
    ComputeStage result = stage;
    // An op that fuses behind a reduction is computed from the combined value.
    if (result.combiner != tir::Combiner::none && !result.reduced)
      result.reduced = make_prim_var("reduced", result.value->dtype);
    for (std::vector<PrimExpr>* list : {&result.place, &result.extents, &result.reduce_extents}) {
      for (PrimExpr& item : *list) item = expr(item);
    }
    for (PrimExpr* item : {&result.init, &result.value, &result.epilogue}) *item = expr(*item);
    if (result.output) result.output = buffer(result.output);
    return result;
  }

  Buffer buffer(const Buffer& old) {
    const auto known = buffers_.find(old.get());
    if (known != buffers_.end()) return known->second;
    const Array<PrimExpr> shape = map_items(old->shape, [&](const PrimExpr& dim) { return expr(dim); });
    return buffers_[old.get()] = make_buffer(old->name, old->dtype, shape);
  }

  PrimExpr expr(const PrimExpr& root) {
    if (!root) return root;
    return tir::rewrite(root, [&](const PrimExpr& e) -> PrimExpr {
      if (const auto* var = e.as<PrimVarNode>()) {
        const auto value = values_.find(var);
        return value == values_.end() ? e : value->second;
      }
      const auto* at = e.as<BufferLoadNode>();
      return at == nullptr ? e : make_load(buffer(at->buffer), at->indices);
    });
  }

  Buffers buffers_;
  Values values_;
};

// ---- how a form fuses

std::vector<const BufferLoadNode*> loads_of(const PrimExpr& value) {
  std::vector<const BufferLoadNode*> loads;
  tir::for_each(value, [&](const PrimExpr& e) {
    if (const auto* at = e.as<BufferLoadNode>()) loads.push_back(at);
  });
  return loads;
}

// Returns whether a load is at the trailing axes of the stage, or at 0 of a dimension of one; with `full`, at all axes
// of a tensor of the same shape.
bool reads_like_numpy(const BufferLoadNode& at, const ComputeStage& stage, bool& full) {
  const size_t rank = at.indices.size();
  if (rank > stage.axes.size()) return false;
  for (size_t i = 0; i < rank; ++i) {
    const bool at_axis = at.indices[i] == PrimExpr(stage.axes[stage.axes.size() - rank + i]);
    if (!at_axis && !(is_int(at.indices[i], 0) && is_int(at.buffer->shape[i], 1))) return false;
  }
  full = full && same_shape(at.buffer->shape, stage.output->shape);
  return true;
}

bool reads_each_at_one_index(const std::vector<const BufferLoadNode*>& loads) {
  std::unordered_map<const BufferNode*, const BufferLoadNode*> first;
  for (const BufferLoadNode* at : loads) {
    const BufferLoadNode* known = first.emplace(at->buffer.get(), at).first->second;
    if (!same_shape(known->indices, at->indices)) return false;
  }
  return true;
}

bool uses(const BufferLoadNode& at, const PrimVar& axis) {
  for (const PrimExpr& index : at.indices) {
    if (index == PrimExpr(axis)) return true;
  }
  return false;
}

bool reads_elements_once(const std::vector<const BufferLoadNode*>& loads, const ComputeStage& stage) {
  for (const BufferLoadNode* at : loads) {
    for (const std::vector<PrimVar>* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const PrimVar& axis : *axes) {
        if (!uses(*at, axis)) return false;
      }
    }
  }
  return reads_each_at_one_index(loads);
}

// Besides where it reads: x[i] * i.
bool names_variables(const PrimExpr& value) {
  const PrimExpr without_loads = tir::rewrite(value, [](const PrimExpr& e) -> PrimExpr {
    const auto* at = e.as<BufferLoadNode>();
    if (at == nullptr) return e;
    return make_load(at->buffer, Array<PrimExpr>(std::vector<PrimExpr>(at->indices.size(), make_int(0))));
  });
  bool found = false;
  tir::for_each(without_loads, [&](const PrimExpr& e) { found = found || e.is<PrimVarNode>() || is_any(e); });
  return found;
}

bool is_in_parts(const ComputeStage& stage) { return stage.is_partial() || stage.is_check() || stage.is_layout; }

FusionKind kind_of_stage(const ComputeStage& stage) {
  const std::vector<const BufferLoadNode*> loads = loads_of(stage.value);
  if (stage.combiner != tir::Combiner::none)
    return reads_elements_once(loads, stage) ? FusionKind::reduction : FusionKind::anchor;
  bool full = true, like_numpy = !loads.empty() && !names_variables(stage.value);
  for (const BufferLoadNode* at : loads) like_numpy = like_numpy && reads_like_numpy(*at, stage, full);
  if (like_numpy) return full ? FusionKind::elementwise : FusionKind::broadcast;
  return reads_each_at_one_index(loads) ? FusionKind::injective : FusionKind::anchor;
}

// ---- a PrimFunc's parameters

const TensorType& type_of_param(const RuleInput& input, size_t i) {
  return i < input.in_types.size() ? input.in_types[i] : input.out_types[i - input.in_types.size()];
}

void check_param(const PrimFunc& function, const RuleInput& input, size_t i, const Values& values) {
  const Buffer& param = function->params[i];
  const TensorType& type = type_of_param(input, i);
  Array<PrimExpr> shape;
  for (const PrimExpr& dim : param->shape) shape.push_back(substitute(dim, values));
  if (!param->strides.empty())
    fail_call(input.call,
              fmt::format("parameter '{}' of its loops has strides, and tensors of a call are dense: leave them out",
                          param->name));
  if (param->dtype == type->dtype && same_shape(shape, type->shape)) return;
  fail_call(input.call,
            fmt::format("parameter '{}' of its loops is {}, and the call has {} there; give loops for this type, or a "
                        "function that makes them for each call",
                        param->name, show(param), to_string(Type(type))));
}

// Returns the values of the symbols in the parameters' shapes at this call.
Values match_params(const PrimFunc& function, const RuleInput& input) {
  const size_t num_inputs = input.in_types.size(), num_outputs = input.out_types.size();
  if (function->num_outputs != static_cast<int64_t>(num_outputs) ||
      function->params.size() != num_inputs + num_outputs) {
    fail_call(input.call, fmt::format("its loops have {} inputs and {} outputs, and the call has {} and {}",
                                      static_cast<int64_t>(function->params.size()) - function->num_outputs,
                                      function->num_outputs, num_inputs, num_outputs));
  }
  Values values;
  for (size_t i = 0; i < function->params.size(); ++i) {
    const Array<PrimExpr>& dims = function->params[i]->shape;
    const Array<PrimExpr>& sizes = type_of_param(input, i)->shape;
    for (size_t k = 0; k < dims.size() && k < sizes.size(); ++k) {
      if (const auto* symbol = dims[k].as<PrimVarNode>()) values.emplace(symbol, sizes[k]);
    }
  }
  for (size_t i = 0; i < function->params.size(); ++i) check_param(function, input, i, values);
  return values;
}

// ---- loops on lines of elements

PrimExpr wide_index(const PrimExpr& index) { return make_cast(kIndexType.with_lanes(index->dtype.lanes()), index); }

// Returns the position, in its line, of an access with many dimensions. The last index may be a vector of neighbours.
PrimExpr place_in(const Line& line, const Array<PrimExpr>& indices) {
  Index index;
  for (const PrimExpr& i : indices) index.push_back(i->dtype.is_scalar() ? wide_index(i) : make_int(0));
  const PrimExpr first = line.offset(index);
  if (indices.empty() || indices.back()->dtype.is_scalar()) return first;
  const int lanes = indices.back()->dtype.lanes();
  if (const auto* ramp = indices.back().as<RampNode>())
    return make_ramp(first + wide_index(ramp->base), wide_index(ramp->stride), lanes);
  return make_broadcast(first, lanes) + wide_index(indices.back());
}

}  // namespace

Compute fit_compute(const ComputeRuleFn& rule, const RuleInput& input) {
  // In a group two inputs may be one tensor.
  RuleInput own = input;
  Buffers given;
  for (Buffer& buffer : own.inputs) {
    const Buffer made = make_buffer(buffer->name, buffer->dtype, buffer->shape);
    given.emplace(made.get(), buffer);
    buffer = made;
  }
  const Compute form = rule(own);
  try {
    tir::verify(form);
  } catch (const UserError& error) {
    fail_call(input.call, error.message());
  }
  for (const Buffer& buffer : form.inputs) {
    if (!given.contains(buffer.get()))
      fail_call(input.call, fmt::format("its compute form reads '{}', which is not an input of the op", buffer->name));
  }
  if (form.outputs.size() != input.out_types.size())
    fail_call(input.call, fmt::format("its compute form gives {} results, and its type says {}", form.outputs.size(),
                                      input.out_types.size()));
  for (size_t i = 0; i < form.outputs.size(); ++i) {
    const TensorType& type = input.out_types[i];
    if (form.outputs[i]->dtype != type->dtype || !same_shape(form.outputs[i]->shape, type->shape))
      fail_call(input.call, fmt::format("its compute form gives {} as result {}, and its type says {}",
                                        show(form.outputs[i]), i, to_string(Type(type))));
  }
  check_indices(form, input);
  Compute fitted = Copier(std::move(given), {}).copy(form);
  fitted.inputs = input.inputs;  // also those that the form does not read
  return fitted;
}

std::pair<FusionKind, std::string> fusion_of(const Compute& form) {
  if (form.outputs.size() != 1) return {FusionKind::opaque, fmt::format("it has {} results", form.outputs.size())};
  if (form.stages.size() != 1) return {FusionKind::opaque, fmt::format("it has {} stages", form.stages.size())};
  const ComputeStage& stage = form.stages[0];
  if (is_in_parts(stage)) return {FusionKind::opaque, "it writes its result in parts"};
  return {kind_of_stage(stage), ""};
}

FusionKind widest_stage(const Compute& form) {
  FusionKind widest = FusionKind::elementwise;
  for (const ComputeStage& stage : form.stages)
    widest = std::max(widest, is_in_parts(stage) ? FusionKind::opaque : kind_of_stage(stage));
  return widest;
}

void check_params(const PrimFunc& function, const RuleInput& input) { match_params(function, input); }

Expected<Compute> raise_for(const PrimFunc& function, const RuleInput& input) {
  Values values = match_params(function, input);
  Expected<Compute> form = tir::raise(function);
  if (!form) return form.refusal();
  Buffers buffers;
  for (size_t i = 0; i < input.inputs.size(); ++i) buffers.emplace(form.value().inputs[i].get(), input.inputs[i]);
  for (size_t i = 0; i < input.out_types.size(); ++i)
    buffers.emplace(form.value().outputs[i].get(), input.make_output(i));
  Compute fitted = Copier(std::move(buffers), std::move(values)).copy(form.value());
  check_indices(fitted, input);
  return fitted;
}

Stmt loops_for(const PrimFunc& function, const KernelInput& input) {
  const Values values = match_params(function, input.op);
  std::unordered_map<const BufferNode*, Line> lines;
  for (size_t i = 0; i < function->params.size(); ++i) {
    const size_t num_inputs = input.inputs.size();
    lines.emplace(function->params[i].get(), i < num_inputs ? input.inputs[i] : input.outputs[i - num_inputs]);
  }
  const auto change = [&](const PrimExpr& e) -> PrimExpr {
    if (const auto* var = e.as<PrimVarNode>()) {
      const auto value = values.find(var);
      return value == values.end() ? e : value->second;
    }
    const auto* at = e.as<BufferLoadNode>();
    const auto line = at == nullptr ? lines.end() : lines.find(at->buffer.get());
    return line == lines.end() ? e : make_load(line->second.buffer, {place_in(line->second, at->indices)});
  };
  return tir::rewrite(function->body, change, [&](const Stmt& stmt) -> Stmt {
    const auto* store = stmt.as<tir::BufferStoreNode>();
    const auto line = store == nullptr ? lines.end() : lines.find(store->buffer.get());
    if (line == lines.end()) return stmt;
    return tir::make_store(line->second.buffer, store->value, {place_in(line->second, store->indices)});
  });
}

}  // namespace headrace::lower
