// The op attributes that relay itself reads.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// The input of an op's type relation and value inference.
struct RelationInput {
  const CallNode& call;
  const std::vector<Type>& arg_types;  // never null; IncompleteType where nothing is known yet
  // Returns the value of argument i as a list of integer expressions, where inference knows it (shape arithmetic); a
  // list of one for a scalar.
  std::function<std::optional<std::vector<PrimExpr>>(size_t)> arg_value;
  // Returns the argument's data where it is a Constant; null otherwise.
  std::function<NDArray(size_t)> arg_constant;
  // Gives argument i a type while its own is not known: the weight of a convolution whose data is known. Has no effect
  // on a known argument, which the relation checks.
  std::function<void(size_t, const Type&)> assume = [](size_t, const Type&) {};

  // Returns argument i as a tensor type; null while it is not known. Throws at the call when it is not a tensor.
  TensorType tensor(size_t i) const;
  // Returns argument i as a tuple of tensors (concatenate, stack). An item that is not known yet is null; an unknown
  // tuple gives one null. Throws as tensor().
  std::vector<TensorType> tensors(size_t i) const;
  // Throws a UserError placed at the call, prefixed with the op's name.
  [[noreturn]] void fail(std::string message) const;
};

// Returns the elements of a tensor of integers as values of shape arithmetic; nothing where one exceeds int64.
std::optional<std::vector<PrimExpr>> known_integers(const NDArray& data);

// Gives the result type, or null when the argument types do not say enough yet (it is asked again). A wrong argument
// is a UserError through input.fail().
using TypeRelationFn = std::function<Type(const RelationInput&)>;
inline constexpr OpKey<TypeRelationFn> kTypeRelation{"TypeRelation"};

// Computes the elements of a small integer tensor of shape arithmetic as expressions; nothing when they are unknown.
// May compute in unbounded integers; inference discards values that overflow the result dtype.
using ValueInferenceFn = std::function<std::optional<std::vector<PrimExpr>>(const RelationInput&)>;
inline constexpr OpKey<ValueInferenceFn> kValueInference{"ValueInference"};

// The op has no effect and its result depends on its inputs alone, unless this is set.
inline constexpr OpKey<bool> kStateful{"Stateful"};
inline bool is_stateful(const OpNode& op) {
  const bool* stateful = op.find(kStateful);
  return stateful != nullptr && *stateful;
}

}  // namespace headrace::relay
