// Ops that join tensors and cut them, of any dtype.
#pragma once

#include <variant>

#include "ops/register.h"

namespace headrace {

// A number of equal parts, or the positions where parts after the first begin. Numbers with a suffix in a text (3i64),
// alone or in lists, are stored as plain integers, so that equal attributes compare equal.
using Sections = std::variant<int64_t, Shape>;

template <>
struct ValueTraits<Sections> {
  static Value to(const Sections& sections);
  static bool matches(const RawValue& raw);
  static Sections from(const RawValue& raw);
  static std::string name() { return "int or shape"; }
};

namespace ops {

struct ConcatenateAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ConcatenateAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ConcatenateAttrs>& f);
  int64_t axis = 0;
};

struct StackAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.StackAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<StackAttrs>& f);
  int64_t axis = 0;
};

struct SplitAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SplitAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SplitAttrs>& f);
  Sections indices_or_sections;
  int64_t axis = 0;
};

Expr concatenate(Array<Expr> items, int64_t axis = 0, Span span = {});
// Returns the axis of a typed call of concatenate, from 0; nothing for other calls.
std::optional<size_t> concatenated_axis(const relay::CallNode& call);
Expr stack(Array<Expr> items, int64_t axis = 0, Span span = {});
// Returns a tuple of the parts.
Expr split(Expr data, int64_t sections, int64_t axis = 0, Span span = {});
Expr split(Expr data, Shape begins, int64_t axis = 0, Span span = {});

}  // namespace ops

}  // namespace headrace
