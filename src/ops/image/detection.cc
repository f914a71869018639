#include "ops/image/detection.h"

#include <algorithm>
#include <cmath>

#include "arith/canonical.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/window.h"
#include "ops/families.h"
#include "ops/image/vision.h"
#include "relay/expr.h"

namespace headrace::ops {

void MultiBoxPriorAttrs::fields(FieldList<MultiBoxPriorAttrs>& f) {
  using A = MultiBoxPriorAttrs;
  f.field<&A::sizes>("sizes", {.default_value = Array<double>{1.0},
                               .has_default = true,
                               .doc = "heights of square boxes, as parts of the image"})
      .field<&A::ratios>("ratios", {.default_value = Array<double>{1.0},
                                    .has_default = true,
                                    .doc = "width to height of more boxes of the first size; the first is not used"})
      .field<&A::steps>("steps", {.default_value = Array<double>{-1.0, -1.0},
                                  .has_default = true,
                                  .doc = "between places, down and across, as parts of the image; not above 0: one "
                                         "place an element"})
      .field<&A::offsets>("offsets", {.default_value = Array<double>{0.5, 0.5},
                                      .has_default = true,
                                      .doc = "the offset of the first place, in steps"})
      .field<&A::clip>("clip", {.default_value = false, .has_default = true, .doc = "cut boxes at the image's edges"});
}

void MultiBoxTransformLocAttrs::fields(FieldList<MultiBoxTransformLocAttrs>& f) {
  using A = MultiBoxTransformLocAttrs;
  f.field<&A::clip>("clip", {.default_value = true, .has_default = true, .doc = "cut boxes at the image's edges"})
      .field<&A::threshold>("threshold",
                            {.default_value = 0.01, .has_default = true, .doc = "the least score of a class"})
      .field<&A::variances>("variances", {.default_value = Array<double>{0.1, 0.1, 0.2, 0.2},
                                          .has_default = true,
                                          .doc = "factors of the predicted x, y, width and height"})
      .field<&A::keep_background>("keep_background",
                                  {.default_value = false,
                                   .has_default = true,
                                   .doc = "class 0 is treated as the others are, and no box is dropped"});
}

void ROIPoolAttrs::fields(FieldList<ROIPoolAttrs>& f) {
  using A = ROIPoolAttrs;
  f.field<&A::pooled_size>("pooled_size", {.doc = "height and width of the result"})
      .field<&A::spatial_scale>("spatial_scale", {.doc = "the factor from the regions' coordinates to the data's"})
      .field<&A::layout>("layout", {.default_value = "NCHW", .has_default = true, .doc = "NCHW"});
}

void YoloReorgAttrs::fields(FieldList<YoloReorgAttrs>& f) {
  f.field<&YoloReorgAttrs::stride>("stride", {.default_value = 1, .has_default = true, .doc = "height of a block"});
}

std::vector<PriorBox> prior_boxes(const MultiBoxPriorAttrs& attrs, int64_t height, int64_t width) {
  const double aspect = static_cast<double>(height) / static_cast<double>(width);
  std::vector<PriorBox> boxes;
  for (const double size : attrs.sizes) boxes.push_back({size / 2, size * aspect / 2});
  for (size_t k = 1; k < attrs.ratios.size(); ++k) {
    const double root = std::sqrt(attrs.ratios[k]), size = attrs.sizes[0];
    boxes.push_back({size / root / 2, size * aspect * root / 2});
  }
  return boxes;
}

double prior_step(const MultiBoxPriorAttrs& attrs, size_t axis, int64_t size) {
  return attrs.steps[axis] > 0 ? attrs.steps[axis] : 1 / static_cast<double>(size);
}

namespace {

// ---- multibox_prior

void check_numbers(const RelationInput& input, std::string_view name, const Array<double>& values, size_t count) {
  if (values.size() != count) input.fail(fmt::format("{} must have {} numbers, got {}", name, count, values.size()));
}

void check_above_zero(const RelationInput& input, std::string_view name, const Array<double>& values) {
  if (values.empty()) input.fail(fmt::format("{} is empty", name));
  for (const double value : values) {
    if (!(value > 0)) input.fail(fmt::format("{} must be above 0, got {}", name, value));
  }
}

Type relate_multibox_prior(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<MultiBoxPriorAttrs>();
  check_above_zero(input, "sizes", attrs.sizes);
  check_above_zero(input, "ratios", attrs.ratios);
  check_numbers(input, "steps", attrs.steps, 2);
  check_numbers(input, "offsets", attrs.offsets, 2);
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 4 || !data->dtype.is_float())
    input.fail(fmt::format("data must be floats [N, C, H, W], got {}", show(data)));
  const auto boxes = static_cast<int64_t>(attrs.sizes.size() + attrs.ratios.size()) - 1;
  return make_tensor_type(
      Array<PrimExpr>{make_int(1), arith::product({data->shape[2], data->shape[3], make_int(boxes)}), make_int(4)},
      data->dtype);
}

std::vector<NDArray> eval_multibox_prior(const EvalInput& input) {
  const auto& attrs = input.attrs<MultiBoxPriorAttrs>();
  const NDArray out = input.make_output();
  const int64_t height = input.args[0].shape()[2], width = input.args[0].shape()[3];
  if (out.num_elements() == 0) return {out};
  const std::vector<PriorBox> boxes = prior_boxes(attrs, height, width);
  int64_t next = 0;
  const auto add = [&](double edge) {
    set_element(out.tensor(), next++, attrs.clip ? std::min(std::max(edge, 0.0), 1.0) : edge);
  };
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      const double y = (static_cast<double>(i) + attrs.offsets[0]) * prior_step(attrs, 0, height);
      const double x = (static_cast<double>(j) + attrs.offsets[1]) * prior_step(attrs, 1, width);
      for (const PriorBox& box : boxes) {
        add(x - box.half_width);
        add(y - box.half_height);
        add(x + box.half_width);
        add(y + box.half_height);
      }
    }
  }
  return {out};
}

