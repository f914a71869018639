// Integers of a few bits: nn.bitpack, nn.bitserial_dense, nn.bitserial_conv2d. And nn.contrib_dense_pack, a product
// with packed weights.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct BitPackAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BitPackAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BitPackAttrs>& f);
  int64_t bits = 1;
  int64_t pack_axis = 1;
  int64_t bit_axis = 2;
  DataType pack_type = DataType::uint(32);
  std::string name = "BitPack";
};

struct BinaryDenseAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BinaryDenseAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BinaryDenseAttrs>& f);
  std::optional<int64_t> units;
  int64_t data_bits = 1;
  int64_t weight_bits = 1;
  DataType pack_dtype = DataType::uint(32);
  DataType out_dtype = DataType::int_(16);
  bool unipolar = true;
};

struct BinaryConv2DAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BinaryConv2DAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BinaryConv2DAttrs>& f);
  Shape strides{1, 1};
  Shape padding{0, 0};
  std::optional<int64_t> channels;
  Shape kernel_size{3, 3};
  int64_t activation_bits = 1;
  int64_t weight_bits = 1;
  std::string data_layout = "NCHW";
  std::string kernel_layout = "OIHW";
  DataType pack_dtype = DataType::uint(32);
  DataType out_dtype = DataType::int_(16);
  bool unipolar = true;
};

struct DensePackAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DensePackAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DensePackAttrs>& f);
  std::string weight_layout = "NC";
  std::optional<int64_t> units;
  std::optional<DataType> out_dtype;
};

// Makes a call of nn.contrib_dense_pack: data [..., k] by the matrix weight [n / b, k, b].
Expr dense_pack(Expr data, Expr weight, Span span = {});

// The axes of a tensor of images, as BinaryConv2DAttrs' layouts say them.
struct ImageAxes {
  size_t channel, row, column;
};
inline ImageAxes data_axes(const BinaryConv2DAttrs& attrs) {
  return attrs.data_layout == "NHWC" ? ImageAxes{3, 1, 2} : ImageAxes{1, 2, 3};
}
// For the kernel, `channel` is the axis of input channels; the axis of output channels is the one left.
inline ImageAxes kernel_axes(const BinaryConv2DAttrs& attrs) {
  return attrs.kernel_layout == "HWIO" ? ImageAxes{2, 0, 1} : ImageAxes{1, 2, 3};
}
inline size_t kernel_output_axis(const BinaryConv2DAttrs& attrs) { return attrs.kernel_layout == "HWIO" ? 3 : 0; }

}  // namespace headrace::ops
