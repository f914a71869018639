#include "ops/tensor/blocks.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"

namespace headrace::ops {

void SubPixelAttrs::fields(FieldList<SubPixelAttrs>& f) {
  f.field<&SubPixelAttrs::block_size>("block_size", {.doc = "rows and columns of a block"})
      .field<&SubPixelAttrs::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW or NHWC"})
      .field<&SubPixelAttrs::mode>(
          "mode",
          {.default_value = "DCR",
           .has_default = true,
           .doc = "the order of depth_to_space: DCR, the place in the block is the outer part of the channel; or CRD, "
                  "which Relay calls CDR"});
}

void SpaceToBatchNDAttrs::fields(FieldList<SpaceToBatchNDAttrs>& f) {
  f.field<&SpaceToBatchNDAttrs::block_shape>("block_shape", {.doc = "the block's sizes along the axes after the first"})
      .field<&SpaceToBatchNDAttrs::paddings>("paddings", {.doc = "(before, after) for each axis of block_shape"})
      .field<&SpaceToBatchNDAttrs::pad_value>(
          "pad_value", {.default_value = 0.0, .has_default = true, .doc = "the value of the padding"});
}

void BatchToSpaceNDAttrs::fields(FieldList<BatchToSpaceNDAttrs>& f) {
  f.field<&BatchToSpaceNDAttrs::block_shape>("block_shape", {.doc = "the block's sizes along the axes after the first"})
      .field<&BatchToSpaceNDAttrs::crops>("crops", {.doc = "(before, after) for each axis of block_shape"});
}

void DilateAttrs::fields(FieldList<DilateAttrs>& f) {
  f.field<&DilateAttrs::strides>("strides", {.doc = "the distance of neighbours along each axis"})
      .field<&DilateAttrs::dilation_value>(
          "dilation_value", {.default_value = 0.0, .has_default = true, .doc = "the value of elements between"});
}

namespace {

using relay::make_call;

// ---- depth_to_space, space_to_depth

Array<PrimExpr> image_dims(const RelationInput& input, const TensorType& data, const SubPixelAttrs& attrs) {
  check_sizes(input, "block_size", {attrs.block_size}, 1, 1);
  if (attrs.layout != "NCHW" && attrs.layout != "NHWC")
    input.fail(fmt::format("layout is '{}', expected NCHW or NHWC", attrs.layout));
  if (attrs.mode != "DCR" && attrs.mode != "CRD" && attrs.mode != "CDR")
    input.fail(fmt::format("mode is '{}', expected DCR, CRD or CDR", attrs.mode));
  if (data->shape.size() != 4)
    input.fail(fmt::format("data must have the 4 dimensions of {}, got {}", attrs.layout, show(data)));
  return Array<PrimExpr>(from_layout(data->shape, axes_of(attrs.layout, "NCHW")));
}

Type relate_sub_pixel(const RelationInput& input, bool to_space) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<SubPixelAttrs>();
  std::vector<PrimExpr> dims = image_dims(input, data, attrs).to_vector();
  const int64_t block = attrs.block_size;
  dims[1] = to_space ? divided_dim(input, dims[1], block * block, "the number of channels")
                     : result_dim(input, dims[1] * block * block);
  for (size_t i = 2; i < 4; ++i)
    dims[i] = to_space ? result_dim(input, dims[i] * block)
                       : divided_dim(input, dims[i], block, i == 2 ? "the height" : "the width");
  return make_tensor_type(Array<PrimExpr>(to_layout(dims, axes_of(attrs.layout, "NCHW"))), data->dtype);
}

// Copies elements: the result's element (n, c, y, x) is the data's (n, c', y', x').
std::vector<NDArray> eval_sub_pixel(const EvalInput& input, bool to_space) {
  const auto& attrs = input.attrs<SubPixelAttrs>();
  const NDArray out = input.make_output();
  const auto axes = axes_of(attrs.layout, "NCHW");
  const std::vector<int64_t> strides = from_layout(dense_strides(input.args[0].shape()), axes);
  const int64_t block = attrs.block_size, depth = from_layout(out.shape(), axes)[1],
                data_depth = from_layout(input.args[0].shape(), axes)[1];
  move_elements(input.args[0], out, [&](const Shape& index) {
    const std::vector<int64_t> i = from_layout(index, axes);
    if (to_space) {
      const int64_t place = i[2] % block * block + i[3] % block;
      const int64_t c = attrs.mode == "DCR" ? place * depth + i[1] : i[1] * block * block + place;
      return i[0] * strides[0] + c * strides[1] + i[2] / block * strides[2] + i[3] / block * strides[3];
    }
    const int64_t place = i[1] / data_depth;
    return i[0] * strides[0] + i[1] % data_depth * strides[1] + (i[2] * block + place / block) * strides[2] +
           (i[3] * block + place % block) * strides[3];
  });
  return {out};
}

// ---- space_to_batch_nd, batch_to_space_nd

void check_blocks(const RelationInput& input, const TensorType& data, const Shape& block, const Array<Shape>& pairs,
                  std::string_view name) {
  check_sizes(input, "block_shape", block, block.size(), 1);
  if (block.size() + 1 > data->shape.size())
    input.fail(fmt::format("block_shape has {} axes, and data is {}", block.size(), show(data)));
  bool fits = pairs.size() == block.size();
  for (const Shape& pair : pairs) fits = fits && pair.size() == 2 && pair[0] >= 0 && pair[1] >= 0;
  if (!fits) input.fail(fmt::format("{} needs (before, after), not negative, for each axis of block_shape", name));
}

int64_t block_elements(const Shape& block) {
  int64_t product = 1;
  for (const int64_t size : block) product *= size;
  return product;
}

Type relate_space_to_batch(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<SpaceToBatchNDAttrs>();
  check_blocks(input, data, attrs.block_shape, attrs.paddings, "paddings");
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  Array<PrimExpr> dims = data->shape;
  dims.set(0, result_dim(input, dims[0] * block_elements(attrs.block_shape)));
  for (size_t i = 0; i < attrs.block_shape.size(); ++i) {
    const Shape& pair = attrs.paddings[i];
    dims.set(i + 1, divided_dim(input, add_const(dims[i + 1], pair[0] + pair[1]), attrs.block_shape[i],
                                fmt::format("axis {} with its padding", i + 1)));
  }
  return make_tensor_type(dims, data->dtype);
}

Type relate_batch_to_space(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<BatchToSpaceNDAttrs>();
  check_blocks(input, data, attrs.block_shape, attrs.crops, "crops");
  Array<PrimExpr> dims = data->shape;
  dims.set(0, divided_dim(input, dims[0], block_elements(attrs.block_shape), "the batch"));
  for (size_t i = 0; i < attrs.block_shape.size(); ++i) {
    const Shape& pair = attrs.crops[i];
    const PrimExpr whole = arith::simplify_dim(dims[i + 1] * attrs.block_shape[i]);
    const auto known = as_int(whole);
    if (known && *known < pair[0] + pair[1])
      input.fail(fmt::format("crops cut ({}) off axis {} of {} elements", fmt::join(pair, ", "), i + 1, *known));
    dims.set(i + 1, add_const(whole, -pair[0] - pair[1]));
  }
  return make_tensor_type(dims, data->dtype);
}

NDArray filled(const EvalInput& input, double value) {
  const NDArray out = input.make_output();
  for (int64_t i = 0; i < out.num_elements(); ++i) set_element(out.tensor(), i, value);
  return out;
}

// Batch b of the result is element (b / batch) of each block; the block's first axis is the outermost.
std::vector<NDArray> eval_space_to_batch(const EvalInput& input) {
  const auto& attrs = input.attrs<SpaceToBatchNDAttrs>();
  const NDArray out = filled(input, attrs.pad_value);
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  move_elements(input.args[0], out, [&](const Shape& index) -> int64_t {
    int64_t place = index[0] / shape[0], at = index[0] % shape[0] * strides[0];
    for (size_t i = attrs.block_shape.size(); i-- > 0;) {
      const int64_t y = index[i + 1] * attrs.block_shape[i] + place % attrs.block_shape[i] - attrs.paddings[i][0];
      if (y < 0 || y >= shape[i + 1]) return -1;
      place /= attrs.block_shape[i];
      at += y * strides[i + 1];
    }
    for (size_t i = attrs.block_shape.size() + 1; i < shape.size(); ++i) at += index[i] * strides[i];
    return at;
  });
  return {out};
}

std::vector<NDArray> eval_batch_to_space(const EvalInput& input) {
  const auto& attrs = input.attrs<BatchToSpaceNDAttrs>();
  const NDArray out = input.make_output();
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  move_elements(input.args[0], out, [&](const Shape& index) {
    int64_t place = 0, at = 0;
    for (size_t i = 0; i < attrs.block_shape.size(); ++i) {
      const int64_t y = index[i + 1] + attrs.crops[i][0];
      place = place * attrs.block_shape[i] + y % attrs.block_shape[i];
      at += y / attrs.block_shape[i] * strides[i + 1];
    }
    for (size_t i = attrs.block_shape.size() + 1; i < shape.size(); ++i) at += index[i] * strides[i];
    return at + (place * out.shape()[0] + index[0]) * strides[0];
  });
  return {out};
}

// ---- dilate

Type relate_dilate(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<DilateAttrs>();
  check_sizes(input, "strides", attrs.strides, data->shape.size(), 1);
  if (data->dtype.is_bool()) input.fail(fmt::format("data must be numbers, got {}", show(data)));
  Array<PrimExpr> dims = data->shape;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (attrs.strides[i] == 1 || is_int(dims[i], 0)) continue;
    dims.set(i, result_dim(input, add_const(dims[i], -1) * attrs.strides[i] + 1));
  }
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_dilate(const EvalInput& input) {
  const auto& attrs = input.attrs<DilateAttrs>();
  const NDArray out = filled(input, attrs.dilation_value);
  const Shape strides = dense_strides(input.args[0].shape());
  move_elements(input.args[0], out, [&](const Shape& index) -> int64_t {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      if (index[i] % attrs.strides[i] != 0) return -1;
      at += index[i] / attrs.strides[i] * strides[i];
    }
    return at;
  });
  return {out};
}

