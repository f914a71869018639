#include "ops/tensor/fixed_point.h"

#include <algorithm>

#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"

namespace headrace::ops {

void FixedPointMultiplyAttrs::fields(FieldList<FixedPointMultiplyAttrs>& f) {
  f.field<&FixedPointMultiplyAttrs::multiplier>("multiplier", {.doc = "the factor, in units of 2^-31"})
      .field<&FixedPointMultiplyAttrs::shift>("shift", {.doc = "to the left; negative: to the right"});
}

void FixedPointMultiplyPerAxisAttrs::fields(FieldList<FixedPointMultiplyPerAxisAttrs>& f) {
  using A = FixedPointMultiplyPerAxisAttrs;
  f.field<&A::is_lshift_required>("is_lshift_required",
                                  {.default_value = false, .has_default = true, .doc = "whether lshift is read"})
      .field<&A::is_rshift_required>("is_rshift_required",
                                     {.default_value = false, .has_default = true, .doc = "whether rshift is read"})
      .field<&A::axes>("axes", {.default_value = Shape(),
                                .has_default = true,
                                .doc = "the axes of data that multiplier and shifts have, too"});
}

namespace {

TensorType int32_argument(const RelationInput& input, size_t i, const char* name) {
  const TensorType type = input.tensor(i);
  if (type && type->dtype != DataType::int_(32))
    input.fail(fmt::format("{} must have dtype int32, got {}", name, show(type)));
  return type;
}

Type relate_multiply(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<FixedPointMultiplyAttrs>();
  if (attrs.shift < -kMostFixedShift || attrs.shift > kMostFixedShift)
    input.fail(fmt::format("shift is {}, expected -{} to {}", attrs.shift, kMostFixedShift, kMostFixedShift));
  return int32_argument(input, 0, "data");
}

Type relate_per_axis(const RelationInput& input) {
  const TensorType data = int32_argument(input, 0, "data");
  if (!data) return {};
  const Shape& axes = input.call.attrs_as<FixedPointMultiplyPerAxisAttrs>().axes;
  std::vector<PrimExpr> dims;
  for (const int64_t axis : axes) dims.push_back(data->shape[normal_axis(input, axis, data->shape.size(), "axes")]);
  const char* names[] = {"data", "multiplier", "lshift", "rshift"};
  for (size_t i = 1; i < 4; ++i) {
    const TensorType type = int32_argument(input, i, names[i]);
    if (!type) return {};
    bool fits = type->shape.size() == dims.size();
    for (size_t k = 0; fits && k < dims.size(); ++k) fits = unify_dims(dims[k], type->shape[k]).has_value();
    if (!fits)
      input.fail(fmt::format("{} must be as large as data {} along axes ({}), got {}", names[i], show(data),
                             fmt::join(axes, ", "), show(type)));
  }
  return data;
}

// Returns floor(x * 2^left * multiplier / 2^(31 + right) + 1/2), where the product wraps at 64 bits and the result at
// 32.
int32_t multiplied(int64_t x, int64_t multiplier, int64_t left, int64_t right) {
  const uint64_t product = (static_cast<uint64_t>(x) << left) * static_cast<uint64_t>(multiplier);
  const uint64_t rounded = product + (uint64_t{1} << (kFixedBits - 1 + right));
  return static_cast<int32_t>(static_cast<int64_t>(rounded) >> (kFixedBits + right));
}

std::vector<NDArray> eval_multiply(const EvalInput& input) {
  const auto& attrs = input.attrs<FixedPointMultiplyAttrs>();
  const NDArray out = input.make_output();
  const Elements<int32_t> x(input.args[0]), y(out);
  for (int64_t i = 0; i < out.num_elements(); ++i)
    y.set(i, multiplied(x[i], attrs.multiplier, std::max(attrs.shift, 0), std::max(-attrs.shift, 0)));
  return {out};
}

std::vector<NDArray> eval_per_axis(const EvalInput& input) {
  const auto& attrs = input.attrs<FixedPointMultiplyPerAxisAttrs>();
  const NDArray out = input.make_output();
  const Elements<int32_t> x(input.args[0]), multiplier(input.args[1]), left(input.args[2]), right(input.args[3]),
      y(out);
  const Shape& shape = out.shape();
  const auto shift_of = [](bool is_read, int64_t count) {
    return is_read ? std::clamp<int64_t>(count, 0, kMostFixedShift) : 0;
  };
  int64_t at = 0;
  for_each_index(shape, [&](const Shape& index) {
    int64_t k = 0;
    for (const int64_t axis : attrs.axes) {
      const size_t own = normal_axis(axis, shape.size());
      k = k * shape[own] + index[own];
    }
    y.set(at, multiplied(x[at], multiplier[k], shift_of(attrs.is_lshift_required, left[k]),
                         shift_of(attrs.is_rshift_required, right[k])));
    ++at;
  });
  return {out};
}

}  // namespace

void register_fixed_point_ops() {
  OpBuilder(
      "fixed_point_multiply",
      "data * 2^shift * multiplier / 2^31 in integers: int32[...] -> the same. The product is of 64 bits (past them "
      "it wraps); halves are rounded up.")
      .arg("data", "Tensor", "int32[...]: x")
      .attrs<FixedPointMultiplyAttrs>()
      .relation(relate_multiply)
      .fusion(FusionKind::elementwise)
      .level(10)
      .eval(eval_multiply);
  OpBuilder(
      "fixed_point_multiply_per_axis",
      "fixed_point_multiply with a multiplier and shifts for each index of some axes: data int32[...], multiplier, "
      "lshift and rshift int32[data's dimensions along axes] -> data's type. Shifts below 0 count as 0, above 31 as "
      "31.")
      .arg("data", "Tensor", "int32[...]: x")
      .arg("multiplier", "Tensor", "int32[data's dimensions along axes]: the factors, in parts of 2^31")
      .arg("lshift", "Tensor",
           "int32[data's dimensions along axes]: by how many bits x is shifted left before the product")
      .arg("rshift", "Tensor", "int32[data's dimensions along axes]: by how many bits the product is shifted right")
      .attrs<FixedPointMultiplyPerAxisAttrs>()
      .relation(relate_per_axis)
      .fusion(FusionKind::broadcast)
      .level(10)
      .eval(eval_per_axis);
}

}  // namespace headrace::ops
