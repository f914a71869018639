// Normalisations.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct BatchNormAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BatchNormAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BatchNormAttrs>& f) {
    f.field<&BatchNormAttrs::axis>("axis", {.default_value = 1, .has_default = true, .doc = "the channels"})
        .field<&BatchNormAttrs::epsilon>("epsilon",
                                         {.default_value = 1e-5, .has_default = true, .doc = "added to the variance"})
        .field<&BatchNormAttrs::momentum>(
            "momentum", {.default_value = 0.1, .has_default = true, .doc = "of the moving statistics, when training"})
        .field<&BatchNormAttrs::center>("center", {.default_value = true, .has_default = true, .doc = "add beta"})
        .field<&BatchNormAttrs::scale>("scale",
                                       {.default_value = true, .has_default = true, .doc = "multiply by gamma"});
  }
  int64_t axis = 1;
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool center = true;
  bool scale = true;
};

struct LayerNormAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.LayerNormAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<LayerNormAttrs>& f) {
    f.field<&LayerNormAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the normalised axis"})
        .field<&LayerNormAttrs::epsilon>("epsilon",
                                         {.default_value = 1e-5, .has_default = true, .doc = "added to the variance"})
        .field<&LayerNormAttrs::center>("center", {.default_value = true, .has_default = true, .doc = "add beta"})
        .field<&LayerNormAttrs::scale>("scale",
                                       {.default_value = true, .has_default = true, .doc = "multiply by gamma"});
  }
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool center = true;
  bool scale = true;
};

struct SoftmaxAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SoftmaxAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SoftmaxAttrs>& f) {
    f.field<&SoftmaxAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the axis that sums to 1"});
  }
  int64_t axis = -1;
};

struct LRNAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.LRNAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<LRNAttrs>& f) {
    f.field<&LRNAttrs::size>("size", {.default_value = 5, .has_default = true, .doc = "channels of the window"})
        .field<&LRNAttrs::axis>("axis", {.default_value = 1, .has_default = true, .doc = "the channels"})
        .field<&LRNAttrs::bias>("bias", {.default_value = 2.0, .has_default = true, .doc = "added to the sum"})
        .field<&LRNAttrs::alpha>("alpha", {.default_value = 1e-5, .has_default = true, .doc = "scale of the sum"})
        .field<&LRNAttrs::beta>("beta", {.default_value = 0.75, .has_default = true, .doc = "exponent"});
  }
  int64_t size = 5;
  int64_t axis = 1;
  double bias = 2;
  double alpha = 1e-5;
  double beta = 0.75;
};

// A tuple: the normalised data, the mean, the variance.
Expr batch_norm(Expr data, Expr gamma, Expr beta, Expr moving_mean, Expr moving_var, BatchNormAttrs attrs = {},
                Span span = {});
Expr layer_norm(Expr data, Expr gamma, Expr beta, LayerNormAttrs attrs = {}, Span span = {});
Expr softmax(Expr data, int64_t axis = -1, Span span = {});
Expr log_softmax(Expr data, int64_t axis = -1, Span span = {});
Expr lrn(Expr data, LRNAttrs attrs = {}, Span span = {});

}  // namespace headrace::ops
