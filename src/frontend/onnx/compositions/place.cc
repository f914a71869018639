// Operators that put elements elsewhere: MaxUnpool, CenterCropPad, Col2Im, TensorScatter.
#include <numeric>

#include "base/printable.h"
#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/windows.h"
#include "ops/algorithm/scatter.h"
#include "ops/nn/pad.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "tensor/strides.h"

namespace headrace::onnx {

namespace {

// ONNX MaxUnpool (9, 11, 22): indices count in the whole tensor of the size that the windows give; a greater
// output_shape adds zeros behind.
Exprs convert_max_unpool(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  const size_t spatial = spatial_rank(context, 3);
  context.check_dtype(context.input(1), "an index", is_index, "int64");
  const Windows windows = read_windows(context, read_kernel_shape(context));
  Shape shape = context.known_shape(x);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t& size = shape[i + 2];
    size = (size - 1) * windows.strides[i] + windows.kernel[i] - windows.pad_begin[i] - windows.pad_end[i];
    if (size < 0) context.invalid("its pads are larger than axis {}", i + 2);
  }
  const int64_t total = num_elements(shape);
  const auto flat = [&](const Expr& values) { return ops::reshape(values, Shape{-1}, false, span); };
  Expr result = ops::scatter_elements(ops::zeros({total}, context.dtype(x), span), flat(context.input(1)), flat(x), 0,
                                      "update", span);
  result = context.reshape(result, shape);
  if (!context.has(2)) return {result};
  const Shape wanted = context.ints(2, "output_shape");
  if (wanted.size() != shape.size()) context.invalid("its output_shape has {} sizes", wanted.size());
  Array<Shape> widths;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (wanted[i] < shape[i] || wanted[i] > INT32_MAX)
      context.refuse(HR_REASON_SHAPE_UNSUPPORTED, "an output_shape with {} in place of {} is not supported", wanted[i],
                     shape[i]);
    widths.push_back({0, wanted[i] - shape[i]});
  }
  return {ops::pad(result, widths, context.scalar(0, context.dtype(x)), "constant", span)};
}

// ONNX CenterCropPad (18): the middle of each axis, or zeros around it; what is odd is at the end.
Exprs convert_center_crop_pad(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  const size_t rank = context.rank(x);
  const Shape wanted = context.ints(1, "shape");
  Shape axes = context.ints_attr("axes").value_or(Shape());
  if (!context.has_attr("axes")) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (wanted.size() != axes.size()) context.invalid("it has {} sizes for {} axes", wanted.size(), axes.size());
  Shape begins, ends, cut_axes;
  Array<Shape> widths(std::vector<Shape>(rank, Shape{0, 0}));
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = context.axis_of(axes[i], rank, "axes: axis");
    const int64_t size = context.known_dim(x, axis);
    if (wanted[i] < 0 || wanted[i] > INT32_MAX) context.invalid("one of its sizes is {}", wanted[i]);
    if (wanted[i] < size) {
      cut_axes.push_back(static_cast<int64_t>(axis));
      begins.push_back((size - wanted[i]) / 2);
      ends.push_back(begins.back() + wanted[i]);
    } else {
      const int64_t more = wanted[i] - size;
      widths.set(axis, {more / 2, more - more / 2});
    }
  }
  const Expr cut = cut_axes.empty() ? x : ops::strided_slice(x, begins, ends, {}, cut_axes, "end", span);
  return {ops::pad(cut, widths, context.scalar(0, context.dtype(x)), "constant", span)};
}

// How many blocks lie along axis i of the padded image.
int64_t count_blocks(const Shape& image, const Windows& windows, size_t i) {
  return (image[i] - (windows.kernel[i] - 1) * windows.dilations[i] - 1) / windows.strides[i] + 1;
}

// Where each element of the blocks goes in the padded image: for each element of a block all blocks.
std::vector<int64_t> column_places(const Shape& image, const Windows& windows) {
  const Shape& block = windows.kernel;
  const size_t rank = image.size();
  Shape counts;
  for (size_t i = 0; i < rank; ++i) counts.push_back(count_blocks(image, windows, i));
  const Shape strides = dense_strides(image), tap_strides = dense_strides(block), at_strides = dense_strides(counts);
  std::vector<int64_t> places;
  for (int64_t tap = 0; tap < num_elements(block); ++tap) {
    for (int64_t at = 0; at < num_elements(counts); ++at) {
      int64_t place = 0;
      for (size_t i = 0; i < rank; ++i)
        place += strides[i] * (at / at_strides[i] % counts[i] * windows.strides[i] +
                               tap / tap_strides[i] % block[i] * windows.dilations[i]);
      places.push_back(place);
    }
  }
  return places;
}

