// ShapeTuple: a tuple of integers as an object; and ADT: a tagged tuple of values.
#pragma once

#include "object/reflect.h"

namespace headrace {

// Layout: header, then pointer and length, as the C ABI wants it.
struct ShapeObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.Shape";
  static constexpr int32_t static_type_index = type_index::kShape;
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  explicit ShapeObj(std::vector<int64_t> dims) : storage(std::move(dims)) {
    data = storage.data();
    size = storage.size();
  }
  ShapeObj(const ShapeObj&) = delete;  // `data` points into the object itself
  ShapeObj& operator=(const ShapeObj&) = delete;
  static bool content_equal(const ShapeObj& a, const ShapeObj& b);
  static uint64_t content_hash(const ShapeObj& shape);
  static std::string content_text(const ShapeObj& shape);
  const int64_t* data;
  size_t size;
  std::vector<int64_t> storage;
};

// A shape of known integers, as node fields and C++ code hold it.
using Shape = std::vector<int64_t>;

template <>
struct ValueTraits<Shape> {
  static Value to(Shape shape) { return Value(make_object<ShapeObj>(std::move(shape))); }
  // Also accepts an Array of ints, which Python and old texts give.
  static bool matches(const RawValue& raw);
  static Shape from(const RawValue& raw);
  static std::string name() { return "shape"; }
};

// A value of an algebraic data type, or a plain tuple (tag 0).
struct ADTObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "object.ADT";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  int32_t tag = 0;
  std::vector<Value> items;
  static void fields(FieldList<ADTObj>& f);
};
using ADT = Ref<ADTObj>;
ADT make_adt(int32_t tag, std::vector<Value> items);

}  // namespace headrace
