// Str and Bytes: immutable byte strings as objects. In node fields use std::string; these carry strings in values.
#pragma once

#include "object/reflect.h"

namespace headrace {

// Layout: header, then pointer and size, as the C ABI wants it.
struct StrObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Str";
  static constexpr int32_t static_type_index = type_index::kStr;
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  explicit StrObj(std::string text) : data(std::move(text)) { bytes = {data.data(), data.size()}; }
  StrObj(const StrObj&) = delete;  // `bytes` points into the object itself
  StrObj& operator=(const StrObj&) = delete;
  StrBytes bytes;
  std::string data;
};

struct BytesObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Bytes";
  static constexpr int32_t static_type_index = type_index::kBytes;
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  explicit BytesObj(std::string text) : data(std::move(text)) { bytes = {data.data(), data.size()}; }
  BytesObj(const BytesObj&) = delete;
  BytesObj& operator=(const BytesObj&) = delete;
  StrBytes bytes;
  std::string data;
};

// Bytes that are not text, as a value.
struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

bool is_string(const RawValue& raw);  // true for all three kinds
bool is_bytes(const RawValue& raw);

template <>
struct ValueTraits<Bytes> {
  static Value to(Bytes value) { return Value(make_object<BytesObj>(std::move(value.data))); }
  static bool matches(const RawValue& raw) { return is_bytes(raw); }
  static Bytes from(const RawValue& raw) { return {std::string(string_of(raw))}; }
  static std::string name() { return "bytes"; }
};

}  // namespace headrace
