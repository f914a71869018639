// The rules that one expression keeps by itself (5 and 6 of verify.h). Inner header of tir.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

// What is wrong with the node `e`, its operands being right.
std::vector<std::string> breaches_of(const PrimExpr& e);
// The same for an access; `stored` is null for a load.
std::vector<std::string> breaches_of_access(const Buffer& buffer, const Array<PrimExpr>& indices,
                                            const PrimExpr& stored);

}  // namespace headrace::tir