void register_sub_pixel(const char* name, const char* doc, bool to_space) {
  moving(
      OpBuilder(name, doc)
          .arg("data", "Tensor", "T[N, C, H, W], or in another layout: the tensor to rearrange")
          .attrs<SubPixelAttrs>()
          .level(5),
      [to_space](const RelationInput& input) { return relate_sub_pixel(input, to_space); },
      [to_space](const EvalInput& input) { return eval_sub_pixel(input, to_space); });
}

}  // namespace

void register_block_ops() {
  register_sub_pixel("nn.depth_to_space", "Channels become blocks of pixels: T[N,C*b*b,H,W] -> T[N,C,H*b,W*b].", true);
  register_sub_pixel("nn.space_to_depth",
                     "Blocks of pixels become channels, the place in the block the outer part: T[N,C,H*b,W*b] -> "
                     "T[N,b*b*C,H,W].",
                     false);
  OpBuilder("nn.space_to_batch_nd",
            "Pads a tensor, then moves the elements of each block to the batch: T[N, n..., ...] -> T[N * block, (n + "
            "pads) / b..., ...].")
      .arg("data", "Tensor", "T[N, n..., ...]: the tensor to cut into blocks")
      .attrs<SpaceToBatchNDAttrs>()
      .relation(relate_space_to_batch)
      .fusion(FusionKind::injective)
      .level(5)
      .eval(eval_space_to_batch);
  moving(
      OpBuilder("nn.batch_to_space_nd",
                "Blocks taken out of the batch, and cropped: T[N * block, n..., ...] -> T[N, n * b - crops..., ...].")
          .arg("data", "Tensor", "T[N * block, n..., ...]: the blocks")
          .attrs<BatchToSpaceNDAttrs>()
          .level(5),
      relate_batch_to_space, eval_batch_to_space);
  OpBuilder("nn.dilate", "data spread out with dilation_value between: T[n...] -> T[(n - 1) * stride + 1...].")
      .arg("data", "Tensor", "T[...], numbers: the tensor to spread out")
      .attrs<DilateAttrs>()
      .relation(relate_dilate)
      .fusion(FusionKind::injective)
      .level(10)
      .eval(eval_dilate);
}

Expr depth_to_space(Expr data, int64_t block_size, std::string layout, std::string mode, Span span) {
  return call_with<SubPixelAttrs>("nn.depth_to_space", {std::move(data)}, std::move(span), [&](auto& a) {
    a.block_size = block_size;
    a.layout = std::move(layout);
    a.mode = std::move(mode);
  });
}

Expr space_to_depth(Expr data, int64_t block_size, std::string layout, Span span) {
  return call_with<SubPixelAttrs>("nn.space_to_depth", {std::move(data)}, std::move(span),
                                  [&](auto& a) { a.block_size = block_size, a.layout = std::move(layout); });
}

}  // namespace headrace::ops
