// Maps errors and refusals to exit codes. The programs, the C API and Python all use this mapping.
#pragma once

#include <headrace/reason.h>
#include <headrace/status.h>

#include <exception>

namespace headrace {

hr_status exit_code_of(const std::exception& error);

// Returns whether memory ran out, or the system gives no more threads.
bool is_out_of_resources(const std::exception& error);

// Returns the code of a refusal: bad input, or a missing dependency.
hr_status exit_code_of(hr_reason reason);

}  // namespace headrace
