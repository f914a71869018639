// Kinds: whether a type is put together as types are.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// The kind of a type: `type` for what values have; the kind it was made with for a type variable; `adt_handle` for the
// name of a data type with parameters, which is no type without its arguments. UserError when a part is of the wrong
// kind: an item of a tuple that is no type, a data type that `module` does not define, or too few arguments of one.
// UserError past kMaxTypeDepth.
TypeKind check_kind(const Type& type, const IRModule& module);

// The same for each constructor's fields of every data type of the module.
void check_kinds(const IRModule& module);

// Why inference cannot ask a function's constraint, which must be the relation of an op between its inputs and one
// result; empty when it can.
std::string relation_fault(const TypeRelationNode& relation);

}  // namespace headrace::relay