// ---- multibox_transform_loc

Type relate_multibox_transform_loc(const RelationInput& input) {
  check_numbers(input, "variances", input.call.attrs_as<MultiBoxTransformLocAttrs>().variances, 4);
  const TensorType scores = input.tensor(0), places = input.tensor(1), anchors = input.tensor(2);
  if (!scores || !places || !anchors) return {};
  if (scores->shape.size() != 3 || !scores->dtype.is_float())
    input.fail(fmt::format("cls_prob must be floats [N, classes, boxes], got {}", show(scores)));
  check_same_dtype(input, scores, places, "loc_pred");
  check_same_dtype(input, scores, anchors, "anchor");
  const PrimExpr &batch = scores->shape[0], &boxes = scores->shape[2];
  if (places->shape.size() != 2 || arith::is_unequal(places->shape[0], batch) ||
      arith::is_unequal(places->shape[1], arith::product({boxes, make_int(4)})))
    input.fail(fmt::format("loc_pred must be [N, 4 * boxes] for {}, got {}", show(scores), show(places)));
  if (anchors->shape.size() != 3 || arith::is_unequal(anchors->shape[0], make_int(1)) ||
      arith::is_unequal(anchors->shape[1], boxes) || arith::is_unequal(anchors->shape[2], make_int(4)))
    input.fail(fmt::format("anchor must be [1, boxes, 4] for {}, got {}", show(scores), show(anchors)));
  return make_tuple_type({make_tensor_type(Array<PrimExpr>{batch, boxes, make_int(6)}, scores->dtype),
                          make_tensor_type(Array<PrimExpr>{batch}, DataType::int_(32))});
}

// The best class of a box; 0 (the background) where none reaches the threshold.
struct Best {
  int64_t id = 0;
  double score = -1;
};

Best best_class(const MultiBoxTransformLocAttrs& attrs, const NDArray& scores, int64_t batch, int64_t box) {
  const int64_t classes = scores.shape()[1], boxes = scores.shape()[2];
  Best best;
  for (int64_t k = attrs.keep_background ? 0 : 1; k < classes; ++k) {
    const double score = element_as_double(scores.tensor(), (batch * classes + k) * boxes + box);
    if (score > best.score) best = {k, score};
  }
  if (best.score < attrs.threshold) best.id = 0;
  return best;
}

