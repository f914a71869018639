// How much of the stack is left, for recursion over what a user wrote.
#pragma once

namespace headrace {

// True when the calling thread has less than kStackReserveBytes of its stack left: a recursion that may go deeper stops
// here with a UserError. What it calls may use the reserve.
inline constexpr long kStackReserveBytes = 96 * 1024;
bool is_stack_low();

}  // namespace headrace
