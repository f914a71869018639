#include "lower/rules/window.h"

namespace headrace::lower {

WindowedData::WindowedData(const RuleInput& input, WindowSource source) : source_(std::move(source)) {
  Shape sizes;
  for (size_t i = 0; i < source_.taps.size(); ++i) {
    sizes.push_back(static_dim(input, source_.data->shape[source_.axes[2 + i]]));
    source_.count[i] = make_int(static_dim(input, source_.count[i]));
  }
  channels_last_ = source_.axes[1] + 1 == source_.axes.size();
  if (source_.joins_rows || !reads_directly(sizes)) make_copy(sizes);
}

bool WindowedData::reads_directly(const Shape& sizes) const {
  const ops::Window& w = source_.window;
  if (source_.fill->dtype != source_.data->dtype) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t count = *as_int(source_.count[i]), reach = (source_.taps[i] - 1) * w.dilation[i] + 1;
    const bool inside = w.pad_begin[i] == 0 && (count - 1) * w.strides[i] + reach <= sizes[i];
    const bool steps_over = i + 1 == sizes.size() && w.strides[i] > (source_.reads_little ? 2 : 1);
    if (!inside || (!channels_last_ && steps_over && count > 1)) return false;
  }
  return true;
}

PrimExpr WindowedData::element(const PrimExpr& n, const PrimExpr& c, const Index& position) const {
  Index index(source_.axes.size());
  index[source_.axes[0]] = n;
  index[source_.axes[1]] = c;
  for (size_t i = 0; i < position.size(); ++i) index[source_.axes[2 + i]] = position[i];
  return source_.convert(load(source_.data, index));
}

Index WindowedData::arrange(const PrimExpr& n, const PrimExpr& c, const Index& phase, const Index& place) const {
  Index index{n};
  if (!channels_last_) index.push_back(c);
  index.insert(index.end(), phase.begin(), phase.end());
  index.insert(index.end(), place.begin(), place.end());
  if (channels_last_) index.push_back(c);
  return index;
}

void WindowedData::make_copy(const Shape& sizes) {
  const ops::Window& w = source_.window;
  const size_t spatial = sizes.size();
  Index phases, places;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t last_tap = (source_.taps[i] - 1) * w.dilation[i];
    phases_.push_back(std::min(w.strides[i], last_tap + 1));
    phases.push_back(make_int(phases_[i]));
    places.push_back(source_.count[i] + last_tap / w.strides[i]);
  }
  const Buffer& data = source_.data;
  const Index shape = arrange(data->shape[source_.axes[0]], data->shape[source_.axes[1]], phases, places);
  const Buffer copy = make_stage_buffer("windows", source_.fill->dtype, shape);
  const size_t first = channels_last_ ? 1 : 2;
  stage_ = map_stage(copy, [&](const Index& at) {
    std::vector<PrimExpr> conditions;
    Index position;
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t stride = w.strides[i], most = (*as_int(places[i]) - 1) * stride + phases_[i] - 1 - w.pad_begin[i];
      const PrimExpr phase = phases_[i] == 1 ? make_int(0) : at[first + i];
      position.push_back(at[first + spatial + i] * stride + phase - w.pad_begin[i]);
      if (w.pad_begin[i] > 0) conditions.push_back(make_binary(BinaryOp::ge, position[i], make_int(0)));
      if (most >= sizes[i]) conditions.push_back(make_binary(BinaryOp::lt, position[i], make_int(sizes[i])));
    }
    const PrimExpr c = channels_last_ ? at.back() : at[1];
    return guarded(all_of(conditions), element(at[0], c, position), source_.fill);
  });
  stage_->is_layout = true;
  if (source_.joins_rows) join_rows(*as_shape(Array<PrimExpr>(places)));
}

// Makes one line of the copy's rows and columns. Windows come in full vectors, and their taps may reach past the last
// row: the line is so much longer.
void WindowedData::join_rows(const Shape& places) {
  constexpr int64_t kWidestVector = 16;
  const ops::Window& w = source_.window;
  Shape reach;
  for (size_t i = 0; i < 2; ++i) reach.push_back((source_.taps[i] - 1) * w.dilation[i] / w.strides[i]);
  pitch_ = places[1];
  const int64_t used = *as_int(source_.count[0]) * pitch_;
  joined_windows_ = (used + kWidestVector - 1) / kWidestVector * kWidestVector;
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

PrimExpr WindowedData::at(const PrimExpr& n, const PrimExpr& c, const Index& window, const Index& tap) const {
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
