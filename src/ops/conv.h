// Convolutions.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct Conv2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Conv2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Conv2DAttrs>& f);
  Shape strides{1, 1};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  std::string data_layout = "NCHW";
  std::string kernel_layout = "OIHW";
  std::string out_layout;
  std::optional<DataType> out_dtype;
};

struct Conv2DTransposeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Conv2DTransposeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Conv2DTransposeAttrs>& f);
  std::optional<int64_t> channels;
  std::optional<Shape> kernel_size;
  Shape strides{1, 1};
  Shape output_padding{0, 0};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  int64_t groups = 1;
  std::string data_layout = "NCHW";
  std::string kernel_layout = "IOHW";
  std::string out_layout;
  std::optional<DataType> out_dtype;
};

Expr conv2d(Expr data, Expr weight, Conv2DAttrs attrs, Span span = {});
Expr conv2d_transpose(Expr data, Expr weight, Conv2DTransposeAttrs attrs, Span span = {});

}  // namespace headrace::ops
