#include "lower/kernel_rule.h"

#include "lower/compute_rule.h"
#include "lower/rule_input.h"
#include "ops/call_fusion.h"
#include "relay/leaves.h"
#include "tir/workspace.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else
using relay::CallNode;
using relay::ConstantNode;

// ---- lines

int64_t Line::size() const { return num_elements(shape); }

PrimExpr Line::offset(const Index& index) const {
  HEADRACE_CHECK(index.size() == shape.size(), "{} indices of a tensor of {} dimensions", index.size(), shape.size());
  PrimExpr at = make_int(0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) at = at * shape[i] + index[i];
  }
  return at;
}

PrimExpr Line::item(const PrimExpr& position) const { return make_load(buffer, {position}); }
PrimExpr Line::at(const Index& index) const { return item(offset(index)); }

Stmt Line::set_item(const PrimExpr& position, const PrimExpr& value) const {
  return make_store(buffer, make_cast(buffer->dtype, value), {position});
}
Stmt Line::set(const Index& index, const PrimExpr& value) const { return set_item(offset(index), value); }

PrimExpr Cell::get() const { return make_load(buffer, {make_int(0)}); }
Stmt Cell::set(const PrimExpr& value) const {
  return make_store(buffer, make_cast(buffer->dtype, value), {make_int(0)});
}

// ---- loops

Stmt each(const PrimExpr& extent, const ByValue& body, ForKind kind) {
  const PrimVar var = make_prim_var("i");
  return make_for(var, make_int(0), extent, kind, body(var));
}

Stmt each(int64_t extent, const ByValue& body, ForKind kind) {
  if (extent == 0) return make_seq({});
  if (extent == 1) return body(make_int(0));
  return each(make_int(extent), body, kind);
}

Stmt each_parallel(const KernelInput& input, int64_t extent, int64_t work, const ByValue& body) {
  Stmt loop = each(extent, body, ForKind::parallel);
  if (extent > 1) input.work.emplace(loop.as<ForNode>()->var.get(), work);
  return loop;
}

Stmt each_index(const Shape& shape, const std::function<Stmt(const Index&)>& body) {
  Index index;
  std::vector<PrimVar> vars;
  for (const int64_t extent : shape) {
    if (extent == 0) return make_seq({});
    vars.push_back(make_prim_var("i"));
    index.push_back(extent == 1 ? make_int(0) : PrimExpr(vars.back()));
  }
  Stmt result = body(index);
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1) result = make_for(vars[i], make_int(0), make_int(shape[i]), ForKind::serial, result);
  }
  return result;
}

Stmt bind(const PrimExpr& value, const ByValue& body) {
  const PrimVar var = make_prim_var("v", value->dtype);
  return make_let(var, value, body(var));
}

Stmt with_cell(DataType dtype, const std::function<Stmt(const Cell&)>& body) {
  const Cell cell{make_buffer("cell", dtype, {make_int(1)})};
  return make_allocate(cell.buffer, Scope::registers, body(cell));
}

Stmt with_scratch(const char* name, DataType dtype, const Shape& shape, const std::function<Stmt(const Line&)>& body) {
  const int64_t size = std::max<int64_t>(num_elements(shape), 1);
  const Line line{make_buffer(name, dtype, {make_int(size)}), shape};
  return make_allocate(line.buffer, Scope::workspace, body(line));
}

Stmt with_index(const KernelInput& input, const PrimExpr& index, int64_t n, const ByValue& body) {
  const PrimExpr zero = make_int(0), end = make_int(n);
  return bind(as_index(index), [&](const PrimExpr& given) {
    return bind(make_select(make_binary(BinaryOp::lt, given, zero), given + end, given), [&](const PrimExpr& at) {
      const PrimExpr is_inside =
          make_binary(BinaryOp::logical_and, make_binary(BinaryOp::ge, at, zero), make_binary(BinaryOp::lt, at, end));
      return make_seq({make_assert(is_inside, fmt::format("{}: an index is out of range for an axis of {}",
                                                          input.op.call.as_op()->name, n)),
                       body(at)});
    });
  });
}

