#include "ops/tensor/mask.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/index_value.h"
#include "ops/loops/move.h"
#include "ops/tensor/slice.h"

namespace headrace::ops {

void OneHotAttrs::fields(FieldList<OneHotAttrs>& f) {
  f.field<&OneHotAttrs::depth>("depth", {.doc = "the size of the new axis"})
      .field<&OneHotAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the new axis"})
      .field<&OneHotAttrs::dtype>("dtype",
                                  {.default_value = "float32", .has_default = true, .doc = "the result's dtype"});
}

void TriluAttrs::fields(FieldList<TriluAttrs>& f) {
  f.field<&TriluAttrs::upper>("upper", {.default_value = true, .has_default = true, .doc = "keep what is above"});
}

void SequenceMaskAttrs::fields(FieldList<SequenceMaskAttrs>& f) {
  f.field<&SequenceMaskAttrs::mask_value>(
       "mask_value", {.default_value = 0.0, .has_default = true, .doc = "the value of masked elements"})
      .field<&SequenceMaskAttrs::axis>("axis",
                                       {.default_value = 0, .has_default = true, .doc = "the axis of steps: 0 or 1"});
}

void MatrixSetDiagAttrs::fields(FieldList<MatrixSetDiagAttrs>& f) {
  using A = MatrixSetDiagAttrs;
  f.field<&A::k1>("k1", {.default_value = 0, .has_default = true, .doc = "the lowest diagonal; 0 is the main one"})
      .field<&A::k2>("k2", {.default_value = 0, .has_default = true, .doc = "the highest diagonal"})
      .field<&A::super_diag_right_align>(
          "super_diag_right_align",
          {.default_value = true, .has_default = true, .doc = "diagonals above the main one end at their row's end"})
      .field<&A::sub_diag_right_align>(
          "sub_diag_right_align",
          {.default_value = false, .has_default = true, .doc = "diagonals below the main one end at their row's end"});
}

int64_t longest_diagonal(const MatrixSetDiagAttrs& attrs, int64_t m, int64_t n) {
  return std::min(m + std::min<int64_t>(attrs.k2, 0), n - std::max<int64_t>(attrs.k1, 0));
}

int64_t diagonal_offset(const MatrixSetDiagAttrs& attrs, int64_t m, int64_t n, int64_t d) {
  const bool right = d >= 0 ? attrs.super_diag_right_align : attrs.sub_diag_right_align;
  const int64_t length = std::min(m + std::min<int64_t>(d, 0), n - std::max<int64_t>(d, 0));
  return right ? longest_diagonal(attrs, m, n) - length : 0;
}

namespace {

using relay::make_call;

void check_integers(const RelationInput& input, const TensorType& type, std::string_view what) {
  if (!is_integer(type)) input.fail(fmt::format("{} must be integers, got {}", what, show(type)));
}

// ---- one_hot

Type relate_one_hot(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<OneHotAttrs>();
  const TensorType indices = input.tensor(0);
  for (size_t i = 1; i < 3; ++i) {
    const TensorType value = input.tensor(i);
    if (value && (!value->shape.empty() || value->dtype != attrs.dtype))
      input.fail(fmt::format("{} must be a scalar of {}, got {}", i == 1 ? "on_value" : "off_value", attrs.dtype,
                             show(value)));
  }
  if (attrs.depth < 0) input.fail(fmt::format("depth is {}, expected at least 0", attrs.depth));
  if (!indices) return {};
  check_integers(input, indices, "indices");
  const size_t axis = normal_axis(input, attrs.axis, indices->shape.size() + 1);
  std::vector<PrimExpr> dims = indices->shape.to_vector();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), make_int(attrs.depth));
  return make_tensor_type(Array<PrimExpr>(dims), attrs.dtype);
}

