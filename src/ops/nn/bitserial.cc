#include "ops/nn/bitserial.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

void BitPackAttrs::fields(FieldList<BitPackAttrs>& f) {
  using A = BitPackAttrs;
  f.field<&A::bits>("bits",
                    {.default_value = 1, .has_default = true, .doc = "how many of the low bits are kept, 1 to 8"})
      .field<&A::pack_axis>("pack_axis",
                            {.default_value = 1, .has_default = true, .doc = "the axis whose elements share a number"})
      .field<&A::bit_axis>("bit_axis", {.default_value = 2, .has_default = true, .doc = "where the axis of bits goes"})
      .field<&A::pack_type>("pack_type", {.default_value = "uint32",
                                          .has_default = true,
                                          .doc = "uint8, uint16, uint32 or uint64: the packed numbers"})
      .field<&A::name>("name", {.default_value = "BitPack", .has_default = true, .doc = "says nothing"});
}

void BinaryDenseAttrs::fields(FieldList<BinaryDenseAttrs>& f) {
  using A = BinaryDenseAttrs;
  f.field<&A::units>("units",
                     {.optional = true, .default_value = Value(), .has_default = true, .doc = "output features"})
      .field<&A::data_bits>("data_bits",
                            {.default_value = 1, .has_default = true, .doc = "how many low bits of data count"})
      .field<&A::weight_bits>("weight_bits",
                              {.default_value = 1, .has_default = true, .doc = "how many low bits of weights count"})
      .field<&A::pack_dtype>("pack_dtype", {.default_value = "uint32", .has_default = true, .doc = "changes nothing"})
      .field<&A::out_dtype>("out_dtype", {.default_value = "int16", .has_default = true, .doc = "the result's"})
      .field<&A::unipolar>("unipolar",
                           {.default_value = true, .has_default = true, .doc = "a bit 0 of weights counts as -1"});
}

void BinaryConv2DAttrs::fields(FieldList<BinaryConv2DAttrs>& f) {
  using A = BinaryConv2DAttrs;
  f.field<&A::strides>("strides", {.default_value = Shape{1, 1},
                                   .has_default = true,
                                   .doc = "elements from one window to the next, along H and W"})
      .field<&A::padding>("padding", {.default_value = Shape{0, 0},
                                      .has_default = true,
                                      .doc = "zeros around each plane: height and width, or top, left, bottom, right"})
      .field<&A::channels>("channels",
                           {.optional = true, .default_value = Value(), .has_default = true, .doc = "output channels"})
      .field<&A::kernel_size>("kernel_size",
                              {.default_value = Shape{3, 3}, .has_default = true, .doc = "height and width of windows"})
      .field<&A::activation_bits>("activation_bits",
                                  {.default_value = 1, .has_default = true, .doc = "how many low bits of data count"})
      .field<&A::weight_bits>("weight_bits",
                              {.default_value = 1, .has_default = true, .doc = "how many low bits of weights count"})
      .field<&A::data_layout>("data_layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW or NHWC"})
      .field<&A::kernel_layout>("kernel_layout", {.default_value = "OIHW", .has_default = true, .doc = "OIHW or HWIO"})
      .field<&A::pack_dtype>("pack_dtype", {.default_value = "uint32", .has_default = true, .doc = "changes nothing"})
      .field<&A::out_dtype>("out_dtype", {.default_value = "int16", .has_default = true, .doc = "the result's"})
      .field<&A::unipolar>("unipolar",
                           {.default_value = true, .has_default = true, .doc = "a bit 0 of weights counts as -1"});
}