AxisSplit::AxisSplit(const Shape& shape, size_t axis) {
  for (size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : i == axis ? size : inner) *= shape[i];
}

PrimExpr AxisSplit::line_begin(const PrimExpr& line) const {
  if (inner == 1) return line * size;
  return floor_div(line, make_int(inner)) * (size * inner) + floor_mod(line, make_int(inner));
}

// ---- kernels

namespace {

class KernelBuilder {
 public:
  KernelBuilder(const relay::Function& group, const CallNode& call) : call_(call), op_(rule_input_of(call)) {
    for (const relay::Var& param : group->params) {
      const auto line =
          lines_
              .emplace(param.get(), make_line(param->name_hint, param->checked_type().cast<TensorTypeNode>(), nullptr))
              .first;
      params_.push_back(line->second.buffer);
    }
  }

  PrimFunc build(const std::string& symbol, const KernelRuleFn& rule, const cost::Machine& machine) {
    LoopWork work;
    KernelInput input{op_, work, {}, {}};
    for (const Expr& item : relay::items_of_args(call_)) add_input(input, item);
    for (const Line& line : input.inputs) op_.inputs.push_back(line.buffer);
    for (const TensorType& type : op_.out_types) {
      input.outputs.push_back(make_line("out", type, &call_));
      params_.push_back(input.outputs.back().buffer);
    }
    Stmt body = fit_machine(rule(input), work, machine);
    for (const auto& [buffer, value] : constants_) {
      body = make_allocate(buffer, Scope::registers, make_seq({make_store(buffer, value, {make_int(0)}), body}));
    }
    const PrimFunc function =
        make_prim_func(symbol, params_, static_cast<int64_t>(input.outputs.size()), std::move(body));
    return with_workspace(copy_with(*function, [](PrimFuncNode& copy) { copy.attrs.set("tir.noalias", Value(true)); }));
  }

 private:
  Line make_line(const std::string& name, const TensorType& type, const CallNode* call) const {
    const auto shape = as_shape(type->shape);
    if (!shape) {
      const std::string message =
          fmt::format("native code needs known sizes, and a tensor is {}; fix the input shapes of the model",
                      to_string(Type(type)));
      throw_at(call == nullptr ? call_.span : call->span, call_.as_op()->name, message);
    }
    return {make_buffer(name, type->dtype, {make_int(num_elements(*shape))}), *shape};
  }

  void add_input(KernelInput& input, const Expr& arg) {
    if (const auto* constant = arg.as<ConstantNode>()) {
      const NDArray data = constant->data.to_dense();
      HEADRACE_CHECK(data.num_elements() == 1, "a group holds a constant of {} elements", data.num_elements());
      const Line line{make_buffer("constant", data.dtype(), {make_int(1)}), data.shape()};
      constants_.emplace_back(line.buffer, element_of(data));
      input.inputs.push_back(line);
    } else {
      const auto line = lines_.find(arg.get());
      if (line == lines_.end()) ops::refuse_computed_operand(call_);
      input.inputs.push_back(line->second);
    }
  }

  const CallNode& call_;
  RuleInput op_;
  Array<Buffer> params_;
  std::unordered_map<const ExprNode*, Line> lines_;
  std::vector<std::pair<Buffer, PrimExpr>> constants_;
};

}  // namespace

std::optional<PrimFunc> lower_kernel(const relay::Function& group, const std::string& symbol,
                                     const cost::Machine& machine) {
  const auto* call = group->body.as<CallNode>();
  const OpNode* op = call == nullptr ? nullptr : call->as_op();
  const KernelRuleFn* rule = op == nullptr ? nullptr : op->find(kKernelRule);
  if (rule == nullptr) return std::nullopt;
  // An op with both rules uses the compute rule where the call can fuse.
  if (op->find(kComputeRule) != nullptr && ops::fusion_kind_of(*call) != ops::FusionKind::opaque) return std::nullopt;
  return KernelBuilder(group, *call).build(symbol, *rule, machine);
}

}  // namespace headrace::lower
