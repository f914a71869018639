// The ops that the C compiler backend writes, each as an expression of C for one element.
#pragma once

#include "base/expected.h"
#include "partition/backend.h"

namespace headrace::backends::ccompiler {

// Returns whether the backend writes this typed call as C, and why not: it knows some elementwise ops of float32,
// float64, int32 and int64, on tensors of known sizes and at most kMaxRank dimensions.
partition::Verdict supports(const relay::CallNode& call);

inline constexpr size_t kMaxRank = 8;
// A constant is part of the text; one of more elements than this is not taken.
inline constexpr int64_t kMostConstantElements = 1 << 16;

// Returns whether the text can hold tensors of this type, and why not.
partition::Verdict takes(const Type& type);

// Returns the expression of one element of the result; `a` and `b` are those of the operands (`b` is empty for an op of
// one). The call must be supported.
std::string element_text(const relay::CallNode& call, const std::string& a, const std::string& b);

// Returns the type of an element in C: "float", "int32_t".
std::string_view c_type(DataType dtype);

}  // namespace headrace::backends::ccompiler
