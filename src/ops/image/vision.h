// Boxes: vision.get_valid_counts, vision.non_max_suppression; regions: vision.roi_align.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct GetValidCountsAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.GetValidCountsAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<GetValidCountsAttrs>& f);
  double score_threshold = 0;  // where it is not an argument
  int64_t id_index = 0;
  int64_t score_index = 1;
};

struct NonMaximumSuppressionAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.NonMaximumSuppressionAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<NonMaximumSuppressionAttrs>& f);
  bool force_suppress = false;
  int64_t top_k = -1;
  int64_t coord_start = 2;
  int64_t score_index = 1;
  int64_t id_index = 0;
  bool return_indices = true;
  bool invalid_to_bottom = false;
};

struct ROIAlignAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ROIAlignAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ROIAlignAttrs>& f);
  Shape pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  std::string layout = "NCHW";
  std::string mode = "avg";
  bool aligned = false;
};

// Returns the result type of an op over regions: data f[N, C, H, W], rois f[R, 5] -> f[R, C, pooled_size], or both with
// the channels last; null while a type is not known.
TensorType relate_regions(const RelationInput& input, const Shape& pooled_size, const std::string& layout);

// The offsets of elements in a dense NCHW or NHWC tensor, for eval and kernels.
struct Planes {
  Planes(const Shape& shape, std::string_view layout);
  // Returns the element that lies `place` (row * width + column) into a plane.
  template <typename I>
  I offset(const I& batch, const I& channel, const I& place) const {
    return batch * batch_step + channel * channel_step + place * place_step;
  }
  int64_t channels, height, width, batch_step, channel_step, place_step;
};
// Checks the batch indices of regions, rois f[R, 5]. UserError for an index that the data does not have, even where the
// result is empty.
void check_region_batches(const EvalInput& input, const std::string& op);

Expr roi_align(Expr data, Expr rois, ROIAlignAttrs attrs, Span span = {});

// The most samples that roi_align takes along an axis of a bin; a region that would need more is an error.
inline constexpr int64_t kMostSamples = 4096;

}  // namespace headrace::ops
