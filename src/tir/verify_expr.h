// The rules that one expression keeps by itself (5 and 6 of verify.h). Inner header of tir.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

// Returns what is wrong with the node `e`, assuming that its operands are correct.
std::vector<std::string> breaches_of(const PrimExpr& e);
// Returns what is wrong with an access; `stored` is null for a load.
std::vector<std::string> breaches_of_access(const Buffer& buffer, const Array<PrimExpr>& indices,
                                            const PrimExpr& stored);

}  // namespace headrace::tir
