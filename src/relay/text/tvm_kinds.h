// The kinds of TVM's nodes that are read from its JSON, and the values that are made of them. Inner header of relay.
#pragma once

#include "object/value.h"
#include "relay/expr.h"

namespace headrace::relay {

// How the text of an attribute is read.
enum class TvmForm : uint8_t {
  node,     // the place of a node
  tensor,   // the place of a tensor
  integer,  // a number
  real,
  dtype,
  text,  // the place of a string, since version 0.7; before, the string itself
  repr,  // no attribute: the characters that the node itself is
};

struct TvmField {
  std::string_view name;
  TvmForm form = TvmForm::node;
};

// The attributes of one node that are given, by name.
class TvmFields {
 public:
  void set(std::string_view name, Value value) { values_.emplace_back(name, std::move(value)); }
  // Returns the value, or None.
  Value find(std::string_view name) const;
  // Return the value as a T; UserError with the name for another kind. `get` needs it to be given.
  template <typename T>
  T get(std::string_view name) const {
    const Value value = find(name);
    if (value.is_none()) throw_user_error("it has no '{}'", name);
    if (!value.is<T>()) throw_user_error("'{}' is not of kind {}", name, ValueTraits<T>::name());
    return value.as<T>();
  }
  template <typename T>
  T get_or(std::string_view name, T otherwise) const {
    return find(name).is_none() ? otherwise : get<T>(name);
  }

 private:
  std::vector<std::pair<std::string_view, Value>> values_;
};

struct TvmKind {
  std::string_view key;  // without "relay."
  std::vector<TvmField> fields;
  Value (*make)(const TvmFields& fields);
};

// Returns the kind of a type key of any version; null if nodes of it are not read.
const TvmKind* find_tvm_kind(std::string_view type_key);

}  // namespace headrace::relay
