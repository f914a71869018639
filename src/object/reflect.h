// Reflection: a node's fields, listed once. JSON, structural equality and hash, Python attributes and keyword
// constructors come from this list.
//
//   void CallNode::fields(FieldList<CallNode>& f) {  // in the .cc: else each file that names the type compiles it
//     f.field<&CallNode::op>("op", {.doc = "what is called"});
//     f.field<&CallNode::args>("args");
//     f.field<&CallNode::span>("span", {.ignore = true, .optional = true});
//   }
#pragma once

#include <functional>

#include "object/value.h"

namespace headrace {

struct FieldOptions {
  bool ignore = false;         // not part of structural equality and hash
  bool def_recursive = false;  // binds the variables in it and, through them, in their types: function parameters
  bool def_once = false;       // binds the variables in it: let and pattern variables
  bool optional = false;       // may be None
  bool transient = false;      // not saved in JSON and not settable: caches such as checked_type
  Value default_value = {};    // used by keyword constructors when the field is not given
  bool has_default = false;
  std::string doc = {};
  // Gives the form of a value in which it is set by name (keyword constructors, JSON), before its kind is checked.
  Value (*convert)(const Value& given) = nullptr;
  // Gives the value that None is equal to in structural equality and hash, of an optional field.
  Value (*when_none)() = nullptr;
};

struct FieldInfo {
  std::string name;
  FieldOptions options;
  std::string kind;  // the kind of value, for messages and stubs
  Value (*get)(const Object* node);
  bool (*accepts)(const RawValue& value);
  void (*set)(Object* node, const RawValue& value);
};

namespace detail {
template <typename M>
struct MemberOf;
template <typename C, typename F>
struct MemberOf<F C::*> {
  using Class = C;
  using Field = F;
};
}  // namespace detail

template <typename T>
class FieldList {
 public:
  explicit FieldList(TypeInfo& info) : info_(info) {}

  template <auto Member>
  FieldList& field(std::string_view name, FieldOptions options = {}) {
    using Field = typename detail::MemberOf<decltype(Member)>::Field;
    using Traits = ValueTraits<Field>;
    FieldInfo info;
    info.name = std::string(name);
    info.options = std::move(options);
    info.kind = Traits::name();
    info.get = [](const Object* node) { return Value(static_cast<const T*>(node)->*Member); };
    info.accepts = [](const RawValue& value) { return Traits::matches(value); };
    info.set = [](Object* node, const RawValue& value) { static_cast<T*>(node)->*Member = value_to<Field>(value); };
    info_.fields.push_back(std::move(info));
    return *this;
  }

 private:
  TypeInfo& info_;
};

namespace detail {
template <typename T>
void list_own_fields(TypeInfo& info) {
  if constexpr (requires(FieldList<T>& list) { T::fields(list); }) {
    FieldList<T> list(info);
    T::fields(list);
  }
}
}  // namespace detail

// Returns the field, or null.
const FieldInfo* find_field(const TypeInfo& type, std::string_view name);
// Returns the field's value. UserError that lists the fields when the node has none of that name.
Value get_field(const Object& node, std::string_view name);
// Makes a node of type `key` from keyword arguments. UserError on an unknown type, an unknown or missing field, a wrong
// kind.
ObjectRef make_node(std::string_view key, const std::vector<std::pair<std::string, Value>>& fields);

}  // namespace headrace
