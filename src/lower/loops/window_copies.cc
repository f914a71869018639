#include "lower/loops/window_copies.h"

#include <bit>

#include "ir/layout.h"
#include "lower/stages/make_stage.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using tir::Combiner;
using tir::Compute;
using tir::ComputeStage;
using tir::WindowRead;

namespace {

using AxisValues = std::unordered_map<const PrimVarNode*, PrimExpr>;

// Returns how much of a vector register of `lanes` the vectors along a row of `width` use on average. A row is cut into
// full vectors, then into vectors of smaller powers of two.
double row_use(int64_t width, int64_t lanes) {
  const int64_t vectors = width / lanes + std::popcount(static_cast<uint64_t>(width % lanes));
  return static_cast<double>(width) / static_cast<double>(vectors * lanes);
}

void append(Index& index, const Index& more) { index.insert(index.end(), more.begin(), more.end()); }

// One stage that reads windows, and the stages that may replace it.
class WindowStage {
 public:
  WindowStage(const ComputeStage& stage, const cost::Machine& machine)
      : stage_(stage), read_(*stage.windows), machine_(machine) {
    for (const WindowRead::Axis& axis : read_.axes) {
      steps_.push_back(vectors_walk_windows() || axis.taps == 1 ? axis.stride : 1);
      phases_.push_back(std::min(steps_.back(), axis.last_tap() + 1));
      places_.push_back((axis.count - 1) * axis.stride / steps_.back() + axis.last_tap() / steps_.back() + 1);
    }
  }

  std::vector<ComputeStage> replaced() const {
    const bool is_direct = reads_directly(), joins = joins_rows();
    if (is_direct && !joins) return {reading(direct_read())};
    if (copy_is_wasteful()) return {is_direct ? reading(direct_read()) : guarded_stage()};
    ComputeStage copy = copy_stage();
    if (!joins) {
      const PrimExpr from_copy = load(copy.output, copy_index(read_.outer_at, tap_phases(), tap_places()));
      return {std::move(copy), reading(from_copy)};
    }
    join_copy(copy);
    const ComputeStage sums = joined_sums(copy.output);
    return {std::move(copy), sums, used_windows(sums.output)};
  }

 private:
  size_t spatial() const { return read_.axes.size(); }
  PrimExpr tap(size_t i) const { return stage_.reduce_axes[read_.axes[i].reduce_axis]; }
  PrimExpr tap_offset(size_t i) const { return tap(i) * read_.axes[i].dilation; }

  // ---- decisions

  // Returns whether vectors run along the windows of a row: where the last axis of the result counts them. Then a copy
  // puts what neighbouring windows read side by side. Else, where channels are last, it keeps the order of the data.
  bool vectors_walk_windows() const {
    return read_.inner.empty() && read_.axes.back().window == PrimExpr(stage_.axes.back());
  }

  // Returns whether few results read the same element. A sum of products with weights reads it for each of its
  // channels; a pool and a dilation have one result for each window and channel of the data.
  bool reads_little() const { return read_.ignores_taps || stage_.combiner != Combiner::sum; }

  bool reads_directly() const {
    if (read_.fill->dtype != read_.data->dtype) return false;
    for (size_t i = 0; i < spatial(); ++i) {
      const WindowRead::Axis& axis = read_.axes[i];
      if (axis.stride > 1 && axis.taps == 1 && is_read_often()) return false;
      const bool inside = axis.pad == 0 && (axis.count - 1) * axis.stride + axis.last_tap() < axis.size;
      const bool steps_over = i + 1 == spatial() && axis.stride > (reads_little() ? 2 : 1);
      if (!inside || (vectors_walk_windows() && steps_over && axis.count > 1)) return false;
    }
    return true;
  }

  // Returns whether what a window of one tap reads serves so many results that it pays to copy it first, so that the
  // rows of a tile lie side by side (1x1 by steps of 2 of a packed 256x56x56 to 512 channels: two thirds of the time).
  bool is_read_often() const {
    constexpr double kReadOften = 64;
    double windows = 1;
    for (const WindowRead::Axis& axis : read_.axes) windows *= static_cast<double>(axis.count);
    return !reads_little() && count_elements(stage_.axis_extents()) >= kReadOften * windows;
  }

