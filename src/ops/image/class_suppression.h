// Suppression of boxes class by class: vision.all_class_non_max_suppression.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct AllClassNonMaximumSuppressionAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.AllClassNonMaximumSuppressionAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<AllClassNonMaximumSuppressionAttrs>& f);
  std::string output_format = "onnx";
};

// Returns a tuple of the rows, with room for every box of every class, and their number; see the op's doc.
Expr all_class_non_max_suppression(Expr boxes, Expr scores, Expr max_output_boxes_per_class, Expr iou_threshold,
                                   Expr score_threshold, Span span = {});

}  // namespace headrace::ops
