#include "lower/stages/make_stage.h"

namespace headrace::lower {

std::vector<PrimVar> make_axes(const Array<PrimExpr>& shape, const char* prefix) {
  std::vector<PrimVar> axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back(make_prim_var(fmt::format("{}{}", prefix, i)));
  return axes;
}

Index to_index(const std::vector<PrimVar>& axes) { return Index(axes.begin(), axes.end()); }

PrimExpr load(const Buffer& buffer, const Index& index) {
  return make_load(buffer, Array<PrimExpr>(index.begin(), index.end()));
}

PrimExpr load_broadcast(const Buffer& buffer, const Index& index) {
  const size_t rank = buffer->shape.size();
  HEADRACE_CHECK(rank <= index.size(), "'{}' of rank {} is broadcast to rank {}", buffer->name, rank, index.size());
  Index own;
  for (size_t i = 0; i < rank; ++i) {
    const bool repeated = is_int(buffer->shape[i], 1);
    own.push_back(repeated ? make_int(0) : index[index.size() - rank + i]);
  }
  return load(buffer, own);
}

tir::ComputeStage map_stage(Buffer output, const std::function<PrimExpr(const Index&)>& element) {
  tir::ComputeStage stage;
  stage.axes = make_axes(output->shape);
  stage.value = element(to_index(stage.axes));
  HEADRACE_CHECK(stage.value->dtype == output->dtype, "'{}' of {} is computed as {}", output->name, output->dtype,
                 stage.value->dtype);
  stage.output = std::move(output);
  return stage;
}

tir::ComputeStage reduce_stage(Buffer output, tir::Combiner combiner, const std::vector<PrimExpr>& reduce_extents,
                               const std::function<PrimExpr(const Index&, const Index&)>& value) {
  tir::ComputeStage stage;
  stage.axes = make_axes(output->shape);
  for (size_t i = 0; i < reduce_extents.size(); ++i) stage.reduce_axes.push_back(make_prim_var(fmt::format("r{}", i)));
  stage.reduce_extents = reduce_extents;
  stage.combiner = combiner;
  stage.value = value(to_index(stage.axes), to_index(stage.reduce_axes));
  stage.init = tir::identity_of(combiner, stage.value->dtype);
  stage.reduced = make_prim_var("reduced", stage.value->dtype);
  stage.output = std::move(output);
  return stage;
}

tir::ComputeStage part_stage(Buffer output, const std::vector<PrimExpr>& origin, const Array<PrimExpr>& extents,
                             const std::function<PrimExpr(const Index&)>& element) {
  tir::ComputeStage stage = map_stage(make_buffer(output->name, output->dtype, extents), element);
  stage.output = std::move(output);
  for (size_t i = 0; i < origin.size(); ++i) stage.place.push_back(stage.axes[i] + origin[i]);
  stage.extents = extents.to_vector();
  return stage;
}

tir::ComputeStage check_stage(const Array<PrimExpr>& extents, std::string message,
                              const std::function<PrimExpr(const Index&)>& condition) {
  tir::ComputeStage stage;
  stage.axes = make_axes(extents);
  stage.extents = extents.to_vector();
  stage.value = condition(to_index(stage.axes));
  HEADRACE_CHECK(stage.value->dtype.is_bool() && !message.empty(), "a check of {}", stage.value->dtype);
  stage.message = std::move(message);
  return stage;
}

Buffer make_stage_buffer(const char* name, DataType dtype, const std::vector<PrimExpr>& shape) {
  return make_buffer(name, dtype, Array<PrimExpr>(shape));
}

bool is_wasteful(double elements, double around) { return elements > 0x1p24 && elements > 8 * around; }

double count_elements(const std::vector<PrimExpr>& dims) {
  double count = 1;
  for (const PrimExpr& dim : dims) count *= static_cast<double>(as_int(dim).value_or(1));
  return count;
}

PrimExpr is_within(const PrimExpr& value, const PrimExpr& low, const PrimExpr& high) {
  return make_binary(BinaryOp::logical_and, make_binary(BinaryOp::ge, value, low),
                     make_binary(BinaryOp::lt, value, high));
}

PrimExpr all_of(const std::vector<PrimExpr>& conditions) {
  PrimExpr all = make_bool(true);
  for (const PrimExpr& condition : conditions) all = make_binary(BinaryOp::logical_and, all, condition);
  return all;
}

PrimExpr guarded(const PrimExpr& condition, const PrimExpr& value, const PrimExpr& otherwise) {
  if (const auto known = as_int(condition)) return *known != 0 ? value : otherwise;
  return make_intrinsic(Intrinsic::if_then_else, value->dtype, {condition, value, otherwise});
}

}  // namespace headrace::lower
