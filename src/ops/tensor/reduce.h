// Reductions over axes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ReduceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReduceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReduceAttrs>& f);
  std::optional<Shape> axis;  // nothing: all axes
  bool keepdims = false;
  bool exclude = false;  // reduce the axes that are not in `axis`
};

struct ArgReduceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ArgReduceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ArgReduceAttrs>& f);
  std::optional<Shape> axis;
  bool keepdims = false;
  bool select_last_index = false;
  bool exclude = false;
  DataType dtype = DataType::int_(32);
};

// Attributes of collapse_sum_to. A call of two arguments takes the shape from the second one, an int tensor of one
// dimension, and ignores `shape`.
struct CollapseSumAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.CollapseSumAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<CollapseSumAttrs>& f);
  Shape shape;
};

struct VarianceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.VarianceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<VarianceAttrs>& f);
  std::optional<Shape> axis;
  bool keepdims = false;
  bool exclude = false;
  bool unbiased = false;
};

// Makes sum, mean, max, min, prod, all or any: reduce("sum", x, {{1, 2}}, true).
Expr reduce(std::string_view op, Expr data, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
            bool exclude = false, Span span = {});
// Makes argmax or argmin: the index along the axis as int32 or int64; where several axes are reduced, the index into
// them as if they were flattened.
Expr arg_reduce(std::string_view op, Expr data, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
                bool select_last_index = false, DataType dtype = DataType::int_(32), Span span = {});
// Sums over the axes along which a tensor of `shape` would be broadcast to the shape of `data`: the gradient of
// broadcast_to.
Expr collapse_sum_to(Expr data, Shape shape, Span span = {});
// Returns the mean of (data - mean)^2 over the axes; with `unbiased`, the sum is divided by the count - 1.
Expr variance(Expr data, Expr mean, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
              bool unbiased = false, Span span = {});

}  // namespace headrace::ops
