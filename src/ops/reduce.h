// Reductions over axes.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ReduceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ReduceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ReduceAttrs>& f) {
    f.field<&ReduceAttrs::axis>("axis", {.optional = true,
                                         .default_value = Value(),
                                         .has_default = true,
                                         .doc = "axes to reduce, negative ones from the end; None: all"})
        .field<&ReduceAttrs::keepdims>(
            "keepdims", {.default_value = false, .has_default = true, .doc = "keep reduced axes with size 1"})
        .field<&ReduceAttrs::exclude>(
            "exclude", {.default_value = false, .has_default = true, .doc = "reduce the axes that are not named"});
  }
  std::optional<Shape> axis;
  bool keepdims = false;
  bool exclude = false;
};

struct ArgReduceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ArgReduceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ArgReduceAttrs>& f) {
    f.field<&ArgReduceAttrs::axis>("axis", {.optional = true,
                                            .default_value = Value(),
                                            .has_default = true,
                                            .doc = "axes to reduce, negative ones from the end; None: all"})
        .field<&ArgReduceAttrs::keepdims>(
            "keepdims", {.default_value = false, .has_default = true, .doc = "keep reduced axes with size 1"})
        .field<&ArgReduceAttrs::select_last_index>(
            "select_last_index",
            {.default_value = false, .has_default = true, .doc = "of equal elements, name the last"})
        .field<&ArgReduceAttrs::exclude>(
            "exclude", {.default_value = false, .has_default = true, .doc = "reduce the axes that are not named"});
  }
  std::optional<Shape> axis;
  bool keepdims = false;
  bool select_last_index = false;
  bool exclude = false;
};

struct VarianceAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.VarianceAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<VarianceAttrs>& f) {
    f.field<&VarianceAttrs::axis>("axis", {.optional = true,
                                           .default_value = Value(),
                                           .has_default = true,
                                           .doc = "axes to reduce, negative ones from the end; None: all"})
        .field<&VarianceAttrs::keepdims>(
            "keepdims", {.default_value = false, .has_default = true, .doc = "keep reduced axes with size 1"})
        .field<&VarianceAttrs::exclude>(
            "exclude", {.default_value = false, .has_default = true, .doc = "reduce the axes that are not named"})
        .field<&VarianceAttrs::unbiased>(
            "unbiased", {.default_value = false, .has_default = true, .doc = "divide by N - 1 in place of N"});
  }
  std::optional<Shape> axis;
  bool keepdims = false;
  bool exclude = false;
  bool unbiased = false;
};

// sum, mean, max, min, prod, all, any: reduce("sum", x, {{1, 2}}, true).
Expr reduce(std::string_view op, Expr data, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
            bool exclude = false, Span span = {});
// argmax, argmin: the index along the axis, or into the flattened reduced axes.
Expr arg_reduce(std::string_view op, Expr data, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
                bool select_last_index = false, Span span = {});
Expr variance(Expr data, Expr mean, std::optional<Shape> axis = std::nullopt, bool keepdims = false,
              bool unbiased = false, Span span = {});

}  // namespace headrace::ops
