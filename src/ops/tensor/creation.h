// Ops that make tensors: full, zeros, ones, full_like, arange; and the shape of one.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Attributes of full, zeros and ones. The shape may instead be an argument, an int tensor of one dimension.
struct InitOpAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.InitOpAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<InitOpAttrs>& f);
  Shape shape;
  DataType dtype;
};

struct ArangeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ArangeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ArangeAttrs>& f);
  DataType dtype;
};

// Attributes of shape_of and ndarray_size.
struct ShapeOfAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ShapeOfAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ShapeOfAttrs>& f);
  DataType dtype = DataType::int_(32);
};

Expr full(Expr fill_value, Shape shape, DataType dtype, Span span = {});
Expr full(Expr fill_value, Expr shape, DataType dtype, Span span = {});
Expr zeros(Shape shape, DataType dtype, Span span = {});
Expr ones(Shape shape, DataType dtype, Span span = {});
Expr full_like(Expr data, Expr fill_value, Span span = {});
// Makes start, start + step, ... before stop, from three scalars of dtype.
Expr arange(Expr start, Expr stop, Expr step, DataType dtype, Span span = {});
// Make the sizes of a tensor, and the number of its elements. As in Relay, they are int32 unless `dtype` says else.
Expr shape_of(Expr data, DataType dtype = DataType::int_(32), Span span = {});
Expr ndarray_size(Expr data, DataType dtype = DataType::int_(32), Span span = {});

}  // namespace headrace::ops