void DensePackAttrs::fields(FieldList<DensePackAttrs>& f) {
  using A = DensePackAttrs;
  f.field<&A::weight_layout>("weight_layout",
                             {.default_value = "NC", .has_default = true, .doc = "NC8n and its like, as the type says"})
      .field<&A::units>("units",
                        {.optional = true, .default_value = Value(), .has_default = true, .doc = "output features"})
      .field<&A::out_dtype>("out_dtype",
                            {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"});
}

namespace {

void check_bits(const RelationInput& input, std::string_view name, int64_t bits) {
  if (bits < 1 || bits > 8) input.fail(fmt::format("{} is {}, expected 1 to 8", name, bits));
}

void check_integer(const RelationInput& input, std::string_view name, const TensorType& type, size_t rank) {
  if (!is_integer(type) || type->shape.size() != rank)
    input.fail(fmt::format("{} must be integers of {} dimensions, got {}", name, rank, show(type)));
}

void check_out(const RelationInput& input, DataType dtype) {
  if (!dtype.is_int() && !dtype.is_uint()) input.fail(fmt::format("out_dtype must be of integers, got {}", dtype));
}

// Returns the low bits of an integer.
int64_t low_bits(int64_t value, int64_t bits) { return value & ((int64_t{1} << bits) - 1); }
// Returns the number that a weight counts as: with `unipolar` each bit 0 as -1.
int64_t weight_value(int64_t weight, int64_t bits, bool unipolar) {
  const int64_t value = low_bits(weight, bits);
  return unipolar ? 2 * value - ((int64_t{1} << bits) - 1) : value;
}

// Reads all elements once, because a read by dtype takes longer than a multiplication.
std::vector<int64_t> as_integers(const NDArray& array) {
  std::vector<int64_t> integers(static_cast<size_t>(array.num_elements()));
  for (size_t i = 0; i < integers.size(); ++i) integers[i] = element_as_int(array.tensor(), static_cast<int64_t>(i));
  return integers;
}

// ---- bitpack

Type relate_bitpack(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<BitPackAttrs>();
  check_bits(input, "bits", attrs.bits);
  if (!attrs.pack_type.is_uint() || attrs.pack_type.bits() < 8)
    input.fail(fmt::format("pack_type must be uint8, uint16, uint32 or uint64, got {}", attrs.pack_type));
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const size_t rank = data->shape.size();
  if (!is_integer(data)) input.fail(fmt::format("data must be integers, got {}", show(data)));
  const size_t pack_axis = normal_axis(input, attrs.pack_axis, rank, "pack_axis"),
               bit_axis = normal_axis(input, attrs.bit_axis, rank + 1, "bit_axis");
  const int64_t width = attrs.pack_type.bits();
  const auto packed = as_int(data->shape[pack_axis]);
  if (packed && *packed % width != 0)
    input.fail(fmt::format("axis {} of {} has no multiple of {} elements", pack_axis, show(data), width));
  Array<PrimExpr> dims;
  for (size_t i = 0; i < rank; ++i)
    dims.push_back(i == pack_axis ? result_dim(input, floor_div(data->shape[i], make_int(width))) : data->shape[i]);
  Array<PrimExpr> result;
  for (size_t i = 0; i <= rank; ++i)
    result.push_back(i == bit_axis ? make_int(attrs.bits) : dims[i < bit_axis ? i : i - 1]);
  return make_tensor_type(result, attrs.pack_type);
}

std::vector<NDArray> eval_bitpack(const EvalInput& input) {
  const auto& attrs = input.attrs<BitPackAttrs>();
  const NDArray out = input.make_output();
  const Shape strides = dense_strides(input.args[0].shape());
  const size_t rank = strides.size(), pack_axis = normal_axis(attrs.pack_axis, rank),
               bit_axis = normal_axis(attrs.bit_axis, rank + 1);
  const int64_t width = attrs.pack_type.bits();
  int64_t next = 0;
  for_each_index(out.shape(), [&](const Shape& at) {
    input.spend(width);
    int64_t begin = 0;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t index = at[i < bit_axis ? i : i + 1];
      begin += strides[i] * (i == pack_axis ? index * width : index);
    }
    uint64_t number = 0;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t element = element_as_int(input.args[0].tensor(), begin + k * strides[pack_axis]);
      number = number << 1 | (static_cast<uint64_t>(element) >> at[bit_axis] & 1);
    }
    dispatch_int(out.dtype(), [&]<typename T>() { out.data<T>()[next] = static_cast<T>(number); });
    ++next;
  });
  return {out};
}

// ---- bitserial_dense

Type relate_bitserial_dense(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<BinaryDenseAttrs>();
  check_bits(input, "data_bits", attrs.data_bits);
  check_bits(input, "weight_bits", attrs.weight_bits);
  check_out(input, attrs.out_dtype);
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  if (!data || !weight) return {};
  check_integer(input, "data", data, 2);
  check_integer(input, "weight", weight, 2);
  if (arith::is_unequal(data->shape.back(), weight->shape[1]))
    input.fail(fmt::format("the summed dimensions differ: {} and {}", show(data), show(weight)));
  if (attrs.units && arith::is_unequal(weight->shape[0], make_int(*attrs.units)))
    input.fail(fmt::format("units is {}, and weight is {}", *attrs.units, show(weight)));
  const PrimExpr units = attrs.units ? make_int(*attrs.units) : weight->shape[0];
  return make_tensor_type(Array<PrimExpr>{data->shape[0], units}, attrs.out_dtype);
}

std::vector<NDArray> eval_bitserial_dense(const EvalInput& input) {
  const auto& attrs = input.attrs<BinaryDenseAttrs>();
  const NDArray out = input.make_output();
  const int64_t n = out.shape()[1], depth = input.args[0].shape()[1];
  const std::vector<int64_t> data = as_integers(input.args[0]), weight = as_integers(input.args[1]);
  for (int64_t at = 0; at < out.num_elements(); ++at) {
    input.spend(depth);
    int64_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t x = data[static_cast<size_t>(at / n * depth + k)],
                    w = weight[static_cast<size_t>(at % n * depth + k)];
      sum += low_bits(x, attrs.data_bits) * weight_value(w, attrs.weight_bits, attrs.unipolar);
    }
    dispatch_int(out.dtype(), [&]<typename T>() { out.data<T>()[at] = static_cast<T>(sum); });
  }
  return {out};
}

