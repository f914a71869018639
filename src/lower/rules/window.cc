#include "lower/rules/window.h"

namespace headrace::lower {

bool is_wasteful(double elements, double around) { return elements > 0x1p24 && elements > 8 * around; }

double count_elements(const std::vector<PrimExpr>& dims) {
  double count = 1;
  for (const PrimExpr& dim : dims) count *= static_cast<double>(as_int(dim).value_or(1));
  return count;
}

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
  const Layout& layout = source_.layout;
  letters_ = ops::letters_of(source_.taps.size());
  channels_last_ = layout.items().back().letter == 'C';
  for (size_t i = 0; i < source_.taps.size(); ++i) {
    const size_t axis = *layout.find(letters_[2 + i]);
    sizes_.push_back(static_dim(input, source_.data->shape[axis]));
    source_.count[i] = make_int(static_dim(input, source_.count[i]));
    channels_last_ = channels_last_ && axis < *layout.find('C');
  }
  const bool is_direct = reads_directly();
  if (is_direct && !source_.joins_rows) return;
  if (copy_is_wasteful()) {
    is_guarded_ = !is_direct;
  } else {
    make_copy();
  }
}

bool WindowedData::reads_directly() const {
  const ops::Window& w = source_.window;
  if (source_.fill->dtype != source_.data->dtype) return false;
  const bool rows_are_last = source_.layout.items().back().letter != 'C';
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const bool inside = w.pad_begin[i] == 0 && (windows(i) - 1) * w.strides[i] + last_tap(i) < sizes_[i];
    const bool steps_over = i + 1 == sizes_.size() && w.strides[i] > (source_.reads_little ? 2 : 1);
    if (!inside || (rows_are_last && steps_over && windows(i) > 1)) return false;
  }
  return true;
}

bool WindowedData::copy_is_wasteful() const {
  const Index dims = source_.data->shape.to_vector();
  double planes = 1, copied = 1, made = 1;
  for (const char letter : {'N', 'C'}) planes *= count_elements(axis_index(source_.layout, letter, dims).parts);
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const int64_t stride = source_.window.strides[i], phases = std::min(stride, last_tap(i) + 1);
    copied *= static_cast<double>(phases) * static_cast<double>(windows(i) + last_tap(i) / stride);
    made *= static_cast<double>(windows(i));
  }
  return is_wasteful(planes * copied, planes * made + count_elements(dims));
}

std::vector<PrimExpr> WindowedData::tap_extents() const {
  std::vector<PrimExpr> extents;
  for (size_t i = 0; i < sizes_.size(); ++i) extents.push_back(make_int(walks_data(i) ? sizes_[i] : source_.taps[i]));
  return extents;
}

PrimExpr WindowedData::element(const AxisIndex& n, const AxisIndex& c, const Index& position) const {
  std::vector<AxisIndex> index{n, c};
  index.insert(index.end(), position.begin(), position.end());
  return source_.convert(load_by_letters(source_.data, source_.layout, letters_, index));
}

Index WindowedData::arrange(const AxisIndex& n, const AxisIndex& c, const Index& phase, const Index& place) const {
  Index index = n.split(source_.layout.factors('N')).parts;
  const Index channels = c.split(source_.layout.factors('C')).parts;
  const auto inner = channels.begin() + (channels_last_ ? 0 : 1);
  index.insert(index.end(), channels.begin(), inner);
  index.insert(index.end(), phase.begin(), phase.end());
  index.insert(index.end(), place.begin(), place.end());
  index.insert(index.end(), inner, channels.end());
  return index;
}

void WindowedData::make_copy() {
  const ops::Window& w = source_.window;
  const size_t spatial = sizes_.size();
  Index phases, places;
  for (size_t i = 0; i < spatial; ++i) {
    phases_.push_back(std::min(w.strides[i], last_tap(i) + 1));
    phases.push_back(make_int(phases_[i]));
    places.push_back(source_.count[i] + last_tap(i) / w.strides[i]);
  }
  const Index dims = source_.data->shape.to_vector();
  const AxisIndex batch = axis_index(source_.layout, 'N', dims), channels = axis_index(source_.layout, 'C', dims);
  const Buffer copy = make_stage_buffer("windows", source_.fill->dtype, arrange(batch, channels, phases, places));
  const size_t first = batch.parts.size() + (channels_last_ ? 0 : 1);
  stage_ = map_stage(copy, [&](const Index& at) {
    std::vector<PrimExpr> conditions;
    Index position;
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t stride = w.strides[i], most = (*as_int(places[i]) - 1) * stride + phases_[i] - 1 - w.pad_begin[i];
      const PrimExpr phase = phases_[i] == 1 ? make_int(0) : at[first + i];
      position.push_back(at[first + spatial + i] * stride + phase - w.pad_begin[i]);
      if (w.pad_begin[i] > 0) conditions.push_back(make_binary(BinaryOp::ge, position[i], make_int(0)));
      if (most >= sizes_[i]) conditions.push_back(make_binary(BinaryOp::lt, position[i], make_int(sizes_[i])));
    }
    const auto begin = at.begin(), outer = begin + static_cast<std::ptrdiff_t>(first),
               inner = outer + static_cast<std::ptrdiff_t>(2 * spatial);
    const auto batches = begin + static_cast<std::ptrdiff_t>(batch.parts.size());
    Index c(batches, outer);
    c.insert(c.end(), inner, at.end());
    return guarded(all_of(conditions),
                   element({Index(begin, batches), batch.factors}, {std::move(c), channels.factors}, position),
                   source_.fill);
  });
  stage_->is_layout = true;
  if (source_.joins_rows) join_rows(*as_shape(Array<PrimExpr>(places)));
}

