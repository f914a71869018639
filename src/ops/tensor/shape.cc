#include "ops/tensor/shape.h"

#include <algorithm>

#include "arith/bounds.h"
#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/move.h"
#include "ops/loops/permute.h"
#include "relay/match.h"

namespace headrace::ops {

void ReshapeAttrs::fields(FieldList<ReshapeAttrs>& f) {
  f.field<&ReshapeAttrs::newshape>("newshape",
                                   {.default_value = Shape(),
                                    .has_default = true,
                                    .doc = "sizes; 0 copies the input's, -1 is inferred, -2 copies the rest, "
                                           "-3 merges two, -4 splits one by the next two"})
      .field<&ReshapeAttrs::allowzero>("allowzero",
                                       {.default_value = false, .has_default = true, .doc = "0 is a size of zero"});
}

void ReshapeLikeAttrs::fields(FieldList<ReshapeLikeAttrs>& f) {
  const auto end = [](const char* doc) {
    return FieldOptions{.optional = true, .default_value = Value(), .has_default = true, .doc = doc};
  };
  f.field<&ReshapeLikeAttrs::lhs_begin>(
       "lhs_begin",
       {.default_value = 0, .has_default = true, .doc = "the first axis of data that is replaced, in -rank .. rank"})
      .field<&ReshapeLikeAttrs::lhs_end>("lhs_end", end("the axis of data after the last; left out: its rank"))
      .field<&ReshapeLikeAttrs::rhs_begin>("rhs_begin",
                                           {.default_value = 0,
                                            .has_default = true,
                                            .doc = "the first axis of shape_like that stands there, in -rank .. rank"})
      .field<&ReshapeLikeAttrs::rhs_end>("rhs_end", end("the axis of shape_like after the last; left out: its rank"));
}

void TransposeAttrs::fields(FieldList<TransposeAttrs>& f) {
  f.field<&TransposeAttrs::axes>(
      "axes",
      {.default_value = Shape(), .has_default = true, .doc = "the input axis of each output axis; empty: reversed"});
}

void SqueezeAttrs::fields(FieldList<SqueezeAttrs>& f) {
  f.field<&SqueezeAttrs::axis>("axis", {.optional = true,
                                        .default_value = Value(),
                                        .has_default = true,
                                        .doc = "axes of size 1 to drop; None: all of them"});
}

void ExpandDimsAttrs::fields(FieldList<ExpandDimsAttrs>& f) {
  f.field<&ExpandDimsAttrs::axis>("axis", {.doc = "where the new axes go, in -rank-1 .. rank"})
      .field<&ExpandDimsAttrs::num_newaxis>("num_newaxis",
                                            {.default_value = 1, .has_default = true, .doc = "how many"});
}

namespace {

using relay::make_call;

struct ReshapeState {
  const RelationInput& input;
  const Array<PrimExpr> source;
  size_t at = 0;  // the next dimension of the source
  std::optional<size_t> inferred;
  Dims result;

