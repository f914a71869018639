#include "ops/image/vision.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arith/canonical.h"
#include "base/count_of.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/index_value.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "relay/expr.h"

namespace headrace::ops {

void GetValidCountsAttrs::fields(FieldList<GetValidCountsAttrs>& f) {
  using A = GetValidCountsAttrs;
  f.field<&A::score_threshold>(
       "score_threshold",
       {.default_value = 0.0, .has_default = true, .doc = "a valid box has a higher score; 0 where it is an argument"})
      .field<&A::id_index>(
          "id_index",
          {.default_value = 0, .has_default = true, .doc = "where in a box the class stands; -1: it has none"})
      .field<&A::score_index>("score_index",
                              {.default_value = 1, .has_default = true, .doc = "where in a box the score stands"});
}

void NonMaximumSuppressionAttrs::fields(FieldList<NonMaximumSuppressionAttrs>& f) {
  using A = NonMaximumSuppressionAttrs;
  f.field<&A::force_suppress>(
       "force_suppress", {.default_value = false, .has_default = true, .doc = "boxes of other classes suppress too"})
      .field<&A::top_k>("top_k", {.default_value = -1,
                                  .has_default = true,
                                  .doc = "how many boxes, those of the highest scores, are looked at; below 1: all"})
      .field<&A::coord_start>(
          "coord_start", {.default_value = 2, .has_default = true, .doc = "where in a box the 4 coordinates begin"})
      .field<&A::score_index>("score_index",
                              {.default_value = 1, .has_default = true, .doc = "where in a box the score stands"})
      .field<&A::id_index>(
          "id_index",
          {.default_value = 0, .has_default = true, .doc = "where in a box the class stands; -1: it has none"})
      .field<&A::return_indices>("return_indices",
                                 {.default_value = true, .has_default = true, .doc = "give indices in place of boxes"})
      .field<&A::invalid_to_bottom>("invalid_to_bottom",
                                    {.default_value = false, .has_default = true, .doc = "kept boxes come first"});
}

void ROIAlignAttrs::fields(FieldList<ROIAlignAttrs>& f) {
  using A = ROIAlignAttrs;
  f.field<&A::pooled_size>("pooled_size", {.doc = "height and width of the result"})
      .field<&A::spatial_scale>("spatial_scale", {.doc = "the factor from the regions' coordinates to the data's"})
      .field<&A::sample_ratio>("sample_ratio",
                               {.default_value = -1,
                                .has_default = true,
                                .doc = "samples along an axis of a bin; below 1: one for each element that it covers"})
      .field<&A::layout>("layout",
                         {.default_value = "NCHW", .has_default = true, .doc = "NCHW or NHWC, also of the result"})
      .field<&A::mode>("mode", {.default_value = "avg", .has_default = true, .doc = "avg or max of the samples"})
      .field<&A::aligned>(
          "aligned", {.default_value = false,
                      .has_default = true,
                      .doc = "coordinates are of elements' corners, half a step before their middles, and a region "
                             "may be smaller than an element"});
}

namespace {

// ---- boxes

// Checks data f[batch, boxes, elements]; fails unless `index` is an element, or -1 where that is allowed.
void check_element(const RelationInput& input, const TensorType& data, std::string_view name, int64_t index,
                   int64_t count, bool may_miss) {
  const auto size = as_int(data->shape[2]);
  if (may_miss && index == -1) return;
  if (index < 0 || (size && index + count > *size))
    input.fail(
        fmt::format("{} is {}, and a box of {} has {} elements", name, index, show(data), to_string(data->shape[2])));
}

TensorType box_data(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data && (data->shape.size() != 3 || !data->dtype.is_float()))
    input.fail(fmt::format("data must be floats [batch, boxes, elements], got {}", show(data)));
  return data;
}

bool is_scalar_of(const TensorType& type, bool is_float) {
  return type->shape.empty() && (is_float ? type->dtype.is_float() : type->dtype.is_int());
}

// Checks a threshold; returns false while the type of a threshold that is an argument is not known.
bool check_threshold(const RelationInput& input, const GetValidCountsAttrs& attrs) {
  const size_t count = input.arg_types.size();
  if (count < 1 || count > 2)
    input.fail(fmt::format("takes data and score_threshold, got {}", count_of(count, "argument")));
  if (count == 1) return true;
  if (attrs.score_threshold != 0) input.fail("score_threshold is given twice, as attribute and as argument");
  const TensorType threshold = input.tensor(1);
  if (threshold && !is_scalar_of(threshold, true))
    input.fail(fmt::format("score_threshold must be a float scalar, got {}", show(threshold)));
  return threshold != nullptr;
}

Type relate_get_valid_counts(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<GetValidCountsAttrs>();
  const bool has_threshold = check_threshold(input, attrs);
  const TensorType data = box_data(input);
  if (!data || !has_threshold) return {};
  check_element(input, data, "score_index", attrs.score_index, 1, false);
  check_element(input, data, "id_index", attrs.id_index, 1, true);
  const DataType index = DataType::int_(32);
  return make_tuple_type({make_tensor_type(Array<PrimExpr>{data->shape[0]}, index), data,
                          make_tensor_type(Array<PrimExpr>{data->shape[0], data->shape[1]}, index)});
}

std::vector<NDArray> eval_get_valid_counts(const EvalInput& input) {
  const auto& attrs = input.attrs<GetValidCountsAttrs>();
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1), input.make_output(2)};
  const Shape& shape = input.args[0].shape();
  const int64_t boxes = shape[1], size = shape[2];
  const double threshold = input.args.size() > 1 ? element_as_double(input.args[1].tensor(), 0) : attrs.score_threshold;
  dispatch_float(input.args[0].dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]), y(outs[1]);
    const Elements<int32_t> counts(outs[0]), indices(outs[2]);
    for (int64_t i = 0; i < outs[1].num_elements(); ++i) y.set(i, -1);
    for (int64_t i = 0; i < outs[2].num_elements(); ++i) indices.set(i, -1);
    for (int64_t b = 0; b < shape[0]; ++b) {
      int32_t count = 0;
      for (int64_t j = 0; j < boxes; ++j) {
        const int64_t from = (b * boxes + j) * size, to = (b * boxes + count) * size;
        const bool has_class = attrs.id_index < 0 || x[from + attrs.id_index] >= 0;
        if (!has_class || !(x[from + attrs.score_index] > static_cast<Compute<T>>(threshold))) continue;
        for (int64_t k = 0; k < size; ++k) y.set(to + k, x[from + k]);
        indices.set(b * boxes + count++, static_cast<int32_t>(j));
      }
      counts.set(b, count);
    }
  });
  return outs;
}

