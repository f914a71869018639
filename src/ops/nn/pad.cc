#include "ops/nn/pad.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"

namespace headrace::ops {

void PadAttrs::fields(FieldList<PadAttrs>& f) {
  f.field<&PadAttrs::pad_width>("pad_width", {.default_value = Array<Shape>(),
                                              .has_default = true,
                                              .doc = "(before, after) for each axis; a negative count crops"})
      .field<&PadAttrs::pad_mode>(
          "pad_mode", {.default_value = "constant", .has_default = true, .doc = "constant, edge or reflect"});
}

void MirrorPadAttrs::fields(FieldList<MirrorPadAttrs>& f) {
  f.field<&MirrorPadAttrs::mode>(
       "mode",
       {.default_value = "SYMMETRIC", .has_default = true, .doc = "SYMMETRIC repeats the edge, REFLECT does not"})
      .field<&MirrorPadAttrs::pad_width>("pad_width", {.doc = "(before, after) for each axis"});
}

Border border_of(std::string_view mode) {
  if (mode == "edge") return Border::edge;
  if (mode == "reflect" || mode == "REFLECT") return Border::reflect;
  return mode == "SYMMETRIC" ? Border::symmetric : Border::constant;
}

namespace {

using relay::make_call;

// (before, after) for each axis, `?` where not known.
using Widths = std::vector<std::pair<PrimExpr, PrimExpr>>;

Widths widths_of(const RelationInput& input, const Array<Shape>& pad_width) {
  Widths widths;
  for (const Shape& pair : pad_width) {
    if (pair.size() != 2)
      input.fail(fmt::format("pad_width needs (before, after) for each axis, got {} numbers", pair.size()));
    widths.emplace_back(make_int(pair[0]), make_int(pair[1]));
  }
  return widths;
}

Widths widths_argument(const RelationInput& input, size_t rank) {
  const TensorType type = input.tensor(1);
  if (!type || !(type->dtype.is_int() || type->dtype.is_uint()))
    input.fail(fmt::format("pad_width must be an integer tensor, got {}", to_string(input.arg_types[1])));
  const auto shape = as_shape(type->shape);
  if (!shape || *shape != Shape{static_cast<int64_t>(rank), 2})
    input.fail(fmt::format("pad_width must have the shape ({}, 2), got {}", rank, show(type)));
  Widths widths(rank, {make_any(), make_any()});
  if (const auto value = input.arg_value(1)) {
    for (size_t i = 0; i < rank; ++i) widths[i] = {(*value)[2 * i], (*value)[2 * i + 1]};
  }
  return widths;
}

// Checks borders: a mirrored one is no wider than the elements to mirror, and an edge needs an element.
void check_border(const RelationInput& input, Border border, size_t axis, const PrimExpr& dim,
                  const std::pair<PrimExpr, PrimExpr>& width) {
  const auto n = as_int(dim);
  if (!n || border == Border::constant) return;
  const int64_t limit = border == Border::edge      ? (*n > 0 ? INT64_MAX : 0)
                        : border == Border::reflect ? std::max<int64_t>(*n - 1, 0)
                                                    : *n;
  for (const PrimExpr& side : {width.first, width.second}) {
    const auto value = as_int(side);
    if (value && *value > limit)
      input.fail(fmt::format("axis {} has {} elements and cannot be padded by {} from itself", axis, *n, *value));
  }
}

Type padded_type(const RelationInput& input, const TensorType& data, const Widths& widths, Border border) {
  if (widths.size() != data->shape.size())
    input.fail(fmt::format("pad_width has {} pairs for {}", widths.size(), show(data)));
  Array<PrimExpr> dims;
  for (size_t i = 0; i < widths.size(); ++i) {
    const auto& [before, after] = widths[i];
    for (const auto side : {as_int(before), as_int(after)}) {
      if (side && (*side > INT32_MAX || *side < INT32_MIN))
        input.fail(fmt::format("pad_width has {}, which is not a sensible count", *side));
    }
    check_border(input, border, i, data->shape[i], widths[i]);
    dims.push_back(result_dim(input, data->shape[i] + before + after));
    if (as_int(dims.back()) && *as_int(dims.back()) < 0)
      input.fail(fmt::format("pad_width crops more than axis {} of {} has", i, show(data)));
  }
  return make_tensor_type(dims, data->dtype);
}

Type relate_pad(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<PadAttrs>();
  const size_t args = input.arg_types.size();
  if (args != 2 && args != 3)
    input.fail(fmt::format("takes data and pad_value, or data, pad_width and pad_value; got {} arguments", args));
  if (args == 3 && !attrs.pad_width.empty()) input.fail("pad_width is given twice, as attribute and as argument");
  if (attrs.pad_mode != "constant" && attrs.pad_mode != "edge" && attrs.pad_mode != "reflect")
    input.fail(fmt::format("pad_mode is '{}', expected constant, edge or reflect", attrs.pad_mode));
  const TensorType data = input.tensor(0), value = input.tensor(args - 1);
  if (!data || !value) return {};
  if (!value->shape.empty() && !is_int(arith::product(value->shape), 1))
    input.fail(fmt::format("pad_value must be a scalar, got {}", show(value)));
  const DataType dtype = value->dtype;
  if (!dtype.is_scalar() || !(dtype.is_float() || dtype.is_int() || dtype.is_uint() || dtype.is_bool()))
    input.fail(fmt::format("pad_value must be a number, got {}", show(value)));
  const Widths widths = args == 3 ? widths_argument(input, data->shape.size()) : widths_of(input, attrs.pad_width);
  return padded_type(input, data, widths, border_of(attrs.pad_mode));
}

Type relate_mirror_pad(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<MirrorPadAttrs>();
  if (attrs.mode != "SYMMETRIC" && attrs.mode != "REFLECT")
    input.fail(fmt::format("mode is '{}', expected SYMMETRIC or REFLECT", attrs.mode));
  const TensorType data = input.tensor(0);
  return data ? padded_type(input, data, widths_of(input, attrs.pad_width), border_of(attrs.mode)) : Type();
}

// Returns the index read at position `at`, or -1 for the constant.
int64_t source_index(Border border, int64_t at, int64_t n) {
  if (at >= 0 && at < n) return at;
  switch (border) {
    case Border::constant:
      return -1;
    case Border::edge:
      return at < 0 ? 0 : n - 1;
    case Border::reflect:
      return at < 0 ? -at : 2 * (n - 1) - at;
    case Border::symmetric:
      return at < 0 ? -at - 1 : 2 * n - 1 - at;
  }
  return -1;
}

std::vector<NDArray> pad_with(const EvalInput& input, const Shape& before, Border border, const NDArray& value) {
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  NDArray result = input.make_output();
  if (border == Border::constant) move_elements(value, result, [](const Shape&) { return int64_t{0}; });
  move_elements(input.args[0], result, [&](const Shape& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      const int64_t at = source_index(border, index[i] - before[i], shape[i]);
      if (at < 0) return int64_t{-1};
      offset += at * strides[i];
    }
    return offset;
  });
  return {result};
}

Shape widths_before(const Array<Shape>& pad_width) {
  Shape before;
  for (const Shape& pair : pad_width) before.push_back(pair[0]);
  return before;
}

std::vector<NDArray> eval_pad(const EvalInput& input) {
  const auto& attrs = input.attrs<PadAttrs>();
  Shape before = widths_before(attrs.pad_width);
  if (input.args.size() == 3) {
    const std::vector<int64_t> widths = to_ints(input.args[1]);
    for (size_t i = 0; i < widths.size(); i += 2) before.push_back(widths[i]);
  }
  const NDArray value = as_dtype(input.args.back(), input.args[0].dtype());
  return pad_with(input, before, border_of(attrs.pad_mode), value);
}

std::vector<NDArray> eval_mirror_pad(const EvalInput& input) {
  const auto& attrs = input.attrs<MirrorPadAttrs>();
  return pad_with(input, widths_before(attrs.pad_width), border_of(attrs.mode), {});
}

// Zeros stay zeros. Padding along the factors' axis would leave more indices than factors.
CommutingFactors factors_beside_zeros(const relay::CallNode& call, std::optional<size_t> axis) {
  const auto& attrs = call.attrs_as<PadAttrs>();
  const auto* value = call.args.size() == 2 ? call.args[1].as<relay::ConstantNode>() : nullptr;
  if (value == nullptr || attrs.pad_mode != "constant") return CommutingFactors::none;
  if (element_as_double(value->data.to_dense().tensor(), 0) != 0) return CommutingFactors::none;
  const bool is_beside = !axis || attrs.pad_width[*axis] == Shape{0, 0};
  return is_beside ? CommutingFactors::any : CommutingFactors::none;
}

}  // namespace