  bool copy_is_wasteful() const {
    double planes = count_elements(read_.outer_extents) * count_elements(read_.inner_extents), copied = 1, made = 1;
    for (size_t i = 0; i < spatial(); ++i) {
      copied *= static_cast<double>(phases_[i]) * static_cast<double>(places_[i]);
      made *= static_cast<double>(read_.axes[i].count);
    }
    return is_wasteful(planes * copied, planes * made + count_elements(read_.data->shape.to_vector()));
  }

  // Returns whether vectors should run over several rows of a convolution: if single rows fill vectors badly, and if
  // windows overlap (otherwise rows are contiguous anyway). Joining has a cost: windows between two rows are computed
  // in vain, and a second stage copies the result out of the sums. With few terms in a sum, it pays only for very short
  // rows (depthwise 3x3: 14 columns take 0.045 ms, joined 0.061 ms; 7 columns take 0.037 ms, joined 0.028 ms).
  bool joins_rows() const {
    constexpr double kPassCost = 0.15;
    constexpr int64_t kFewTerms = 32, kShortRow = 8;
    const bool is_plain = read_.outer.size() == 2 && vectors_walk_windows() && spatial() == 2;
    if (!is_plain || read_.batch_axes.empty()) return false;
    const WindowRead::Axis &rows = read_.axes[0], &columns = read_.axes[1];
    if (columns.taps == 1 || rows.count <= 1) return false;
    if (count_elements(stage_.reduce_extents) <= kFewTerms) return columns.count < kShortRow;
    const double joined_use =
        static_cast<double>(columns.count) / static_cast<double>(columns.count + columns.taps - 1);
    return row_use(columns.count, machine_.joined_lanes) + kPassCost < joined_use;
  }

  // ---- reads

  // Returns the stage with its windows read by `read`.
  ComputeStage reading(const PrimExpr& read) const {
    ComputeStage stage = stage_;
    stage.value = tir::rewrite(stage.value, [&](const PrimExpr& e) { return e == read_.read ? read : e; });
    stage.windows = nullptr;
    return stage;
  }

  // Returns the element at a position of the tensor, in a place of batch and channels.
  PrimExpr element(const Index& outer, const Index& position, const Index& inner) const {
    AxisValues values;
    for (size_t i = 0; i < outer.size(); ++i) values[read_.outer[i].get()] = outer[i];
    for (size_t i = 0; i < position.size(); ++i) values[read_.position[i].get()] = position[i];
    for (size_t i = 0; i < inner.size(); ++i) values[read_.inner[i].get()] = inner[i];
    return substitute(read_.element, values);
  }

  PrimExpr direct_read() const {
    Index position;
    for (size_t i = 0; i < spatial(); ++i)
      position.push_back(read_.axes[i].window * read_.axes[i].stride + tap_offset(i));
    return element(read_.outer_at, position, read_.inner_at);
  }

  bool walks_data(const WindowRead::Axis& axis) const { return read_.ignores_taps && axis.taps > axis.size; }

  ComputeStage guarded_stage() const {
    Index position;
    std::vector<PrimExpr> conditions, extents = stage_.reduce_extents;
    for (size_t i = 0; i < spatial(); ++i) {
      const WindowRead::Axis& axis = read_.axes[i];
      const PrimExpr start = axis.window * axis.stride - axis.pad;
      if (walks_data(axis)) {
        const PrimExpr offset = tap(i) - start;
        position.push_back(tap(i));
        conditions.push_back(is_within(offset, make_int(0), make_int(axis.last_tap() + 1)));
        if (axis.dilation > 1)
          conditions.push_back(make_binary(BinaryOp::eq, floor_mod(offset, make_int(axis.dilation)), make_int(0)));
        extents[axis.reduce_axis] = make_int(axis.size);
      } else {
        position.push_back(start + tap_offset(i));
        conditions.push_back(is_within(position[i], make_int(0), make_int(axis.size)));
      }
    }
    ComputeStage stage =
        reading(guarded(all_of(conditions), element(read_.outer_at, position, read_.inner_at), read_.fill));
    stage.reduce_extents = std::move(extents);
    return stage;
  }