Type relate_non_max_suppression(const RelationInput& input) {
  const TensorType data = box_data(input), counts = input.tensor(1), indices = input.tensor(2), most = input.tensor(3),
                   threshold = input.tensor(4);
  if (!data || !counts || !indices || !most || !threshold) return {};
  const auto& attrs = input.call.attrs_as<NonMaximumSuppressionAttrs>();
  check_element(input, data, "score_index", attrs.score_index, 1, false);
  check_element(input, data, "coord_start", attrs.coord_start, 4, false);
  check_element(input, data, "id_index", attrs.id_index, 1, true);
  const DataType index = DataType::int_(32);
  if (counts->dtype != index || counts->shape.size() != 1 || arith::is_unequal(counts->shape[0], data->shape[0]))
    input.fail(fmt::format("valid_count must be int32, one a batch of {}, got {}", show(data), show(counts)));
  // Without return_indices nothing reads the indices, and Relay's programs give any tensor.
  if (attrs.return_indices &&
      (indices->dtype != index || indices->shape.size() != 2 || arith::is_unequal(indices->shape[0], data->shape[0]) ||
       arith::is_unequal(indices->shape[1], data->shape[1])))
    input.fail(fmt::format("indices must be int32, one a box of {}, got {}", show(data), show(indices)));
  if (!is_scalar_of(most, false))
    input.fail(fmt::format("max_output_size must be an integer scalar, got {}", show(most)));
  if (!is_scalar_of(threshold, true))
    input.fail(fmt::format("iou_threshold must be a float scalar, got {}", show(threshold)));
  if (!attrs.return_indices) return data;
  return make_tuple_type({indices, make_tensor_type(Array<PrimExpr>{data->shape[0], make_int(1)}, index)});
}

template <typename C>
struct Box {
  C left, top, right, bottom;
  template <typename T>
  Box(const Elements<T>& x, int64_t at)
      : left(std::min(x[at], x[at + 2])),
        top(std::min(x[at + 1], x[at + 3])),
        right(std::max(x[at], x[at + 2])),
        bottom(std::max(x[at + 1], x[at + 3])) {}
  C area() const { return (right - left) * (bottom - top); }
};