std::vector<NDArray> eval_one_hot(const EvalInput& input) {
  const NDArray out = input.make_output();
  const size_t axis = normal_axis(input.attrs<OneHotAttrs>().axis, out.shape().size());
  const Shape strides = dense_strides(input.args[0].shape());
  int64_t next = 0;
  for_each_index(out.shape(), [&](const Shape& index) {
    Shape pick = index;
    pick.erase(pick.begin() + static_cast<std::ptrdiff_t>(axis));
    const bool is_on = index_at(input.args[0], dot(pick, strides)) == index[axis];
    copy_element(input.args[is_on ? 1 : 2], 0, out, next++);
  });
  return {out};
}

// ---- trilu

Type relate_trilu(const RelationInput& input) {
  const TensorType data = input.tensor(0), k = input.tensor(1);
  if (k && (!is_integer(k) || !k->shape.empty()))
    input.fail(fmt::format("k must be an integer scalar, got {}", show(k)));
  if (data && data->shape.size() < 2)
    input.fail(fmt::format("data must have 2 dimensions or more, got {}", show(data)));
  return data;
}

std::vector<NDArray> eval_trilu(const EvalInput& input) {
  const NDArray out = NDArray::zeros(input.args[0].shape(), input.args[0].dtype());
  const int64_t k = index_at(input.args[1], 0);
  const bool upper = input.attrs<TriluAttrs>().upper;
  int64_t next = 0;
  for_each_index(out.shape(), [&](const Shape& index) {
    const int64_t diagonal = index.back() - index[index.size() - 2];
    if (upper ? diagonal >= k : diagonal <= k) copy_element(input.args[0], next, out, next);
    ++next;
  });
  return {out};
}

// ---- sequence_mask

Type relate_sequence_mask(const RelationInput& input) {
  const TensorType data = input.tensor(0), lengths = input.tensor(1);
  const int64_t axis = input.call.attrs_as<SequenceMaskAttrs>().axis;
  if (axis != 0 && axis != 1) input.fail(fmt::format("axis is {}, expected 0 or 1", axis));
  if (!data || !lengths) return {};
  if (data->shape.size() < 2) input.fail(fmt::format("data must have 2 dimensions or more, got {}", show(data)));
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  const PrimExpr batch = data->shape[static_cast<size_t>(1 - axis)];
  if (lengths->dtype.is_bool() || lengths->shape.size() != 1 || arith::is_unequal(lengths->shape[0], batch))
    input.fail(fmt::format("valid_length must be {} numbers, one a sequence, got {}", to_string(batch), show(lengths)));
  return data;
}

std::vector<NDArray> eval_sequence_mask(const EvalInput& input) {
  const auto& attrs = input.attrs<SequenceMaskAttrs>();
  const NDArray out = input.args[0].copy();
  const auto axis = static_cast<size_t>(attrs.axis);
  int64_t next = 0;
  for_each_index(out.shape(), [&](const Shape& index) {
    const double length = element_as_double(input.args[1].tensor(), index[1 - axis]);
    if (!(static_cast<double>(index[axis]) < length)) set_element(out.tensor(), next, attrs.mask_value);
    ++next;
  });
  return {out};
}

// ---- matrix_set_diag

Type relate_matrix_set_diag(const RelationInput& input) {
  const TensorType data = input.tensor(0), diagonal = input.tensor(1);
  const auto& attrs = input.call.attrs_as<MatrixSetDiagAttrs>();
  if (attrs.k1 > attrs.k2) input.fail(fmt::format("k1 ({}) is above k2 ({})", attrs.k1, attrs.k2));
  if (!data || !diagonal) return {};
  check_same_dtype(input, data, diagonal, "diagonal");
  const size_t rank = data->shape.size();
  if (rank < 2) input.fail(fmt::format("data must have 2 dimensions or more, got {}", show(data)));
  const auto m = as_int(data->shape[rank - 2]), n = as_int(data->shape[rank - 1]);
  if (!m || !n) input.fail(fmt::format("the matrices' sizes must be known: data is {}", show(data)));
  if (attrs.k1 <= -*m || attrs.k2 >= *n)
    input.fail(fmt::format("{} has no diagonals {} to {}", show(data), attrs.k1, attrs.k2));
  Array<PrimExpr> wanted(data->shape.begin(), data->shape.end() - 2);
  if (attrs.k1 != attrs.k2) wanted.push_back(make_int(attrs.k2 - attrs.k1 + 1));
  wanted.push_back(make_int(longest_diagonal(attrs, *m, *n)));
  bool agrees = wanted.size() == diagonal->shape.size();
  for (size_t i = 0; agrees && i < wanted.size(); ++i) agrees = !arith::is_unequal(wanted[i], diagonal->shape[i]);
  if (!agrees) input.fail(fmt::format("diagonal must have the shape {}, got {}", show_dims(wanted), show(diagonal)));
  return data;
}

