// Sorting and searching along an axis: sort, argsort, topk, searchsorted.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Attributes of argsort and of sort, which ignores dtype.
struct ArgsortAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ArgsortAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ArgsortAttrs>& f);
  int64_t axis = -1;
  bool is_ascend = true;
  DataType dtype = DataType::int_(32);
};

struct TopKAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TopkAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TopKAttrs>& f);
  int64_t k = 1;
  int64_t axis = -1;
  std::string ret_type = "both";
  bool is_ascend = false;
  DataType dtype = DataType::int_(32);
};

struct SearchSortedAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SearchSortedAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SearchSortedAttrs>& f);
  bool right = false;
  DataType dtype = DataType::int_(32);
};

Expr argsort(Expr data, int64_t axis = -1, bool is_ascend = true, DataType dtype = DataType::int_(32), Span span = {});
// Returns a tuple of values and indices, or with ret_type "values" or "indices" one of them.
Expr topk(Expr data, int64_t k, int64_t axis = -1, std::string ret_type = "both", bool is_ascend = false,
          DataType dtype = DataType::int_(32), Span span = {});

}  // namespace headrace::ops