template <typename C>
C overlap(const Box<C>& a, const Box<C>& b) {
  const C width = std::max(C{0}, std::min(a.right, b.right) - std::max(a.left, b.left)),
          height = std::max(C{0}, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
  const C both = width * height, either = a.area() + b.area() - both;
  return either <= 0 ? C{0} : both / either;
}

// The boxes of one batch that are kept, of those considered, the highest score first.
struct Kept {
  std::vector<int64_t> order;
  std::vector<bool> is_kept;
};

template <typename T>
Kept suppress(const EvalInput& input, const Elements<T>& x, int64_t first, int64_t size, int64_t count) {
  const auto& attrs = input.attrs<NonMaximumSuppressionAttrs>();
  const int64_t most = index_at(input.args[3], 0);
  const auto threshold = static_cast<Compute<T>>(element_as_double(input.args[4].tensor(), 0));
  const auto at = [&](int64_t box, int64_t element) { return first + box * size + element; };
  Kept kept;
  kept.order.resize(static_cast<size_t>(count));
  std::iota(kept.order.begin(), kept.order.end(), 0);
  // A score that is NaN is the lowest.
  const auto score = [&](int64_t box) {
    const Compute<T> own = x[at(box, attrs.score_index)];
    return own != own ? -std::numeric_limits<Compute<T>>::infinity() : own;
  };
  std::sort(kept.order.begin(), kept.order.end(),
            [&](int64_t i, int64_t j) { return score(i) != score(j) ? score(i) > score(j) : i < j; });
  if (attrs.top_k > 0 && attrs.top_k < count) kept.order.resize(static_cast<size_t>(attrs.top_k));
  int64_t total = 0;
  for (size_t i = 0; i < kept.order.size(); ++i) {
    bool keeps = most <= 0 || total < most;
    input.spend(static_cast<int64_t>(i));
    for (size_t j = 0; keeps && j < i; ++j) {
      const int64_t a = kept.order[j], b = kept.order[i];
      const bool same =
          attrs.force_suppress || attrs.id_index < 0 || x[at(a, attrs.id_index)] == x[at(b, attrs.id_index)];
      keeps = !(kept.is_kept[j] && same &&
                overlap(Box<Compute<T>>(x, at(a, attrs.coord_start)), Box<Compute<T>>(x, at(b, attrs.coord_start))) >=
                    threshold);
    }
    kept.is_kept.push_back(keeps);
    total += keeps ? 1 : 0;
  }
  return kept;
}

std::vector<NDArray> eval_non_max_suppression(const EvalInput& input) {
  const auto& attrs = input.attrs<NonMaximumSuppressionAttrs>();
  std::vector<NDArray> outs{input.make_output()};
  if (attrs.return_indices) outs.push_back(input.make_output(1));
  const Shape& shape = input.args[0].shape();
  const int64_t boxes = shape[1], size = shape[2];
  dispatch_float(input.args[0].dtype(), [&]<typename T>() {
    const Elements<T> x(input.args[0]);
    for (int64_t i = 0; i < outs[0].num_elements(); ++i) set_element(outs[0].tensor(), i, -1);
    for (int64_t b = 0; b < shape[0]; ++b) {
      const int64_t count = std::clamp<int64_t>(index_at(input.args[1], b), 0, boxes);
      const Kept kept = suppress<T>(input, x, b * boxes * size, size, count);
      int64_t next = b * boxes;
      for (size_t i = 0; i < kept.order.size(); ++i) {
        const int64_t box = b * boxes + kept.order[i];
        if (attrs.return_indices && kept.is_kept[i])
          set_element_int(outs[0].tensor(), next++, element_as_int(input.args[2].tensor(), box));
        if (attrs.return_indices || (!kept.is_kept[i] && attrs.invalid_to_bottom)) continue;
        for (int64_t k = 0; kept.is_kept[i] && k < size; ++k)
          Elements<T>(outs[0]).set(next * size + k, x[box * size + k]);
        ++next;
      }
      if (attrs.return_indices) set_element_int(outs[1].tensor(), b, next - b * boxes);
    }
  });
  return outs;
}

// ---- roi_align

Type relate_roi_align(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ROIAlignAttrs>();
  if (attrs.mode != "avg" && attrs.mode != "max")
    input.fail(fmt::format("mode is '{}', expected avg or max", attrs.mode));
  const TensorType type = relate_regions(input, attrs.pooled_size, attrs.layout);
  if (!type) return {};
  const TensorType data = input.tensor(0);
  const size_t rows = attrs.layout == "NHWC" ? 1 : 2;
  for (const size_t i : {rows, rows + 1}) {
    if (is_int(data->shape[i], 0)) input.fail(fmt::format("the plane of {} is empty", show(data)));
  }
  return type;
}

// Returns the element at (y, x) between four of a channel of a batch; 0 where that lies more than one outside.
template <typename T>
Compute<T> sample(const Elements<T>& data, const Planes& planes, int64_t batch, int64_t channel, Compute<T> y,
                  Compute<T> x) {
  using C = Compute<T>;
  const int64_t height = planes.height, width = planes.width;
  if (!(y >= -1 && y <= static_cast<C>(height) && x >= -1 && x <= static_cast<C>(width))) return 0;
  const auto place = [](C at, int64_t size) { return std::clamp<C>(at, 0, static_cast<C>(size - 1)); };
  const C row = place(y, height), column = place(x, width);
  const auto top = static_cast<int64_t>(row), left = static_cast<int64_t>(column);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const C v = row - static_cast<C>(top), u = column - static_cast<C>(left);
  const auto at = [&](int64_t r, int64_t c) { return data[planes.offset(batch, channel, r * width + c)]; };
  return at(top, left) * ((1 - v) * (1 - u)) + at(top, right) * ((1 - v) * u) + at(bottom, left) * (v * (1 - u)) +
         at(bottom, right) * (v * u);
}

// One axis of one region: its beginning, the length of a bin and the number of samples.
template <typename C>
struct Extent {
  Extent(const ROIAlignAttrs& attrs, C low, C high, int64_t bins) {
    const C scale = static_cast<C>(attrs.spatial_scale), shift = attrs.aligned ? C(0.5) : C{0};
    begin = low * scale - shift;
    const C size = high * scale - shift - begin;
    bin = (attrs.aligned ? size : std::max(size, C{1})) / static_cast<C>(bins);
    samples = attrs.sample_ratio > 0 ? attrs.sample_ratio : convert_number<int64_t>(std::ceil(bin));
  }
  C place(int64_t at, int64_t sample) const {
    return begin + (static_cast<C>(at) + (static_cast<C>(sample) + C(0.5)) / static_cast<C>(samples)) * bin;
  }
  C begin, bin;
  int64_t samples;
};

std::vector<NDArray> eval_roi_align(const EvalInput& input) {
  const auto& attrs = input.attrs<ROIAlignAttrs>();
  const NDArray out = input.make_output();
  check_region_batches(input, "vision.roi_align");
  const Planes from(input.args[0].shape(), attrs.layout), to(out.shape(), attrs.layout);
  dispatch_float(out.dtype(), [&]<typename T>() {
    using C = Compute<T>;
    const Elements<T> data(input.args[0]), rois(input.args[1]), result(out);
    for_each_index({out.shape()[0], to.channels, to.height, to.width}, [&](const Shape& i) {
      const int64_t r = i[0], place = to.offset(r, i[1], i[2] * to.width + i[3]);
      const auto batch = convert_number<int64_t>(rois[r * 5]);
      const Extent<C> rows(attrs, rois[r * 5 + 2], rois[r * 5 + 4], to.height),
          columns(attrs, rois[r * 5 + 1], rois[r * 5 + 3], to.width);
      const auto [fewest, most] = std::minmax(rows.samples, columns.samples);
      if (attrs.aligned && fewest < 1) return result.set(place, 0);
      if (fewest < 1 || most > kMostSamples)
        throw_at(
            input.call.span, "vision.roi_align",
            fmt::format(
                "region {} needs {} samples along a side of one result, not 1 to {}; check its coordinates, or give "
                "a sample_ratio",
                r, fewest < 1 ? fewest : most, kMostSamples));
      input.spend(rows.samples * columns.samples);
      C total = attrs.mode == "max" ? -std::numeric_limits<C>::infinity() : C{0};
      for_each_index({rows.samples, columns.samples}, [&](const Shape& j) {
        const C value = sample<T>(data, from, batch, i[1], rows.place(i[2], j[0]), columns.place(i[3], j[1]));
        total = attrs.mode != "max" ? total + value : value > total || value != value ? value : total;
      });
      result.set(place, attrs.mode == "max" ? total : total / static_cast<C>(rows.samples * columns.samples));
    });
  });
  return {out};
}

}  // namespace