  PrimExpr next(std::string_view what) {
    if (at >= source.size())
      input.fail(fmt::format("newshape: {} has no input dimension left to copy from {}", what, show_dims(source)));
    return source[at++];
  }
};

// Handles -4, a, b: the next input dimension as a times b, one of which may be -1.
void split_dimension(ReshapeState& state, const Dims& newshape, size_t i) {
  if (i + 2 >= newshape.size()) state.input.fail("newshape: -4 needs two sizes after it");
  const PrimExpr whole = state.next("-4");
  PrimExpr a = newshape[i + 1], b = newshape[i + 2];
  if (is_int(a, -1) && is_int(b, -1)) state.input.fail("newshape: only one of the two sizes after -4 may be -1");
  for (PrimExpr* side : {&a, &b}) {
    if (!is_int(*side, -1)) continue;
    const PrimExpr& other = side == &a ? b : a;
    const auto quotient = arith::divide_exactly(whole, other);
    if (!quotient && as_int(whole) && as_int(other))
      state.input.fail(fmt::format("newshape: {} cannot be split by {}", to_string(whole), to_string(other)));
    *side = quotient ? *quotient : make_any();
  }
  if (arith::is_unequal(a * b, whole))
    state.input.fail(
        fmt::format("newshape: {} cannot be split into {} and {}", to_string(whole), to_string(a), to_string(b)));
  state.result.insert(state.result.end(), {a, b});
}

// Handles one entry of newshape; returns how many entries it used.
size_t reshape_entry(ReshapeState& state, const Dims& newshape, size_t i, bool allowzero) {
  const auto value = as_int(newshape[i]);
  if (value == 0 && !allowzero) {
    state.result.push_back(state.next("0"));
  } else if (value == -1) {
    if (state.inferred) state.input.fail("newshape: only one size may be -1");
    state.inferred = state.result.size();
    state.result.push_back(make_int(1));
    ++state.at;
  } else if (value == -2) {
    while (state.at < state.source.size()) state.result.push_back(state.source[state.at++]);
  } else if (value == -3) {
    const PrimExpr first = state.next("-3");
    state.result.push_back(arith::simplify_dim(first * state.next("-3")));
  } else if (value == -4) {
    split_dimension(state, newshape, i);
    return 3;
  } else if (value && *value < 0) {
    state.input.fail(fmt::format("newshape: {} is not a size; the special values are 0, -1, -2, -3 and -4", *value));
  } else {
    state.result.push_back(newshape[i]);
    ++state.at;
  }
  return 1;
}

// Applies `newshape` to the dimensions `source`, entry by entry.
Dims reshaped_dims(const RelationInput& input, const Array<PrimExpr>& source, const Dims& newshape, bool allowzero) {
  ReshapeState state{input, source, 0, std::nullopt, {}};
  for (size_t i = 0; i < newshape.size();) i += reshape_entry(state, newshape, i, allowzero);
  const PrimExpr total = arith::product(source), rest = arith::product(Array<PrimExpr>(state.result));
  const auto fail_count = [&] {
    input.fail(fmt::format("{} has {} elements and cannot be reshaped to {}", show(input.tensor(0)), to_string(total),
                           show_dims(Array<PrimExpr>(newshape))));
  };
  if (state.inferred) {
    const auto quotient = is_int(rest, 0) ? std::nullopt : arith::divide_exactly(total, rest);
    if (!quotient && as_int(total) && as_int(rest)) fail_count();
    state.result[*state.inferred] = quotient                        ? *quotient
                                    : is_any(rest) || is_any(total) ? make_any()
                                                                    : floor_div(total, rest);
  } else if (arith::is_unequal(total, rest)) {
    fail_count();
  }
  return state.result;
}

Type relate_reshape(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ReshapeAttrs>();
  const TensorType data = input.tensor(0);
  const auto newshape = requested_shape(input, attrs.newshape, "newshape");
  if (!data || !newshape) return {};
  return make_tensor_type(Array<PrimExpr>(reshaped_dims(input, data->shape, *newshape, attrs.allowzero)), data->dtype);
}

// Reverses the entries; the two sizes of a -4 stay behind it.
Dims reversed_entries(const Shape& newshape) {
  Dims result;
  for (size_t i = 0; i < newshape.size(); ++i) {
    const bool splits = newshape[i] == -4 && i + 2 < newshape.size();
    const Dims entry =
        splits ? Dims{make_int(-4), make_int(newshape[i + 2]), make_int(newshape[i + 1])} : Dims{make_int(newshape[i])};
    result.insert(result.begin(), entry.begin(), entry.end());
    if (splits) i += 2;
  }
  return result;
}

Type relate_reverse_reshape(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ReshapeAttrs>();
  const TensorType data = input.tensor(0);
  if (!data) return {};
  Dims source = data->shape.to_vector();
  std::reverse(source.begin(), source.end());
  Dims dims = reshaped_dims(input, Array<PrimExpr>(source), reversed_entries(attrs.newshape), attrs.allowzero);
  std::reverse(dims.begin(), dims.end());
  return make_tensor_type(Array<PrimExpr>(dims), data->dtype);
}

// Returns the dimensions [begin, end) of a tensor as positions; a negative bound counts from the end.
std::pair<size_t, size_t> dims_between(const RelationInput& input, std::string_view side, int64_t begin,
                                       std::optional<int64_t> end, const TensorType& tensor) {
  const auto rank = static_cast<int64_t>(tensor->shape.size());
  const auto bound = [&](std::string_view what, int64_t axis) {
    if (axis < -rank || axis > rank)
      input.fail(fmt::format("{}_{} is {}, expected {} to {} for {}", side, what, axis, -rank, rank, show(tensor)));
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
  };
  const size_t first = bound("begin", begin), last = bound("end", end.value_or(rank));
  if (first > last)
    input.fail(fmt::format("{}_begin is axis {} of {}, after {}_end, axis {}", side, first, show(tensor), side, last));
  return {first, last};
}

Type relate_reshape_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  if (!data || !like) return {};
  static const auto kWhole = make_object<ReshapeLikeAttrs>();
  const auto& attrs = input.call.attrs ? input.call.attrs_as<ReshapeLikeAttrs>() : *kWhole;
  const auto [begin, end] = dims_between(input, "lhs", attrs.lhs_begin, attrs.lhs_end, data);
  const auto [from, to] = dims_between(input, "rhs", attrs.rhs_begin, attrs.rhs_end, like);
  Array<PrimExpr> dims, replaced, replacing;
  for (size_t i = 0; i < begin; ++i) dims.push_back(data->shape[i]);
  for (size_t i = begin; i < end; ++i) replaced.push_back(data->shape[i]);
  for (size_t i = from; i < to; ++i) {
    dims.push_back(like->shape[i]);
    replacing.push_back(like->shape[i]);
  }
  for (size_t i = end; i < data->shape.size(); ++i) dims.push_back(data->shape[i]);
  if (arith::is_unequal(arith::product(replaced), arith::product(replacing)))
    input.fail(fmt::format("{} cannot be reshaped like {}: the numbers of elements differ", show(data), show(like)));
  return make_tensor_type(dims, data->dtype);
}

Type relate_batch_flatten(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.empty()) input.fail("a scalar has no batch axis");
  const Array<PrimExpr> rest(data->shape.begin() + 1, data->shape.end());
  return make_tensor_type({data->shape[0], arith::product(rest)}, data->dtype);
}