std::vector<NDArray> eval_matrix_set_diag(const EvalInput& input) {
  const auto& attrs = input.attrs<MatrixSetDiagAttrs>();
  const NDArray out = input.args[0].copy();
  const Shape& shape = out.shape();
  const int64_t m = shape[shape.size() - 2], n = shape.back(), longest = longest_diagonal(attrs, m, n);
  int64_t next = 0;
  for_each_index(shape, [&](const Shape& index) {
    const int64_t row = index[shape.size() - 2], column = index.back(), d = column - row;
    if (d >= attrs.k1 && d <= attrs.k2) {
      const int64_t matrix = next / (m * n), band = attrs.k2 - d, at = std::min(row, column);
      const int64_t line = matrix * (attrs.k2 - attrs.k1 + 1) + band;
      copy_element(input.args[1], line * longest + at + diagonal_offset(attrs, m, n, d), out, next);
    }
    ++next;
  });
  return {out};
}

// ---- strided_set

Type relate_strided_set(const RelationInput& input) {
  const TensorType data = input.tensor(0), v = input.tensor(1);
  if (!data || !v) return {};
  check_same_dtype(input, data, v, "v");
  if (v->shape.size() != data->shape.size())
    input.fail(fmt::format("v must have as many dimensions as data: {} and {}", show(v), show(data)));
  static constexpr std::string_view kNames[] = {"begin", "end", "strides"};
  for (size_t i = 0; i < 3; ++i) {
    const TensorType part = input.tensor(2 + i);
    if (!part) return {};
    const auto rank = static_cast<int64_t>(data->shape.size());
    if (!is_integer(part) || part->shape.size() != 1 || arith::is_unequal(part->shape[0], make_int(rank)))
      input.fail(fmt::format("{} must be {} integers, one an axis of data, got {}", kNames[i], rank, show(part)));
  }
  return data;
}

std::vector<NDArray> eval_strided_set(const EvalInput& input) {
  const NDArray out = input.args[0].copy();
  const NDArray& v = input.args[1];
  const std::vector<int64_t> begin = to_ints(input.args[2]), end = to_ints(input.args[3]),
                             steps = to_ints(input.args[4]);
  Shape strides = dense_strides(out.shape());
  int64_t start = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (steps[i] == 0) throw_at(input.call.span, "strided_set", fmt::format("the stride of axis {} is 0", i));
    const SliceRange range = slice_range(out.shape()[i], begin[i], end[i], steps[i]);
    if (range.count != v.shape()[i])
      throw_at(input.call.span, "strided_set",
               fmt::format("axis {} of the slice has {} elements, and v has {}", i, range.count, v.shape()[i]));
    start += range.begin * strides[i];
    strides[i] *= range.count > 1 ? range.step : 0;
  }
  int64_t next = 0;
  for_each_index(v.shape(), [&](const Shape& index) { copy_element(v, next++, out, start + dot(index, strides)); });
  return {out};
}