TensorType relate_regions(const RelationInput& input, const Shape& pooled_size, const std::string& layout) {
  const TensorType data = input.tensor(0), rois = input.tensor(1);
  check_sizes(input, "pooled_size", pooled_size, 2, 1);
  check_one_of(input, "layout", layout, {"NCHW", "NHWC"});
  if (!data || !rois) return {};
  if (data->shape.size() != 4 || !data->dtype.is_float())
    input.fail(fmt::format("data must be floats [{}], got {}", fmt::join(layout, ", "), show(data)));
  check_same_dtype(input, data, rois, "rois");
  if (rois->shape.size() != 2 || arith::is_unequal(rois->shape[1], make_int(5)))
    input.fail(fmt::format("rois must be [regions, 5]: batch, left, top, right, bottom; got {}", show(rois)));
  const PrimExpr regions = rois->shape[0], height = make_int(pooled_size[0]), width = make_int(pooled_size[1]);
  return make_tensor_type(layout == "NHWC" ? Array<PrimExpr>{regions, height, width, data->shape[3]}
                                           : Array<PrimExpr>{regions, data->shape[1], height, width},
                          data->dtype);
}

Planes::Planes(const Shape& shape, std::string_view layout) {
  const bool is_last = layout == "NHWC";
  channels = shape[is_last ? 3 : 1], height = shape[is_last ? 1 : 2], width = shape[is_last ? 2 : 3];
  batch_step = channels * height * width;
  channel_step = is_last ? 1 : height * width;
  place_step = is_last ? channels : 1;
}

