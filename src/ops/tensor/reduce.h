// Reductions over axes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ReduceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReduceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReduceAttrs>& f);
  std::optional<Shape> axis;
  bool keepdims = false;
  bool exclude = false;
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

// Attributes of collapse_sum_to, whose shape may instead be an argument, an int tensor of one dimension.
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
// Makes argmax or argmin: the index along the axis, or into the flattened reduced axes, as int32 or int64.
Expr arg_reduce(std::string_view op, Expr data, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
                bool select_last_index = false, DataType dtype = DataType::int_(32), Span span = {});
// Sums over the axes along which `shape` was broadcast to the data's.
Expr collapse_sum_to(Expr data, Shape shape, Span span = {});
Expr variance(Expr data, Expr mean, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
              bool unbiased = false, Span span = {});

}  // namespace headrace::ops
