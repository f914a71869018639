// Positions of elements as results of ops: which dtypes hold them.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Returns whether `dtype`, integers or floats, holds 0 .. greatest exactly.
bool holds_up_to(DataType dtype, int64_t greatest);

// Says whether the results of an op are positions of elements, or also their number, which is one more than the last.
enum class Positions : uint8_t { of_elements, or_their_number };

// Fails when `dtype` does not hold the positions of `count` elements, if that number is known; `advice` says what to
// do, as in "ask for dtype=\"int64\"".
void check_positions(const RelationInput& input, DataType dtype, const PrimExpr& count, std::string_view advice,
                     Positions positions = Positions::of_elements);
// Throws that UserError for a number that only a run tells.
void check_positions(DataType dtype, int64_t count, std::string_view advice,
                     Positions positions = Positions::of_elements);

inline constexpr std::string_view kAskForInt64 = "ask for dtype=\"int64\"";

}  // namespace headrace::ops
