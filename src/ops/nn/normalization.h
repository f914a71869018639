// nn.batch_norm, nn.layer_norm, nn.softmax, nn.fast_softmax, nn.log_softmax and nn.lrn.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct BatchNormAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.BatchNormAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<BatchNormAttrs>& f);
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
  static void fields(FieldList<LayerNormAttrs>& f);
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool center = true;
  bool scale = true;
};

struct SoftmaxAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SoftmaxAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SoftmaxAttrs>& f);
  int64_t axis = -1;
};

struct LRNAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.LRNAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<LRNAttrs>& f);
  int64_t size = 5;
  int64_t axis = 1;
  double bias = 2;
  double alpha = 1e-4;
  double beta = 0.75;
};

// Returns the type of argument 0, which must be floating point; null while it is not known.
TensorType float_data(const RelationInput& input);

// Returns a tuple: the normalised data, the mean, the variance.
Expr batch_norm(Expr data, Expr gamma, Expr beta, Expr moving_mean, Expr moving_var, BatchNormAttrs attrs = {},
                Span span = {});
Expr layer_norm(Expr data, Expr gamma, Expr beta, LayerNormAttrs attrs = {}, Span span = {});
Expr softmax(Expr data, int64_t axis = -1, Span span = {});
Expr log_softmax(Expr data, int64_t axis = -1, Span span = {});
Expr lrn(Expr data, LRNAttrs attrs = {}, Span span = {});

}  // namespace headrace::ops