// Copies the data unchanged into the result's shape.
std::vector<NDArray> eval_same_elements(const EvalInput& input) {
  NDArray result = input.make_output();
  std::memcpy(result.data<char>(), input.args[0].data<char>(), result.size_bytes());
  return {result};
}

std::vector<size_t> transpose_axes(const RelationInput& input, size_t rank) {
  const Shape& axes = input.call.attrs_as<TransposeAttrs>().axes;
  std::vector<size_t> result;
  if (axes.empty()) {
    for (size_t i = rank; i-- > 0;) result.push_back(i);
    return result;
  }
  if (axes.size() != rank)
    input.fail(fmt::format("axes has {} entries for a tensor of {} dimensions", axes.size(), rank));
  for (const int64_t axis : axes) {
    result.push_back(normal_axis(input, axis, rank, "axes: axis"));
    if (std::count(result.begin(), result.end(), result.back()) > 1)
      input.fail(fmt::format("axes names axis {} twice", axis));
  }
  return result;
}

Type relate_transpose(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  Array<PrimExpr> dims;
  for (const size_t axis : transpose_axes(input, data->shape.size())) dims.push_back(data->shape[axis]);
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_transpose(const EvalInput& input) {
  const Shape& axes = input.attrs<TransposeAttrs>().axes;
  const size_t rank = input.args[0].shape().size();
  const Shape source = dense_strides(input.args[0].shape());
  Shape strides;
  for (size_t i = 0; i < rank; ++i) strides.push_back(source[axes.empty() ? rank - 1 - i : normal_axis(axes[i], rank)]);
  NDArray result = input.make_output();
  permute(input, input.args[0], strides, result);
  return {result};
}

Type relate_squeeze(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<SqueezeAttrs>();
  for (const int64_t axis : attrs.axis.value_or(Shape())) {
    const size_t at = normal_axis(input, axis, data->shape.size());
    const auto size = as_int(data->shape[at]);
    if (size && *size != 1) input.fail(fmt::format("axis {} of {} has size {}, expected 1", axis, show(data), *size));
  }
  const std::vector<bool> dropped = squeezed_axes(attrs, data->shape);
  Array<PrimExpr> dims;
  for (size_t i = 0; i < data->shape.size(); ++i) {
    const auto [least, greatest] = arith::bounds_of(data->shape[i]);
    if (!attrs.axis && least < greatest && least <= 1 && greatest >= 1)
      input.fail(fmt::format("name the axes: whether axis {} of {} is 1 is not known", i, show(data)));
    if (!dropped[i]) dims.push_back(data->shape[i]);
  }
  return make_tensor_type(dims, data->dtype);
}

std::vector<size_t> axes_of_squeeze(const relay::CallNode& call) {
  const auto* data = relay::tensor_type_of(call.args[0]);
  if (data == nullptr) return {};
  const std::vector<bool> dropped = squeezed_axes(call.attrs_as<SqueezeAttrs>(), data->shape);
  std::vector<size_t> axes;
  for (size_t i = 0; i < dropped.size(); ++i) {
    if (dropped[i]) axes.push_back(i);
  }
  return axes;
}

std::optional<Attrs> keep_layout_of_squeeze(const relay::CallNode& call, const LayoutForm& form) {
  Shape axes;
  for (const size_t axis : axes_of_squeeze(call)) axes.push_back(static_cast<int64_t>(axis));
  const auto& attrs = call.attrs_as<SqueezeAttrs>();
  auto stored = form.whole(axes);
  if (!stored) return std::nullopt;
  std::sort(stored->begin(), stored->end());
  return Attrs(copy_with(attrs, [&](SqueezeAttrs& copy) { copy.axis = *stored; }));
}

Type relate_expand_dims(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<ExpandDimsAttrs>();
  if (attrs.num_newaxis < 0 || attrs.num_newaxis > 64)
    input.fail(fmt::format("num_newaxis is {}, expected 0 to 64", attrs.num_newaxis));
  const size_t at = normal_axis(input, attrs.axis, data->shape.size() + 1);
  Array<PrimExpr> dims(data->shape.begin(), data->shape.begin() + static_cast<std::ptrdiff_t>(at));
  for (int64_t i = 0; i < attrs.num_newaxis; ++i) dims.push_back(make_int(1));
  for (size_t i = at; i < data->shape.size(); ++i) dims.push_back(data->shape[i]);
  return make_tensor_type(dims, data->dtype);
}

// An op whose result is its argument's elements in another shape.
OpBuilder& reshaping(OpBuilder& op, const TypeRelationFn& relation, KeepsElements keeps = KeepsElements::view,
                     FusionKind kind = FusionKind::injective) {
  op.fact(kKeepsElements, keeps);
  moving(op, relation, eval_same_elements, kind);
  return op;
}

// Moving, dropping or adding axes of size 1 keeps the indices of every other axis apart.
bool always_apart(const relay::CallNode&, const UnknownAxis&) { return true; }

// Returns whether a reshape keeps the rows along the first axis.
bool reshapes_rows(const relay::CallNode& call, const UnknownAxis& where) {
  const auto& attrs = call.attrs_as<ReshapeAttrs>();
  if (call.args.size() != 1 || where.axis != 0 || where.result_axis != 0 || attrs.newshape.empty()) return false;
  const auto row_size = [](const Array<PrimExpr>& dims) {
    int64_t size = 1;
    for (size_t i = 1; i < dims.size(); ++i) size *= *as_int(dims[i]);
    return size;
  };
  return attrs.newshape[0] == -1 && row_size(relay::tensor_type_of(call.args[0])->shape) ==
                                        row_size(call.checked_type().as<TensorTypeNode>()->shape);
}

}  // namespace

