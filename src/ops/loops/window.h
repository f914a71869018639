// Attributes of sliding windows and letters of layouts, which convolutions and pools share.
#pragma once

#include "ir/layout.h"
#include "ops/register.h"

namespace headrace::ops {

// Per spatial axis.
struct Window {
  Shape strides, dilation, pad_begin, pad_end;
};

// Makes a window from attributes that make_window has checked; `padding` has 1, n or 2n values (all begins, then all
// ends).
Window window_of(size_t rank, const Shape& strides, const Shape& padding, const Shape& dilation);
// Makes a window after checking counts and signs; fails with the attribute's name.
Window make_window(const RelationInput& input, size_t rank, const Shape& strides, const Shape& padding,
                   const Shape& dilation);
// Fails unless `values` has `count` items, each in [least, 2^31).
void check_sizes(const RelationInput& input, std::string_view name, const Shape& values, size_t count, int64_t least);

// Returns how many windows of `kernel` taps fit along spatial axis i of size `size`: floor((size + pads - reach) /
// stride) + 1, with `beyond` more elements at the end that windows may reach over. Fails when the reach of the kernel
// is greater than all that.
PrimExpr window_count(const RelationInput& input, const Window& window, size_t i, const PrimExpr& size, int64_t kernel,
                      int64_t beyond = 0);

// Returns the dense layout of data with so many spatial axes: NCW, NCHW or NCDHW.
std::string_view letters_of(size_t spatial);
// Returns `layout`, or where it is empty `fallback`.
inline std::string_view layout_or(const std::string& layout, std::string_view fallback) {
  return layout.empty() ? fallback : std::string_view(layout);
}
// Repeats a single value for all axes.
inline Shape spread(const Shape& values, size_t count) { return values.size() == 1 ? Shape(count, values[0]) : values; }

// The axes that may lie in parts where an op takes packed layouts: batch and channels, of data and of a kernel.
inline constexpr std::string_view kPackedAxes = "NCOI";
// Returns what is wrong with `layout`, as the end of a sentence, for a tensor with the axes `letters` in any order;
// axes of `in_parts` may be in parts: NCHW16c. Empty when nothing is.
std::string layout_fault(std::string_view layout, std::string_view letters, std::string_view in_parts);
// Parses and checks the layout of such a tensor; fails naming the attribute.
Layout check_layout(const RelationInput& input, std::string_view name, std::string_view layout,
                    std::string_view letters, std::string_view in_parts = "");
// Returns the dimensions of a tensor in `layout` as whole axes, in the order of the letters; fails where a dimension is
// not the factor of its part. As many dimensions as the layout has.
std::vector<PrimExpr> whole_dims(const RelationInput& input, const Array<PrimExpr>& dims, const Layout& layout,
                                 std::string_view letters);
// Converts whole axes back to the dimensions in `layout`; fails where the factors of an axis do not divide it.
Array<PrimExpr> dims_in_layout(const RelationInput& input, const std::vector<PrimExpr>& dims, std::string_view letters,
                               const Layout& layout);

// The part that all relations of pools share: checks that the data is numbers in `layout`, and gives its axes and the
// layout of the result, which is `layout` where `out_layout` is empty. Batch and channels may be in parts.
struct PooledData {
  std::vector<PrimExpr> dims;  // whole, in the order of the letters
  Layout out_layout;
};
PooledData check_pooled(const RelationInput& input, const TensorType& data, std::string_view layout,
                        const std::string& out_layout, std::string_view letters);

// Returns the dimension of each of `letters` in `layout`, which has exactly those letters: axes_of("NHWC", "NCHW") is
// {0, 3, 1, 2}.
std::vector<size_t> axes_of(std::string_view layout, std::string_view letters);
// Checks the layout and returns axes_of; fails naming the attribute.
std::vector<size_t> layout_axes(const RelationInput& input, std::string_view name, std::string_view layout,
                                std::string_view letters);
// Items of `values`, given in the order of the letters, put in the order of the layout.
template <typename T>
std::vector<T> to_layout(const std::vector<T>& values, const std::vector<size_t>& axes) {
  std::vector<T> result(values.size());
  for (size_t i = 0; i < axes.size(); ++i) result[axes[i]] = values[i];
  return result;
}
// Converts dims or strides in a layout back to the order of the letters.
template <typename List>
auto from_layout(const List& dims, const std::vector<size_t>& axes) {
  std::vector<typename List::value_type> result;
  for (size_t axis : axes) result.push_back(dims[axis]);
  return result;
}

}  // namespace headrace::ops