void register_masks() {
  OpBuilder("one_hot",
            "on_value where the new axis' index is the one in indices, else off_value: indices int[...] -> dtype[.., "
            "depth, ..]. An index outside [0, depth) gives off_value everywhere.")
      .arg("indices", "Tensor", "int[...]: where on_value stands along the new axis")
      .arg("on_value", "Tensor", "dtype[]: the value there")
      .arg("off_value", "Tensor", "dtype[]: the value elsewhere")
      .attrs<OneHotAttrs>()
      .relation(relate_one_hot)
      .fusion(FusionKind::injective)
      .level(10)
      .eval(eval_one_hot);
  OpBuilder("trilu",
            "The upper or lower triangle of each matrix, 0 elsewhere: data T[..., m, n], k int[] the diagonal it ends "
            "at -> data's type.")
      .arg("data", "Tensor", "T[..., m, n]: the matrices")
      .arg("k", "Tensor", "int[]: the diagonal where the triangle ends: 0 is the main one, 1 that above it")
      .attrs<TriluAttrs>()
      .relation(relate_trilu)
      .fusion(FusionKind::injective)
      .level(3)
      .eval(eval_trilu);
  OpBuilder("sequence_mask",
            "data where the step along `axis` is below its sequence's valid_length, else mask_value: data T[steps, "
            "batch, ...] (or T[batch, steps, ...] for axis 1), valid_length [batch] -> data's type.")
      .arg("data", "Tensor", "T[steps, batch, ...], or T[batch, steps, ...] for axis 1: the sequences")
      .arg("valid_length", "Tensor", "[batch], numbers: how many steps of each count")
      .attrs<SequenceMaskAttrs>()
      .relation(relate_sequence_mask)
      .fusion(FusionKind::injective)
      .level(10)
      .eval(eval_sequence_mask);
}

void register_setters() {
  OpBuilder(
      "matrix_set_diag",
      "Each matrix with its diagonals k1 .. k2 replaced: data T[..., m, n], diagonal T[..., longest] or T[..., k2 "
      "- k1 + 1, longest], the highest first -> data's type. TensorFlow's MatrixSetDiagV3.")
      .arg("data", "Tensor", "T[..., m, n]: the matrices")
      .arg("diagonal", "Tensor", "T[..., longest], or T[..., k2 - k1 + 1, longest]: the new diagonals")
      .attrs<MatrixSetDiagAttrs>()
      .relation(relate_matrix_set_diag)
      .fusion(FusionKind::injective)
      .level(10)
      .eval(eval_matrix_set_diag);
  OpBuilder("strided_set",
            "data with the slice begin:end:strides, one an axis, as Python's, replaced by v: data T[...], v T[the "
            "slice's shape], begin, end, strides int[rank] -> data's type.")
      .arg("data", "Tensor", "T[...]: the tensor to write into")
      .arg("v", "Tensor", "T[the slice's shape]: the values to write")
      .arg("begin", "Tensor", "int[rank]: where the slice begins on each axis")
      .arg("end", "Tensor", "int[rank]: where it ends")
      .arg("strides", "Tensor", "int[rank]: its steps")
      .relation(relate_strided_set)
      .fusion(FusionKind::injective)
      .level(4)
      .eval(eval_strided_set);
}

}  // namespace

void register_mask_ops() {
  register_masks();
  register_setters();
}

Expr one_hot(Expr indices, Expr on_value, Expr off_value, int64_t depth, int64_t axis, DataType dtype, Span span) {
  return call_with<OneHotAttrs>("one_hot", {std::move(indices), std::move(on_value), std::move(off_value)},
                                std::move(span), [&](auto& a) { a.depth = depth, a.axis = axis, a.dtype = dtype; });
}

Expr trilu(Expr data, Expr k, bool upper, Span span) {
  return call_with<TriluAttrs>("trilu", {std::move(data), std::move(k)}, std::move(span),
                               [&](auto& a) { a.upper = upper; });
}

Expr sequence_mask(Expr data, Expr valid_length, double mask_value, int64_t axis, Span span) {
  return call_with<SequenceMaskAttrs>("sequence_mask", {std::move(data), std::move(valid_length)}, std::move(span),
                                      [&](auto& a) { a.mask_value = mask_value, a.axis = axis; });
}

}  // namespace headrace::ops