  // ---- the copy

  PrimExpr tap_phase(size_t i) const {
    return phases_[i] == 1 ? make_int(0) : floor_mod(tap_offset(i), make_int(steps_[i]));
  }
  Index tap_phases() const {
    Index phases;
    for (size_t i = 0; i < spatial(); ++i) phases.push_back(tap_phase(i));
    return phases;
  }
  // Returns the place, among those of one phase, that a tap is behind its window's.
  PrimExpr place_behind(size_t i) const { return floor_div(tap_offset(i), make_int(steps_[i])); }
  Index tap_places() const {
    Index places;
    for (size_t i = 0; i < spatial(); ++i) {
      const WindowRead::Axis& axis = read_.axes[i];
      places.push_back(axis.window * (axis.stride / steps_[i]) + place_behind(i));
    }
    return places;
  }

  Index copy_index(const Index& outer, const Index& phases, const Index& places) const {
    Index index = outer;
    append(index, phases);
    append(index, places);
    append(index, read_.inner_at);
    return index;
  }

  ComputeStage copy_stage() const {
    Index shape = read_.outer_extents;
    append(shape, to_dims(phases_).to_vector());
    append(shape, to_dims(places_).to_vector());
    append(shape, read_.inner_extents);
    ComputeStage stage =
        map_stage(make_stage_buffer("windows", read_.fill->dtype, shape), [&](const Index& at) { return copied(at); });
    stage.is_layout = true;
    return stage;
  }

  // Returns the element of the copy at `at`. Tests only what may be outside the data.
  PrimExpr copied(const Index& at) const {
    const size_t first = read_.outer.size();
    std::vector<PrimExpr> conditions;
    Index position;
    for (size_t i = 0; i < spatial(); ++i) {
      const WindowRead::Axis& axis = read_.axes[i];
      const int64_t most = (places_[i] - 1) * steps_[i] + phases_[i] - 1 - axis.pad;
      const PrimExpr phase = phases_[i] == 1 ? make_int(0) : at[first + i];
      position.push_back(at[first + spatial() + i] * steps_[i] + phase - axis.pad);
      if (axis.pad > 0) conditions.push_back(make_binary(BinaryOp::ge, position[i], make_int(0)));
      if (most >= axis.size) conditions.push_back(make_binary(BinaryOp::lt, position[i], make_int(axis.size)));
    }
    const auto outer_end = at.begin() + static_cast<std::ptrdiff_t>(first),
               inner = outer_end + static_cast<std::ptrdiff_t>(2 * spatial());
    return guarded(all_of(conditions), element({at.begin(), outer_end}, position, {inner, at.end()}), read_.fill);
  }

  // ---- joined rows: windows are numbered 0 .. joined_windows() - 1; those that lie between two rows are not used

  int64_t pitch() const { return places_[1]; }
  PrimExpr joined_window(const PrimExpr& row, const PrimExpr& column) const { return row * pitch() + column; }
  int64_t joined_windows() const {
    const int64_t used = read_.axes[0].count * pitch(), lanes = machine_.joined_lanes;
    return (used + lanes - 1) / lanes * lanes;
  }

  // Joins the copy's rows and columns into one line. The line is longer than the rows, because windows are computed in
  // full vectors whose taps may reach past the last row.
  void join_copy(ComputeStage& copy) const {
    Shape reach;
    for (const WindowRead::Axis& axis : read_.axes) reach.push_back(axis.last_tap() / axis.stride);
    const int64_t length = std::max(places_[0] * pitch(), joined_windows() + reach[0] * pitch() + reach[1]);
    copy.extents = copy.output->shape.to_vector();
    copy.place.assign(copy.axes.begin(), copy.axes.end() - 2);
    copy.place.push_back(joined_window(copy.axes[copy.axes.size() - 2], copy.axes.back()));
    std::vector<PrimExpr> shape(copy.extents.begin(), copy.extents.end() - 2);
    shape.push_back(make_int(length));
    copy.output = make_stage_buffer("windows", copy.output->dtype, shape);
  }