void register_shape_ops() {
  reshaping(OpBuilder("reshape",
                      "The same elements in row-major order in another shape: x[...] -> [newshape]. With the special "
                      "values of newshape; symbolic sizes divide exactly or stay an expression.")
                .arg("data", "Tensor", "T[...]: the tensor to reshape")
                .arg("newshape", "Tensor", "int[rank of the result], optional: newshape as a tensor")
                .any_args()
                .attrs<ReshapeAttrs>(),
            relate_reshape)
      .fact(kTreatsApart, reshapes_rows);
  reshaping(OpBuilder("contrib_reverse_reshape",
                      "reshape, with the special values of newshape matched from the last dimension to the first: "
                      "x[10,5,4] by (-1, 0) -> [50,4].")
                .arg("data", "Tensor", "T[...]: the tensor to reshape")
                .attrs<ReshapeAttrs>(),
            relate_reverse_reshape);
  reshaping(
      OpBuilder("reshape_like",
                "The elements of data in the shape of shape_like: its axes rhs_begin to rhs_end stand in place of "
                "data's axes lhs_begin to lhs_end, all by default.")
          .arg("data", "Tensor", "T[...]: the elements")
          .arg("shape_like", "Tensor", "[...], as many elements in these axes: only its shape counts")
          .attrs<ReshapeLikeAttrs>(),
      relate_reshape_like);
  reshaping(OpBuilder("nn.batch_flatten", "All but the first axis as one: x[N, ...] -> [N, rest].")
                .arg("data", "Tensor", "T[N, ...]: the tensor to flatten to a matrix"),
            relate_batch_flatten);
  moving(OpBuilder("transpose", "The axes in another order; without axes, reversed.")
             .arg("data", "Tensor", "T[...]: the tensor to transpose")
             .attrs<TransposeAttrs>(),
         relate_transpose, eval_transpose)
      .fact(kTreatsApart, always_apart);
  reshaping(OpBuilder("squeeze", "Without its axes of size 1, or those named.")
                .arg("data", "Tensor", "T[...]: the tensor that loses axes")
                .attrs<SqueezeAttrs>(),
            relate_squeeze, KeepsElements::broadcast)
      .fact(kTreatsApart, always_apart)
      .fact(kKeepLayout, keep_layout_of_squeeze)
      .fact(kDroppedAxes, axes_of_squeeze);
  reshaping(OpBuilder("expand_dims", "With num_newaxis axes of size 1 put in at axis.")
                .arg("data", "Tensor", "T[...]: the tensor that gets new axes")
                .attrs<ExpandDimsAttrs>(),
            relate_expand_dims, KeepsElements::broadcast, FusionKind::broadcast)
      .fact(kTreatsApart, always_apart);
}

