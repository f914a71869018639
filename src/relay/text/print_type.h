// Types and dimensions as text.
#pragma once

#include "relay/text/print_names.h"

namespace headrace::relay {

void print_type(std::string& out, const Type& type, PrintNames& names);
void print_dim(std::string& out, const PrimExpr& dim, PrintNames& names);
// `[A, B: shape_var]`, or nothing when there are none.
void print_type_params(std::string& out, const Array<TypeVar>& params, PrintNames& names);
// A type's or constructor's name; UserError when it is no identifier.
std::string checked_type_name(const std::string& name);

}  // namespace headrace::relay