// The windows of Col2Im, whose input has no spatial axes to count them by.
Windows read_column_windows(NodeContext& context, const Shape& block) {
  const size_t count = block.size();
  const Shape pads = read_sizes(context, "pads", 2 * count, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(count);
  return {.kernel = block,
          .strides = read_sizes(context, "strides", count, 1),
          .dilations = read_sizes(context, "dilations", count, 1),
          .pad_begin = Shape(pads.begin(), middle),
          .pad_end = Shape(middle, pads.end())};
}

// ONNX Col2Im (18): blocks laid over an image, summed where they overlap; x[N, C * block, blocks] -> [N, C, image].
Exprs convert_col2im(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  const Shape image = context.ints(1, "image_shape"), block = context.ints(2, "block_shape");
  if (image.empty() || image.size() != block.size()) context.invalid("its image_shape and block_shape do not agree");
  const Windows windows = read_column_windows(context, block);
  Shape padded, begins, ends, axes;
  int64_t area = 1, taps = 1, blocks = 1;
  for (size_t i = 0; i < image.size(); ++i) {
    if (image[i] < 1 || block[i] < 1 || image[i] > kMostTableEntries || block[i] > kMostTableEntries)
      context.invalid("its image_shape or block_shape has {}", std::min(image[i], block[i]));
    padded.push_back(image[i] + windows.pad_begin[i] + windows.pad_end[i]);
    context.check_table_size(area *= padded.back());
    if ((block[i] - 1) * windows.dilations[i] + 1 > padded.back()) context.invalid("a block is larger than the image");
    taps *= block[i];
    blocks *= count_blocks(padded, windows, i);
    begins.push_back(windows.pad_begin[i]);
    ends.push_back(windows.pad_begin[i] + image[i]);
    axes.push_back(static_cast<int64_t>(i) + 2);
  }
  const Shape given = context.known_shape(x);
  const int64_t each = taps * blocks;
  context.check_table_size(each);
  if (given.size() != 3 || given[1] % taps != 0 || given[2] != blocks)
    context.invalid("its input of ({}) does not have the blocks of ({}) over ({})", fmt::join(given, ", "),
                    fmt::join(block, ", "), fmt::join(image, ", "));
  const int64_t planes = given[0] * (given[1] / taps);
  const Expr table =
      ops::broadcast_to(context.int_constant({1, each}, column_places(padded, windows)), Shape{planes, each}, span);
  const Expr wide = context.widened(x), none = ops::zeros({planes, area}, context.dtype(wide), span);
  const Expr sums = ops::scatter_elements(none, table, context.reshape(wide, Shape{planes, each}), 1, "add", span);
  Shape shape{given[0], given[1] / taps};
  shape.insert(shape.end(), padded.begin(), padded.end());
  const Expr image_sums = context.cast(context.reshape(sums, shape), context.dtype(x));
  return {ops::strided_slice(image_sums, begins, ends, {}, axes, "end", span)};
}

// ONNX TensorScatter (24): the rows of a cache from an index on, one for each sample of the batch, become those of the
// update. In circular mode the rows behind the last one go to the first ones.
Exprs convert_tensor_scatter(NodeContext& context) {
  const Span& span = context.span();
  const Expr cache = context.input(0), update = context.input(1);
  const Shape all = context.known_shape(cache), part = context.known_shape(update);
  const size_t axis = context.axis_of(context.int_attr("axis", -2), all.size());
  const std::string mode = context.string_attr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    context.invalid("attribute 'mode' is {}, expected linear or circular", printable(mode));
  Shape wanted = all;
  if (axis != 0 && axis < part.size()) wanted[axis] = std::min(part[axis], all[axis]);
  if (axis == 0 || part != wanted)
    context.invalid("its update of ({}) does not fit a cache of ({}) along axis {}", fmt::join(part, ", "),
                    fmt::join(all, ", "), axis);
  std::vector<int64_t> rows(static_cast<size_t>(part[axis]));
  std::iota(rows.begin(), rows.end(), 0);
  Shape along(all.size(), 1), samples(all.size(), 1);
  along[axis] = part[axis];
  samples[0] = all[0];
  Expr places = context.int_constant(along, rows);
  if (context.has(2)) {
    context.check_dtype(context.input(2), "a write index", is_index, "int64");
    if (context.known_shape(context.input(2)) != Shape{all[0]})
      context.invalid("its write_indices are not {}, one for each sample", all[0]);
    const Expr first = context.reshape(context.cast(context.input(2), DataType::int_(64)), samples);
    places = ops::add(first, places, span);
  }
  if (mode == "circular" && all[axis] > 0)
    places = ops::binary("floor_mod", places, context.scalar(static_cast<double>(all[axis]), DataType::int_(64)), span);
  return {ops::scatter_elements(cache, ops::broadcast_to(places, part, span), update, static_cast<int64_t>(axis),
                                "update", span)};
}

}  // namespace

std::span<const OpRow> composed_place_rows() {
  static constexpr OpRow kRows[] = {
      {"MaxUnpool", convert_max_unpool, 2, 3, 9},
      {"CenterCropPad", convert_center_crop_pad, 2, 2, 18},
      {"Col2Im", convert_col2im, 3, 3, 18},
      {"TensorScatter", convert_tensor_scatter, 2, 3, 24},
  };
  return kRows;
}

}  // namespace headrace::onnx
