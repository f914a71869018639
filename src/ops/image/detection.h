// Ops that turn feature maps into detections: vision.multibox_prior, multibox_transform_loc, roi_pool, yolo_reorg.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct MultiBoxPriorAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MultiBoxPriorAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MultiBoxPriorAttrs>& f);
  Array<double> sizes{1.0};
  Array<double> ratios{1.0};
  Array<double> steps{-1.0, -1.0};
  Array<double> offsets{0.5, 0.5};
  bool clip = false;
};

struct MultiBoxTransformLocAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MultiBoxTransformLocAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MultiBoxTransformLocAttrs>& f);
  bool clip = true;
  double threshold = 0.01;
  Array<double> variances{0.1, 0.1, 0.2, 0.2};
  bool keep_background = false;
};

struct ROIPoolAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ROIPoolAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ROIPoolAttrs>& f);
  Shape pooled_size;
  double spatial_scale = 1;
  std::string layout = "NCHW";
};

struct YoloReorgAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.YoloReorgAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<YoloReorgAttrs>& f);
  int64_t stride = 1;
};

// One of the boxes that multibox_prior lays around each place: half its height and width, in a plane of that shape.
struct PriorBox {
  double half_height, half_width;
};
std::vector<PriorBox> prior_boxes(const MultiBoxPriorAttrs& attrs, int64_t height, int64_t width);
// Returns how far apart places are along axis 0 or 1 of a plane, `size` long.
double prior_step(const MultiBoxPriorAttrs& attrs, size_t axis, int64_t size);

// The greatest distance from the plane's corner at which roi_pool considers edges of regions.
inline constexpr double kFarthestEdge = 1e9;

Expr roi_pool(Expr data, Expr rois, Shape pooled_size, double spatial_scale, Span span = {});

}  // namespace headrace::ops
