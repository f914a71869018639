// Kinds: whether a type is put together as types are.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Returns the kind of a type: `type` for types of values; for a type variable the kind it was made with; `adt_handle`
// for the name of a data type with parameters, which is not a type without its arguments. UserError when a part has the
// wrong kind: an item of a tuple that is not a type, a data type that `module` does not define, or too few arguments of
// one. UserError past kMaxTypeDepth.
TypeKind check_kind(const Type& type, const IRModule& module);

// Returns the same; for the name of a data type that `module` does not define, the kind that the name was made with.
TypeKind declared_kind(const Type& type, const IRModule& module);

// Checks the kinds of the fields of each constructor of every data type of the module.
void check_kinds(const IRModule& module);

// Returns why inference cannot check a function's constraint; empty when it can. The constraint must be the relation of
// an op between its inputs and one result.
std::string relation_fault(const TypeRelationNode& relation);

}  // namespace headrace::relay
