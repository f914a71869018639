// The op attributes that relay itself reads.
#pragma once

#include "relay/expr.h"

namespace headrace::relay {

// What an op's type relation and value inference are asked with.
struct RelationInput {
  const CallNode& call;
  const std::vector<Type>& arg_types;  // never null; IncompleteType where nothing is known yet
  // The value of argument i as a list of integer expressions, where inference knows it (shape arithmetic); for a scalar
  // a list of one.
  std::function<std::optional<std::vector<PrimExpr>>(size_t)> arg_value;
  // The argument's constant data, where it is a Constant; null otherwise.
  std::function<NDArray(size_t)> arg_constant;
  // Says what argument i must be while its type is not known: the weight's of a convolution whose data is. Nothing for
  // one that is known, which the relation checks.
  std::function<void(size_t, const Type&)> assume = [](size_t, const Type&) {};

  // Argument i as a tensor type; null while it is not known. Throws at the call when it is something else.
  TensorType tensor(size_t i) const;
  // As above, for a tuple of tensors (concatenate, stack). An item that is not known yet is null; an unknown tuple
  // gives one null.
  std::vector<TensorType> tensors(size_t i) const;
  // Throws a UserError placed at the call, prefixed with the op's name.
  [[noreturn]] void fail(std::string message) const;
};

// The elements of a tensor of integers as a value of shape arithmetic; nothing where one is past int64.
std::optional<std::vector<PrimExpr>> known_integers(const NDArray& data);

// Gives the result type, or null when the argument types do not say enough yet (it is asked again). A wrong argument
// is a UserError through input.fail().
using TypeRelationFn = std::function<Type(const RelationInput&)>;
inline constexpr OpKey<TypeRelationFn> kTypeRelation{"TypeRelation"};

// The integer expressions that the op computes, for small integer tensors of shape arithmetic; nothing when unknown.
// Its arithmetic may be without bounds: of what the dtype of the result does not hold, inference takes nothing.
using ValueInferenceFn = std::function<std::optional<std::vector<PrimExpr>>(const RelationInput&)>;
inline constexpr OpKey<ValueInferenceFn> kValueInference{"ValueInference"};

// The op has no effect and its result depends on its inputs alone, unless this is set.
inline constexpr OpKey<bool> kStateful{"Stateful"};
inline bool is_stateful(const OpNode& op) {
  const bool* stateful = op.find(kStateful);
  return stateful != nullptr && *stateful;
}

}  // namespace headrace::relay
