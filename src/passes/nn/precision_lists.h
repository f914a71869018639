// Decides which ops may compute in a smaller floating-point type: by lists of names, and by functions of users.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// The numbers are those of Relay's MIXED_PRECISION_ALWAYS, _FOLLOW and _NEVER.
enum class PrecisionCategory : uint8_t {
  always = 0,  // it is worth casting its operands
  follow = 1,  // where its operands are small already
  never = 2,
};

// The attribute of ops that users set: a function of (call, "float16") that gives a category, or a list [category, type
// of sums, type of results]. It counts before the lists.
inline constexpr const char* kPrecisionAttr = "FTVMMixedPrecisionConversionType";
inline constexpr OpKey<Value> kPrecisionKey{kPrecisionAttr};

// Returns the category of a call of an op; nothing where neither a list nor a user gives one. UserError at the call
// when the user's function returns no category, or results of another type than `small`.
std::optional<PrecisionCategory> precision_category(const relay::Call& call, DataType small);

}  // namespace headrace::passes