std::vector<NDArray> eval_multibox_transform_loc(const EvalInput& input) {
  const auto& attrs = input.attrs<MultiBoxTransformLocAttrs>();
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1)};
  const NDArray &scores = input.args[0], &places = input.args[1], &anchors = input.args[2];
  const int64_t boxes = scores.shape()[2];
  for (int64_t i = 0; i < outs[0].num_elements(); ++i) set_element(outs[0].tensor(), i, -1);
  for (int64_t b = 0; b < scores.shape()[0]; ++b) {
    int64_t count = 0;
    for (int64_t j = 0; j < boxes; ++j) {
      const Best best = best_class(attrs, scores, b, j);
      if (best.id == 0 && !attrs.keep_background) continue;
      const int64_t to = (b * boxes + count++) * 6;
      set_element(outs[0].tensor(), to, static_cast<double>(best.id - (attrs.keep_background ? 0 : 1)));
      set_element(outs[0].tensor(), to + 1, best.score);
      for (int64_t axis = 0; axis < 2; ++axis) {
        const auto a = static_cast<size_t>(axis);
        const double low = element_as_double(anchors.tensor(), j * 4 + axis),
                     high = element_as_double(anchors.tensor(), j * 4 + axis + 2);
        const auto place = [&](int64_t k) { return element_as_double(places.tensor(), (b * boxes + j) * 4 + k); };
        const double middle = place(axis) * attrs.variances[a] * (high - low) + (low + high) / 2;
        const double half = std::exp(place(axis + 2) * attrs.variances[a + 2]) * (high - low) / 2;
        const auto cut = [&](double x) { return attrs.clip ? std::min(std::max(x, 0.0), 1.0) : x; };
        set_element(outs[0].tensor(), to + 2 + axis, cut(middle - half));
        set_element(outs[0].tensor(), to + 4 + axis, cut(middle + half));
      }
    }
    set_element_int(outs[1].tensor(), b, count);
  }
  return outs;
}

// ---- roi_pool

Type relate_roi_pool(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ROIPoolAttrs>();
  check_one_of(input, "layout", attrs.layout, {"NCHW"});
  return relate_regions(input, attrs.pooled_size, attrs.layout);
}

// Regions reach over elements: both edges are rounded, halves away from zero, and kept near the plane.
int64_t rounded_edge(double at) {
  const double rounded = at < 0 ? std::ceil(at - 0.5) : std::floor(at + 0.5);
  return convert_number<int64_t>(std::min(std::max(rounded, -kFarthestEdge), kFarthestEdge));
}

// The elements [begin, end) of bin `i` of `bins` along an axis.
struct Bin {
  int64_t begin, end;
};
Bin pool_bin(int64_t low, int64_t high, int64_t i, int64_t bins, int64_t size) {
  const int64_t length = std::max<int64_t>(high - low + 1, 1);
  const auto inside = [&](int64_t at) { return std::clamp<int64_t>(at + low, 0, size); };
  return {inside(i * length / bins), inside(((i + 1) * length + bins - 1) / bins)};
}

std::vector<NDArray> eval_roi_pool(const EvalInput& input) {
  const auto& attrs = input.attrs<ROIPoolAttrs>();
  const NDArray &data = input.args[0], &rois = input.args[1], out = input.make_output();
  const Shape &from = data.shape(), &to = out.shape();
  check_region_batches(input, "vision.roi_pool");
  int64_t next = 0;
  for_each_index(to, [&](const Shape& i) {
    const auto region = [&](int64_t k) { return element_as_double(rois.tensor(), i[0] * 5 + k); };
    const auto batch = convert_number<int64_t>(region(0));
    const auto edge = [&](int64_t k) { return rounded_edge(region(k) * attrs.spatial_scale); };
    const Bin rows = pool_bin(edge(2), edge(4), i[2], to[2], from[2]),
              columns = pool_bin(edge(1), edge(3), i[3], to[3], from[3]);
    const bool is_empty = rows.begin >= rows.end || columns.begin >= columns.end;
    if (!is_empty) input.spend((rows.end - rows.begin) * (columns.end - columns.begin));
    double most = is_empty ? 0 : -std::numeric_limits<double>::infinity();
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const double own = element_as_double(data.tensor(), ((batch * from[1] + i[1]) * from[2] + y) * from[3] + x);
        most = own > most || own != own ? own : most;
      }
    }
    set_element(out.tensor(), next++, most);
  });
  return {out};
}

// ---- yolo_reorg

