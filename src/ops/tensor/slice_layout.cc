#include "ops/tensor/slice_layout.h"

#include <algorithm>

#include "ops/tensor/slice.h"
#include "relay/match.h"

namespace headrace::ops {

namespace {

// Ends from here on, and those of axes that are not sliced, mean the whole rest.
constexpr int64_t kOpenEnd = INT32_MAX;

struct AxisSlice {
  int64_t begin = 0, end = kOpenEnd, stride = 1;
};

// Returns slice `i` in blocks of `block` elements; nothing when it does not cut between blocks.
std::optional<AxisSlice> slice_in_blocks(const StridedSliceAttrs& attrs, size_t i, int64_t block) {
  AxisSlice slice{attrs.begin[i], attrs.end[i], 1};
  if (!attrs.strides.empty()) slice.stride = attrs.strides[attrs.strides.size() == 1 ? 0 : i];
  if (block == 1) return slice;
  const bool is_open = slice.end >= kOpenEnd;
  if (attrs.slice_mode == "size" || slice.stride != 1) return std::nullopt;
  if (slice.begin % block != 0 || (!is_open && slice.end % block != 0)) return std::nullopt;
  slice.begin /= block;
  if (!is_open) slice.end /= block;
  return slice;
}

// Sets the lists of a slice of each of the first axes. Ends that are left out become sizes where these are known.
void set_slices(StridedSliceAttrs& attrs, const std::vector<std::optional<AxisSlice>>& slices,
                const Array<PrimExpr>& dims) {
  const bool by_size = attrs.slice_mode == "size";
  attrs.begin = attrs.end = attrs.strides = {};
  for (size_t i = 0; i < slices.size(); ++i) {
    AxisSlice slice = slices[i].value_or(AxisSlice());
    if (by_size && !slices[i]) slice.end = -1;
    if (!by_size && slice.end >= kOpenEnd && slice.stride > 0) slice.end = as_int(dims[i]).value_or(slice.end);
    attrs.begin.push_back(slice.begin);
    attrs.end.push_back(slice.end);
    attrs.strides.push_back(slice.stride);
  }
}

// A slice of named axes keeps its lists.
std::optional<Attrs> keep_named(const relay::CallNode& call, const LayoutForm& form) {
  auto copy = copy_with(call.attrs_as<StridedSliceAttrs>(), [](StridedSliceAttrs&) {});
  for (size_t i = 0; i < copy->axes.size(); ++i) {
    const int64_t axis = copy->axes[i], block = form.block(axis);
    if (block != 1) {
      const auto slice = call.args.size() == 1 ? slice_in_blocks(*copy, i, block) : std::nullopt;
      if (!slice) return std::nullopt;
      copy->begin[i] = slice->begin;
      copy->end[i] = slice->end;
    }
    copy->axes[i] = form.outermost(axis);
  }
  return Attrs(copy);
}

}  // namespace

std::optional<Attrs> keep_layout_of_slice(const relay::CallNode& call, const LayoutForm& form) {
  const auto& attrs = call.attrs_as<StridedSliceAttrs>();
  if (!attrs.axes.empty()) return keep_named(call, form);
  if (call.args.size() > 1) return std::nullopt;
  std::vector<std::optional<AxisSlice>> slices;
  for (size_t i = 0; i < attrs.begin.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const auto slice = slice_in_blocks(attrs, i, form.block(axis));
    if (!slice) return std::nullopt;
    const auto at = static_cast<size_t>(form.outermost(axis));
    slices.resize(std::max(slices.size(), at + 1));
    slices[at] = slice;
  }
  const auto* data = relay::tensor_type_of(call.args[0]);
  const auto dims = convert_shape(data->shape, form.written, form.stored);
  return Attrs(copy_with(attrs, [&](StridedSliceAttrs& copy) { set_slices(copy, slices, dims); }));
}

}  // namespace headrace::ops