// ---- bitserial_conv2d

void check_bitserial_conv2d(const RelationInput& input, const BinaryConv2DAttrs& attrs) {
  check_bits(input, "activation_bits", attrs.activation_bits);
  check_bits(input, "weight_bits", attrs.weight_bits);
  check_out(input, attrs.out_dtype);
  check_one_of(input, "data_layout", attrs.data_layout, {"NCHW", "NHWC"});
  check_one_of(input, "kernel_layout", attrs.kernel_layout, {"OIHW", "HWIO"});
}

Type relate_bitserial_conv2d(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<BinaryConv2DAttrs>();
  check_bitserial_conv2d(input, attrs);
  const Window window = make_window(input, 2, attrs.strides, attrs.padding, {1, 1});
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  if (!data || !weight) return {};
  check_integer(input, "data", data, 4);
  check_integer(input, "weight", weight, 4);
  const ImageAxes image = data_axes(attrs), kernel = kernel_axes(attrs);
  if (arith::is_unequal(data->shape[image.channel], weight->shape[kernel.channel]))
    input.fail(fmt::format("the input channels differ: {} and {}", show(data), show(weight)));
  const PrimExpr outputs = weight->shape[kernel_output_axis(attrs)];
  if (attrs.channels && arith::is_unequal(outputs, make_int(*attrs.channels)))
    input.fail(fmt::format("channels is {}, and weight is {}", *attrs.channels, show(weight)));
  Array<PrimExpr> dims = data->shape;
  std::vector<PrimExpr> result(dims.begin(), dims.end());
  result[image.channel] = outputs;
  for (size_t i = 0; i < 2; ++i) {
    const size_t taps = i == 0 ? kernel.row : kernel.column, axis = i == 0 ? image.row : image.column;
    const auto size = as_int(weight->shape[taps]);
    if (!size || *size != attrs.kernel_size[i])
      input.fail(
          fmt::format("kernel_size is {}, and weight is {}", show_dims(to_dims(attrs.kernel_size)), show(weight)));
    result[axis] = window_count(input, window, i, data->shape[axis], *size);
  }
  return make_tensor_type(Array<PrimExpr>(result.begin(), result.end()), attrs.out_dtype);
}

std::vector<NDArray> eval_bitserial_conv2d(const EvalInput& input) {
  const auto& attrs = input.attrs<BinaryConv2DAttrs>();
  const NDArray out = input.make_output();
  const NDArray &data = input.args[0], &weight = input.args[1];
  const Window window = window_of(2, attrs.strides, attrs.padding, {1, 1});
  const ImageAxes image = data_axes(attrs), kernel = kernel_axes(attrs);
  const Shape strides = dense_strides(data.shape()), taps = dense_strides(weight.shape());
  const std::vector<int64_t> elements = as_integers(data), weights = as_integers(weight);
  const int64_t channels = data.shape()[image.channel];
  int64_t next = 0;
  for_each_index(out.shape(), [&](const Shape& at) {
    input.spend(channels * attrs.kernel_size[0] * attrs.kernel_size[1]);
    int64_t sum = 0;
    for_each_index({channels, attrs.kernel_size[0], attrs.kernel_size[1]}, [&](const Shape& r) {
      const int64_t row = at[image.row] * window.strides[0] + r[1] - window.pad_begin[0],
                    column = at[image.column] * window.strides[1] + r[2] - window.pad_begin[1];
      if (row < 0 || column < 0 || row >= data.shape()[image.row] || column >= data.shape()[image.column]) return;
      const int64_t from = at[0] * strides[0] + r[0] * strides[image.channel] + row * strides[image.row] +
                           column * strides[image.column];
      const int64_t tap = at[image.channel] * taps[kernel_output_axis(attrs)] + r[0] * taps[kernel.channel] +
                          r[1] * taps[kernel.row] + r[2] * taps[kernel.column];
      sum += low_bits(elements[static_cast<size_t>(from)], attrs.activation_bits) *
             weight_value(weights[static_cast<size_t>(tap)], attrs.weight_bits, attrs.unipolar);
    });
    dispatch_int(out.dtype(), [&]<typename T>() { out.data<T>()[next] = static_cast<T>(sum); });
    ++next;
  });
  return {out};
}