Expr reshape(Expr data, Shape newshape, bool allowzero, Span span) {
  return call_with<ReshapeAttrs>("reshape", {data}, span,
                                 [&](auto& a) { a.newshape = newshape, a.allowzero = allowzero; });
}
Expr reshape(Expr data, Expr newshape, bool allowzero, Span span) {
  return call_with<ReshapeAttrs>("reshape", {data, newshape}, span, [&](auto& a) { a.allowzero = allowzero; });
}
Expr reshape_like(Expr data, Expr like, Span span) {
  return call_with<ReshapeLikeAttrs>("reshape_like", {data, like}, span, [](auto&) {});
}
Expr batch_flatten(Expr data, Span span) { return make_call("nn.batch_flatten", {data}, {}, span); }
Expr transpose(Expr data, Shape axes, Span span) {
  return call_with<TransposeAttrs>("transpose", {data}, span, [&](auto& a) { a.axes = axes; });
}
Expr squeeze(Expr data, std::optional<Shape> axis, Span span) {
  return call_with<SqueezeAttrs>("squeeze", {data}, span, [&](auto& a) { a.axis = std::move(axis); });
}
std::vector<bool> squeezed_axes(const SqueezeAttrs& attrs, const Array<PrimExpr>& dims) {
  std::vector<bool> dropped(dims.size(), false);
  for (size_t i = 0; i < dims.size(); ++i) dropped[i] = !attrs.axis && is_int(dims[i], 1);
  for (const int64_t axis : attrs.axis.value_or(Shape())) dropped[normal_axis(axis, dims.size())] = true;
  return dropped;
}
Expr expand_dims(Expr data, int64_t axis, int64_t num_newaxis, Span span) {
  return call_with<ExpandDimsAttrs>("expand_dims", {data}, span,
                                    [&](auto& a) { a.axis = axis, a.num_newaxis = num_newaxis; });
}

}  // namespace headrace::ops
