#include "lower/rules/window.h"

namespace headrace::lower {

TapPlace tap_place(const ops::Window& window, const AxisIndex& n, const AxisIndex& c, const Index& place,
                   const Index& tap, const std::vector<PrimExpr>& dims) {
  std::vector<AxisIndex> at{n, c};
  std::vector<PrimExpr> conditions;
  for (size_t i = 0; i < tap.size(); ++i) {
    const PrimExpr position = place[i] * window.strides[i] + tap[i] * window.dilation[i] - window.pad_begin[i];
    conditions.push_back(is_within(position, make_int(0), dims[2 + i]));
    at.emplace_back(position);
  }
  return {std::move(at), all_of(conditions)};
}

WindowedData::WindowedData(const RuleInput& input, WindowSource source) : source_(std::move(source)) {
  letters_ = ops::letters_of(source_.taps.size());
  for (size_t i = 0; i < source_.taps.size(); ++i) {
    sizes_.push_back(static_dim(input, source_.data->shape[*source_.layout.find(letters_[2 + i])]));
    counts_.push_back(static_dim(input, source_.count[i]));
  }
}

std::vector<PrimExpr> WindowedData::tap_extents() const { return to_dims(source_.taps).to_vector(); }

std::vector<tir::WindowRead::Axis> WindowedData::axes_of(const Index& window, size_t first_tap) const {
  const ops::Window& w = source_.window;
  std::vector<tir::WindowRead::Axis> axes;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    axes.push_back({.window = window[i],
                    .reduce_axis = first_tap + i,
                    .count = counts_[i],
                    .taps = source_.taps[i],
                    .size = sizes_[i],
                    .stride = w.strides[i],
                    .dilation = w.dilation[i],
                    .pad = w.pad_begin[i]});
  }
  return axes;
}

namespace {

// The parts of batch and channels that are outside the spatial axes in memory, and those that are inside: with NCHW16c
// channels are on both sides.
struct PartsByPlace {
  Index outer, inner;
};

PartsByPlace parts_by_place(const Layout& layout, std::string_view letters, const Index& n, const Index& c) {
  bool channels_last = layout.items().back().letter == 'C';
  for (const char letter : letters.substr(2)) channels_last = channels_last && *layout.find(letter) < *layout.find('C');
  PartsByPlace parts{n, {}};
  const auto inner = c.begin() + (channels_last ? 0 : 1);
  parts.outer.insert(parts.outer.end(), c.begin(), inner);
  parts.inner.assign(inner, c.end());
  return parts;
}

std::vector<PrimVar> as_vars(const Index& index) {
  std::vector<PrimVar> vars;
  for (const PrimExpr& e : index) vars.push_back(e.cast<PrimVarNode>());
  return vars;
}

Index new_vars(const char* name, size_t count) {
  Index vars;
  for (size_t i = 0; i < count; ++i) vars.push_back(make_prim_var(name));
  return vars;
}

// Returns the element where a tap of each axis is inside the data, else `fill`. Tests only what may be outside.
PrimExpr guarded_element(const tir::WindowRead& read, const Index& reduced) {
  std::unordered_map<const PrimVarNode*, PrimExpr> values;
  std::vector<PrimExpr> conditions;
  for (size_t i = 0; i < read.axes.size(); ++i) {
    const tir::WindowRead::Axis& axis = read.axes[i];
    const PrimExpr at = axis.window * axis.stride + reduced[axis.reduce_axis] * axis.dilation - axis.pad;
    const bool may_be_past = (axis.count - 1) * axis.stride + axis.last_tap() - axis.pad >= axis.size;
    if (axis.pad > 0) conditions.push_back(make_binary(BinaryOp::ge, at, make_int(0)));
    if (may_be_past) conditions.push_back(make_binary(BinaryOp::lt, at, make_int(axis.size)));
    values[read.position[i].get()] = at;
  }
  for (size_t i = 0; i < read.outer.size(); ++i) values[read.outer[i].get()] = read.outer_at[i];
  for (size_t i = 0; i < read.inner.size(); ++i) values[read.inner[i].get()] = read.inner_at[i];
  return guarded(all_of(conditions), substitute(read.element, values), read.fill);
}

}  // namespace

WindowReadPtr WindowedData::read(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& reduced,
                                 size_t first_tap) const {
  const Layout& layout = source_.layout;
  const auto read = std::make_shared<tir::WindowRead>();
  read->fill = source_.fill;
  read->data = source_.data;
  read->axes = axes_of(window, first_tap);
  const AxisIndex batch(new_vars("n", layout.positions('N').size()), layout.factors('N')),
      channels(new_vars("c", layout.positions('C').size()), layout.factors('C'));
  std::vector<AxisIndex> place{batch, channels};
  for (const PrimExpr& position : new_vars("at", sizes_.size())) {
    place.emplace_back(position);
    read->position.push_back(position.cast<PrimVarNode>());
  }
  read->element = source_.convert(load_by_letters(source_.data, layout, letters_, place));
  const PartsByPlace vars = parts_by_place(layout, letters_, batch.parts, channels.parts);
  read->outer = as_vars(vars.outer);
  read->inner = as_vars(vars.inner);
  const PartsByPlace at =
      parts_by_place(layout, letters_, n.split(batch.factors).parts, c.split(channels.factors).parts);
  read->outer_at = at.outer;
  read->inner_at = at.inner;
  const Index dims = source_.data->shape.to_vector();
  const PartsByPlace extents =
      parts_by_place(layout, letters_, axis_index(layout, 'N', dims).parts, axis_index(layout, 'C', dims).parts);
  read->outer_extents = extents.outer;
  read->inner_extents = extents.inner;
  read->read = guarded_element(*read, reduced);
  return read;
}

}  // namespace headrace::lower
