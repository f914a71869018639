// Measures the stack that is left, for recursion over input of any depth.
#pragma once

namespace headrace {

// Returns true when the calling thread has less than kStackReserveBytes of stack left. A recursion over input stops
// there with a UserError; functions that it calls may use the reserve.
inline constexpr long kStackReserveBytes = 96 * 1024;
bool is_stack_low();

}  // namespace headrace