// Joins the copy's rows and columns into one line. The line is longer than the rows, because windows are computed in
// full vectors whose taps may reach past the last row.
void WindowedData::join_rows(const Shape& places) {
  const ops::Window& w = source_.window;
  Shape reach;
  for (size_t i = 0; i < 2; ++i) reach.push_back(last_tap(i) / w.strides[i]);
  pitch_ = places[1];
  const int64_t used = *as_int(source_.count[0]) * pitch_;
  joined_windows_ = (used + kWidestLanes - 1) / kWidestLanes * kWidestLanes;
  const int64_t length = std::max(places[0] * pitch_, joined_windows_ + reach[0] * pitch_ + reach[1]);
  ComputeStage& stage = *stage_;
  stage.extents = stage.output->shape.to_vector();
  stage.place.assign(stage.axes.begin(), stage.axes.end() - 2);
  stage.place.push_back(joined_window(stage.axes[stage.axes.size() - 2], stage.axes.back()));
  std::vector<PrimExpr> shape(stage.extents.begin(), stage.extents.end() - 2);
  shape.push_back(make_int(length));
  stage.output = make_stage_buffer("windows", stage.output->dtype, shape);
}

PrimExpr WindowedData::at_joined(const PrimExpr& n, const PrimExpr& c, const PrimExpr& window, const Index& tap) const {
  const ops::Window& w = source_.window;
  Index index{n, c}, place;
  for (size_t i = 0; i < 2; ++i) {
    const PrimExpr offset = tap[i] * w.dilation[i], stride = make_int(w.strides[i]);
    index.push_back(phases_[i] == 1 ? make_int(0) : floor_mod(offset, stride));
    place.push_back(floor_div(offset, stride));
  }
  index.push_back(window + joined_window(place[0], place[1]));
  return load(stage_->output, index);
}

PrimExpr WindowedData::at_guarded(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& tap) const {
  const ops::Window& w = source_.window;
  std::vector<PrimExpr> conditions;
  Index position;
  for (size_t i = 0; i < tap.size(); ++i) {
    const PrimExpr start = window[i] * w.strides[i] - w.pad_begin[i];
    if (walks_data(i)) {
      const PrimExpr offset = tap[i] - start;
      position.push_back(tap[i]);
      conditions.push_back(is_within(offset, make_int(0), make_int(last_tap(i) + 1)));
      if (w.dilation[i] > 1)
        conditions.push_back(make_binary(BinaryOp::eq, floor_mod(offset, make_int(w.dilation[i])), make_int(0)));
    } else {
      position.push_back(start + tap[i] * w.dilation[i]);
      conditions.push_back(is_within(position[i], make_int(0), make_int(sizes_[i])));
    }
  }
  return guarded(all_of(conditions), element(n, c, position), source_.fill);
}

PrimExpr WindowedData::at(const AxisIndex& n, const AxisIndex& c, const Index& window, const Index& tap) const {
  if (is_guarded_) return at_guarded(n, c, window, tap);
  const ops::Window& w = source_.window;
  Index phase, place;
  for (size_t i = 0; i < tap.size(); ++i) {
    const PrimExpr offset = tap[i] * w.dilation[i];
    if (!stage_) {
      place.push_back(window[i] * w.strides[i] + offset);
      continue;
    }
    const PrimExpr stride = make_int(w.strides[i]);
    phase.push_back(phases_[i] == 1 ? make_int(0) : floor_mod(offset, stride));
    place.push_back(window[i] + floor_div(offset, stride));
  }
  return stage_ ? load(stage_->output, arrange(n, c, phase, place)) : element(n, c, place);
}

}  // namespace headrace::lower