void register_pad_ops() {
  OpBuilder("nn.pad",
            "Puts elements around a tensor: constants, the edge's, or the mirror image: data T[n...] -> T[before + n + "
            "after...]. A negative width crops.")
      .arg("data", "Tensor", "T[...]: the tensor to pad")
      .arg("pad_width", "Tensor", "int[rank, 2], optional: pad_width as a tensor, before and after each axis")
      .arg("pad_value", "Tensor", "[] of any dtype, cast to data's: the value of the padding in mode constant")
      .any_args()
      .attrs<PadAttrs>()
      .relation(relate_pad)
      .fusion(FusionKind::injective)
      .eval(eval_pad)
      .fact(kCommutingFactors, factors_beside_zeros);
  OpBuilder("nn.mirror_pad", "Puts the mirror image of a tensor around it: data T[n...] -> T[before + n + after...].")
      .arg("data", "Tensor", "T[...]: the tensor to pad")
      .attrs<MirrorPadAttrs>()
      .relation(relate_mirror_pad)
      .fusion(FusionKind::injective)
      .eval(eval_mirror_pad);
}

Expr pad(Expr data, Array<Shape> pad_width, Expr pad_value, std::string pad_mode, Span span) {
  auto attrs = make_object<PadAttrs>();
  attrs->pad_width = std::move(pad_width);
  attrs->pad_mode = std::move(pad_mode);
  return make_call("nn.pad", {data, pad_value}, attrs, span);
}

Expr pad(Expr data, Expr pad_width, Expr pad_value, std::string pad_mode, Span span) {
  auto attrs = make_object<PadAttrs>();
  attrs->pad_mode = std::move(pad_mode);
  return make_call("nn.pad", {data, pad_width, pad_value}, attrs, span);
}

Expr mirror_pad(Expr data, Array<Shape> pad_width, std::string mode, Span span) {
  auto attrs = make_object<MirrorPadAttrs>();
  attrs->mode = std::move(mode);
  attrs->pad_width = std::move(pad_width);
  return make_call("nn.mirror_pad", {data}, attrs, span);
}

}  // namespace headrace::ops