  // Returns the factors of the parts of an axis of the result: the extents of all but the outermost.
  Shape factors_of(const std::vector<size_t>& axes) const {
    const std::vector<PrimExpr> extents = stage_.axis_extents();
    Shape factors;
    for (size_t i = 1; i < axes.size(); ++i) factors.push_back(*as_int(extents[axes[i]]));
    return factors;
  }
  PrimExpr whole_extent(const std::vector<size_t>& axes) const {
    const std::vector<PrimExpr> extents = stage_.axis_extents();
    int64_t whole = 1;
    for (const size_t axis : axes) whole *= *as_int(extents[axis]);
    return make_int(whole);
  }

  // Sums the products of all joined windows: [batch, channel, window].
  ComputeStage joined_sums(const Buffer& copy) const {
    const PrimVar window = make_prim_var("window");
    Index at = read_.outer_at;
    append(at, tap_phases());
    at.push_back(window + joined_window(place_behind(0), place_behind(1)));
    const PrimExpr value = reading(load(copy, at)).value;
    const Buffer sums = make_stage_buffer(
        "sums", value->dtype,
        {whole_extent(read_.batch_axes), whole_extent(read_.channel_axes), make_int(joined_windows())});
    return reduce_stage(sums, stage_.combiner, stage_.reduce_extents, [&](const Index& i, const Index& r) {
      AxisValues values{{window.get(), i[2]}};
      set_parts(values, read_.batch_axes, i[0]);
      set_parts(values, read_.channel_axes, i[1]);
      for (size_t k = 0; k < r.size(); ++k) values[stage_.reduce_axes[k].get()] = r[k];
      return substitute(value, values);
    });
  }

  void set_parts(AxisValues& values, const std::vector<size_t>& axes, const PrimExpr& whole) const {
    const std::vector<PrimExpr> parts = split_parts(whole, factors_of(axes));
    for (size_t k = 0; k < axes.size(); ++k) values[stage_.axes[axes[k]].get()] = parts[k];
  }

  // Copies the result out of the sums.
  ComputeStage used_windows(const Buffer& sums) const {
    return map_stage(stage_.output, [&](const Index& i) {
      AxisValues values;
      for (size_t k = 0; k < i.size(); ++k) values[stage_.axes[k].get()] = i[k];
      const auto whole = [&](const std::vector<size_t>& axes) {
        Index parts;
        for (const size_t axis : axes) parts.push_back(i[axis]);
        return join_parts(parts, factors_of(axes));
      };
      const PrimExpr window = substitute(joined_window(read_.axes[0].window, read_.axes[1].window), values);
      const PrimExpr sum = load(sums, {whole(read_.batch_axes), whole(read_.channel_axes), window});
      if (!stage_.epilogue) return sum;
      values[stage_.reduced.get()] = sum;
      return substitute(stage_.epilogue, values);
    });
  }

  const ComputeStage& stage_;
  const WindowRead& read_;
  const cost::Machine& machine_;
  // For each spatial axis: elements of the data from one place to the next, phases between them, places.
  Shape steps_, phases_, places_;
};

}  // namespace

Compute copy_windows(Compute compute, const cost::Machine& machine) {
  std::vector<ComputeStage> stages;
  for (ComputeStage& stage : compute.stages) {
    if (stage.windows == nullptr) {
      stages.push_back(std::move(stage));
      continue;
    }
    for (ComputeStage& made : WindowStage(stage, machine).replaced()) stages.push_back(std::move(made));
  }
  compute.stages = std::move(stages);
  return compute;
}

}  // namespace headrace::lower
