// Convolutions.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct Conv2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.Conv2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<Conv2DAttrs>& f) {
    f.field<&Conv2DAttrs::strides>("strides",
                                   {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
        .field<&Conv2DAttrs::padding>("padding", {.default_value = Shape{0, 0},
                                                  .has_default = true,
                                                  .doc = "all; height, width; or top, left, bottom, right"})
        .field<&Conv2DAttrs::dilation>("dilation",
                                       {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
        .field<&Conv2DAttrs::groups>(
            "groups", {.default_value = 1, .has_default = true, .doc = "the channels split into so many convolutions"})
        .field<&Conv2DAttrs::channels>(
            "channels", {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
        .field<&Conv2DAttrs::kernel_size>(
            "kernel_size", {.optional = true, .default_value = Value(), .has_default = true, .doc = "height, width"})
        .field<&Conv2DAttrs::data_layout>("data_layout",
                                          {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
        .field<&Conv2DAttrs::kernel_layout>(
            "kernel_layout", {.default_value = "OIHW", .has_default = true, .doc = "an order of O I H W"})
        .field<&Conv2DAttrs::out_layout>("out_layout",
                                         {.default_value = "", .has_default = true, .doc = "empty: as data_layout"})
        .field<&Conv2DAttrs::out_dtype>(
            "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
  }
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
  static void fields(FieldList<Conv2DTransposeAttrs>& f) {
    using A = Conv2DTransposeAttrs;
    f.field<&A::channels>("channels",
                          {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
        .field<&A::kernel_size>(
            "kernel_size", {.optional = true, .default_value = Value(), .has_default = true, .doc = "height, width"})
        .field<&A::strides>("strides", {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
        .field<&A::output_padding>("output_padding", {.default_value = Shape{0, 0},
                                                      .has_default = true,
                                                      .doc = "rows and columns added at the end; below the stride"})
        .field<&A::padding>("padding", {.default_value = Shape{0, 0},
                                        .has_default = true,
                                        .doc = "cut off the result: all; height, width; or top, left, bottom, right"})
        .field<&A::dilation>("dilation", {.default_value = Shape{1, 1}, .has_default = true, .doc = "height, width"})
        .field<&A::groups>(
            "groups", {.default_value = 1, .has_default = true, .doc = "the channels split into so many convolutions"})
        .field<&A::data_layout>("data_layout",
                                {.default_value = "NCHW", .has_default = true, .doc = "an order of N C H W"})
        .field<&A::kernel_layout>(
            "kernel_layout",
            {.default_value = "IOHW", .has_default = true, .doc = "an order of I O H W; I is the data's channels"})
        .field<&A::out_layout>("out_layout", {.default_value = "", .has_default = true, .doc = "empty: as data_layout"})
        .field<&A::out_dtype>(
            "out_dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
  }
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
