// Ops that cut space into blocks or spread it: depth_to_space, space_to_depth, space_to_batch_nd, batch_to_space_nd,
// dilate.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Attributes of depth_to_space and of space_to_depth, which ignores mode.
struct SubPixelAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SubPixelAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SubPixelAttrs>& f);
  int64_t block_size = 1;
  std::string layout = "NCHW";
  std::string mode = "DCR";
};

struct SpaceToBatchNDAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SpaceToBatchNDAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SpaceToBatchNDAttrs>& f);
  Shape block_shape;
  Array<Shape> paddings;
  double pad_value = 0;
};

struct BatchToSpaceNDAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BatchToSpaceNDAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BatchToSpaceNDAttrs>& f);
  Shape block_shape;
  Array<Shape> crops;
};

struct DilateAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DilateAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DilateAttrs>& f);
  Shape strides;
  double dilation_value = 0;
};

Expr depth_to_space(Expr data, int64_t block_size, std::string layout = "NCHW", std::string mode = "DCR",
                    Span span = {});
Expr space_to_depth(Expr data, int64_t block_size, std::string layout = "NCHW", Span span = {});

}  // namespace headrace::ops