void check_region_batches(const EvalInput& input, const std::string& op) {
  const NDArray &data = input.args[0], &rois = input.args[1];
  for (int64_t r = 0; r < rois.shape()[0]; ++r) {
    const auto batch = convert_number<int64_t>(element_as_double(rois.tensor(), r * 5));
    if (batch < 0 || batch >= data.shape()[0])
      throw_at(input.call.span, op,
               fmt::format("region {} is of batch {}, and data has {}", r, batch, data.shape()[0]));
  }
}

Expr roi_align(Expr data, Expr rois, ROIAlignAttrs attrs, Span span) {
  return call_with<ROIAlignAttrs>("vision.roi_align", {std::move(data), std::move(rois)}, std::move(span),
                                  [&](ROIAlignAttrs& own) { own = std::move(attrs); });
}

void register_vision_ops() {
  OpBuilder("vision.get_valid_counts",
            "The boxes with a class and a score above the threshold, in front: data f[B, N, E] -> (int32[B] how many, "
            "f[B, N, E], int32[B, N] where they were); -1 behind them.")
      .arg("data", "Tensor", "f[B, N, E]: the boxes, with score and class among their E elements")
      .arg("score_threshold", "Tensor", "f[], optional: score_threshold as a tensor")
      .any_args()
      .attrs<GetValidCountsAttrs>()
      .relation(relate_get_valid_counts)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_get_valid_counts);
  OpBuilder(
      "vision.non_max_suppression",
      "Of the first valid_count boxes, the highest score first, those that overlap no kept one of their class by "
      "iou_threshold or more, at most max_output_size: data f[B, N, E], valid_count int32[B], indices int32[B, N] "
      "-> (int32[B, N] the kept ones' indices, then -1, int32[B, 1] how many), or f[B, N, E] the boxes, -1 where "
      "suppressed.")
      .arg("data", "Tensor", "f[B, N, E]: the boxes, with score, class and 4 coordinates among their E elements")
      .arg("valid_count", "Tensor", "int32[B]: how many boxes of each batch count")
      .arg("indices", "Tensor", "int32[B, N]: the number that the result has for a box that is kept")
      .arg("max_output_size", "Tensor", "int[]: how many boxes are kept at most; below 1: all")
      .arg("iou_threshold", "Tensor", "f[]: boxes that overlap by as much suppress each other")
      .attrs<NonMaximumSuppressionAttrs>()
      .relation(relate_non_max_suppression)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_non_max_suppression);
  OpBuilder("vision.roi_align",
            "Regions resampled to one size: data f[N,C,H,W], rois f[R,5] (batch, left, top, right, bottom) -> "
            "f[R,C,pooled_size]. He et al. 2017; with `aligned`, a region without an extent gives 0.")
      .arg("data", "Tensor", "f[N, C, H, W], or [N, H, W, C] for NHWC: the images")
      .arg("rois", "Tensor", "f[R, 5], of the same dtype: batch, left, top, right and bottom of each region")
      .attrs<ROIAlignAttrs>()
      .relation(relate_roi_align)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_roi_align);
}

}  // namespace headrace::ops