Type relate_yolo_reorg(const RelationInput& input) {
  const int64_t stride = input.call.attrs_as<YoloReorgAttrs>().stride;
  if (stride < 1 || stride > UINT16_MAX) input.fail(fmt::format("stride is {}, expected 1 or more", stride));
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 4) input.fail(fmt::format("data must be [N, C, H, W], got {}", show(data)));
  if (const auto channels = as_int(data->shape[1]); channels && *channels % (stride * stride) != 0)
    input.fail(fmt::format("axis 1 of {} must be a multiple of {}", show(data), stride * stride));
  const auto axis = [&](size_t i) { return fmt::format("axis {} of {}", i, show(data)); };
  return make_tensor_type(Array<PrimExpr>{data->shape[0], result_dim(input, data->shape[1] * (stride * stride)),
                                          divided_dim(input, data->shape[2], stride, axis(2)),
                                          divided_dim(input, data->shape[3], stride, axis(3))},
                          data->dtype);
}

std::vector<NDArray> eval_yolo_reorg(const EvalInput& input) {
  const int64_t s = input.attrs<YoloReorgAttrs>().stride;
  const NDArray out = input.make_output();
  const Shape& x = input.args[0].shape();
  const int64_t channels = x[1], height = x[2], width = x[3], deep = channels / (s * s);
  int64_t place = 0;
  move_elements(input.args[0], out, [&](const Shape&) {
    const int64_t at = place++, j = at % width, i = at / width % height, k = at / (width * height) % channels,
                  n = at / (width * height * channels);
    const int64_t shift = k / deep, row = i * s + shift / s, column = j * s + shift % s;
    return ((n * deep + k % deep) * (height * s) + row) * (width * s) + column;
  });
  return {out};
}

}  // namespace

Expr roi_pool(Expr data, Expr rois, Shape pooled_size, double spatial_scale, Span span) {
  return call_with<ROIPoolAttrs>("vision.roi_pool", {std::move(data), std::move(rois)}, std::move(span),
                                 [&](ROIPoolAttrs& attrs) {
                                   attrs.pooled_size = std::move(pooled_size);
                                   attrs.spatial_scale = spatial_scale;
                                 });
}

void register_detection_ops() {
  OpBuilder("vision.multibox_prior",
            "The boxes that a detector begins with, around every element of a plane: data f[N,C,H,W] -> f[1, H * W * "
            "(sizes + ratios - 1), 4] (left, top, right, bottom, as parts of the image). Liu et al. 2016.")
      .arg("data", "Tensor", "f[N, C, H, W]: a plane with boxes around each place; only its type counts")
      .attrs<MultiBoxPriorAttrs>()
      .relation(relate_multibox_prior)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_multibox_prior);
  OpBuilder("vision.multibox_transform_loc",
            "The boxes that a detector predicts, those with a class in front: cls_prob f[N,K,B], loc_pred f[N, 4 * B], "
            "anchor f[1,B,4] -> (f[N,B,6] class without the background, score, left, top, right, bottom, -1 behind "
            "them; int32[N] how many).")
      .arg("cls_prob", "Tensor", "f[N, K, B]: the score of each box in each class")
      .arg("loc_pred", "Tensor", "f[N, 4 * B]: how far the boxes lie from their anchors, and how much larger they are")
      .arg("anchor", "Tensor", "f[1, B, 4]: the anchors: left, top, right and bottom")
      .attrs<MultiBoxTransformLocAttrs>()
      .relation(relate_multibox_transform_loc)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_multibox_transform_loc);
  OpBuilder("vision.roi_pool",
            "The greatest elements of regions' bins: data f[N,C,H,W], rois f[R,5] (batch, left, top, right, bottom) -> "
            "f[R,C,pooled_size]; an empty bin gives 0. Girshick 2015.")
      .arg("data", "Tensor", "f[N, C, H, W]: the images")
      .arg("rois", "Tensor", "f[R, 5], of the same dtype: batch, left, top, right and bottom of each region")
      .attrs<ROIPoolAttrs>()
      .relation(relate_roi_pool)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_roi_pool);
  OpBuilder op("vision.yolo_reorg",
               "Blocks of a plane to channels, as Darknet's reorg layer does it: x[N,C,H,W] -> [N, C * s * s, H / s, W "
               "/ s]. It takes the C channels for C / (s * s) of planes s times as high and wide, whose blocks become "
               "the channels.");
  op.arg("data", "Tensor", "T[N, C, H, W]: the tensor to rearrange").attrs<YoloReorgAttrs>();
  op.level(5);
  moving(op, relate_yolo_reorg, eval_yolo_reorg);
}

}  // namespace headrace::ops