// ---- contrib_dense_pack

Type relate_dense_pack(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<DensePackAttrs>();
  const TensorType data = input.tensor(0), weight = input.tensor(1);
  if (!data || !weight) return {};
  if (data->shape.empty() || data->dtype.is_bool())
    input.fail(fmt::format("data must be numbers [..., k], got {}", show(data)));
  if (weight->shape.size() != 3)
    input.fail(fmt::format("weight must be [n / b, k, b], rows in parts of b, got {}", show(weight)));
  check_factor_dtypes(input, data, weight, "weight");
  if (arith::is_unequal(data->shape.back(), weight->shape[1]))
    input.fail(fmt::format("the summed dimensions differ: {} and {}", show(data), show(weight)));
  const PrimExpr units = result_dim(input, weight->shape[0] * weight->shape[2]);
  if (attrs.units && arith::is_unequal(units, make_int(*attrs.units)))
    input.fail(fmt::format("units is {}, and weight is {}", *attrs.units, show(weight)));
  const DataType out = attrs.out_dtype.value_or(data->dtype);
  check_out_dtype(input, out, data->dtype);
  Array<PrimExpr> shape(data->shape.begin(), data->shape.end() - 1);
  shape.push_back(units);
  return make_tensor_type(shape, out);
}

std::vector<NDArray> eval_dense_pack(const EvalInput& input) {
  const NDArray out = input.make_output();
  const NDArray x = as_dtype(input.args[0], out.dtype()), w = as_dtype(input.args[1], out.dtype());
  const int64_t n = out.shape().back(), depth = x.shape().back(), part = w.shape()[2];
  dispatch_number(out.dtype(), [&]<typename T>() {
    const Elements<T> a(x), b(w), y(out);
    for (int64_t at = 0; at < out.num_elements(); ++at) {
      input.spend(depth);
      Compute<T> sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum = wrapping_add(sum,
                           wrapping_mul(a[at / n * depth + k], b[(at % n / part * depth + k) * part + at % n % part]));
      y.set(at, sum);
    }
  });
  return {out};
}

}  // namespace

void register_bitserial_ops() {
  OpBuilder(
      "nn.bitpack",
      "Bits of the elements of an axis, side by side in one number, the first in its highest bit, for each of the low "
      "bits: data int[...] -> pack_type[...], pack_axis divided by the bits of pack_type, and a new axis of bits.")
      .arg("data", "Tensor", "int[...]: the elements")
      .attrs<BitPackAttrs>()
      .relation(relate_bitpack)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_bitpack);
  OpBuilder(
      "nn.bitserial_dense",
      "The low bits of data by the transpose of weight, whose bits 0 count as -1 with unipolar: data int[m, k], weight "
      "int[n, k] -> out_dtype[m, n]; sums wrap.")
      .arg("data", "Tensor", "int[m, k]: the rows")
      .arg("weight", "Tensor", "int[n, k], not packed: the matrix; its row n makes column n of the result")
      .attrs<BinaryDenseAttrs>()
      .relation(relate_bitserial_dense)
      .fusion(FusionKind::anchor)
      .level(1)
      .eval(eval_bitserial_dense);
  OpBuilder("nn.bitserial_conv2d",
            "A convolution of the low bits of data by those of weight, whose bits 0 count as -1 with unipolar: data "
            "int[N, C, "
            "H, W], weight int[O, C, R, S] -> out_dtype[N, O, P, Q]; sums wrap.")
      .arg("data", "Tensor", "int[N, C, H, W], or in data_layout: the images")
      .arg("weight", "Tensor", "int[O, C, R, S], or in kernel_layout, not packed: the filters")
      .attrs<BinaryConv2DAttrs>()
      .relation(relate_bitserial_conv2d)
      .fusion(FusionKind::anchor)
      .level(2)
      .eval(eval_bitserial_conv2d);
  OpBuilder("nn.contrib_dense_pack",
            "data T[..., k] by the transpose of a matrix [n, k] whose rows lie in parts of b -> out_dtype[..., n]. "
            "Integers wrap.")
      .arg("data", "Tensor", "T[..., k], numbers: the rows")
      .arg("weight", "Tensor", "T[n / b, k, b]: the matrix")
      .attrs<DensePackAttrs>()
      .relation(relate_dense_pack)
      .fusion(FusionKind::anchor)
      .level(10)
      .eval(eval_dense_pack);
}

Expr dense_pack(Expr data, Expr weight, Span span) {
  return call_with<DensePackAttrs>("nn.contrib_dense_pack", {std::move(data), std::move(weight)}, std::move(span),
                                   [](auto&) {});
}

}  // namespace headrace::ops
