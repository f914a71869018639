// RELAY_REGISTER_OP, the C++ form of registering ops that Relay users know, for their own libraries: a thin layer over
// register_user_op. As with object/porting.h, ops are registered when the library is loaded, errors go to stderr, and
// the library must stay loaded.
//
//   bool ScaleRel(const Array<Type>& types, int num_inputs, const Attrs& attrs, const TypeReporter& reporter) {
//     if (!types[0].is<TensorTypeNode>()) return false;
//     reporter->Assign(types[num_inputs], types[0]);
//     return true;
//   }
//   RELAY_REGISTER_OP("mine.scale")
//       .describe("data * factor")
//       .add_argument("data", "Tensor", "What is scaled.")
//       .add_attr({"factor", relay::AttrKind::real, Value(2.0)})  // was set_attrs_type<ScaleAttrs>()
//       .add_type_rel("Scale", ScaleRel)
//       .set_compute(lower::ComputeRuleFn(scale))                 // was set_attr<FTVMCompute>("FTVMCompute", ...)
//       .set_attr<int>("TOpPattern", 0);
//
// For an op that exists it sets open attributes, as in set_attr<bool>("target.mychip", true); built-in ops accept
// nothing else.
#pragma once

#include "lower/user_ops/user_op.h"
#include "object/porting.h"

namespace headrace {

// The object through which a type relation in Relay's form assigns types; see OpRegEntry::add_type_rel.
class TypeReporterNode {
 public:
  // Makes a reporter of the types that the relation gets.
  TypeReporterNode(const relay::RelationInput& input, const Array<Type>& types) : input_(input), types_(types) {}
  // Assigns `src` to `dst`, one of the relation's types: the last becomes the result's type, and an argument without a
  // type is assumed to have it. UserError at the call for an argument of another type.
  void Assign(const Type& dst, const Type& src) const;
  const Type& result() const { return result_; }

 private:
  const relay::RelationInput& input_;
  const Array<Type>& types_;
  mutable Type result_;
};
using TypeReporter = const TypeReporterNode*;

// A type relation in Relay's form. `types` are those of the arguments, IncompleteType for unknown ones, then one for
// the result. Returns false while the types do not determine the result.
using RelayTypeRel = std::function<bool(const Array<Type>& types, int num_inputs, const Attrs&, const TypeReporter&)>;

// An op that is being registered, or extended.
class OpRegEntry {
 public:
  static OpRegEntry RegisterOrGet(const std::string& name);

  OpRegEntry& describe(const std::string& doc);
  OpRegEntry& add_argument(const std::string& name, const std::string& type, const std::string& description);
  OpRegEntry& add_attr(relay::AttrSpec spec);
  OpRegEntry& set_num_inputs(int32_t count);
  OpRegEntry& set_support_level(int32_t level);
  OpRegEntry& add_type_rel(const std::string& rel_name, RelayTypeRel relation);
  OpRegEntry& set_compute(lower::UserCompute compute);
  // Sets "TOpPattern" (int), "TOpIsStateful" (bool), or any key with any value.
  template <typename T>
  OpRegEntry& set_attr(const std::string& key, const T& value) {
    return set_value(key, Value(value));
  }

 private:
  template <typename F>
  OpRegEntry& change(const F& change_it) {
    if (op_) porting::at_load([&] { change_it(op_); });
    return *this;
  }
  OpRegEntry& set_value(const std::string& key, const Value& value);

  Op op_;  // null when it could not be registered; stderr has the reason
};

}  // namespace headrace

#define RELAY_REGISTER_OP(NAME)                                                         \
  [[maybe_unused]] static const ::headrace::OpRegEntry TVM_PORTING_NAME_(__COUNTER__) = \
      ::headrace::OpRegEntry::RegisterOrGet(NAME)
