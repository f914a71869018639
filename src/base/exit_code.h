// Maps errors and refusals to exit codes. The programs, the C API and Python all use this mapping.
#pragma once

#include <headrace/reason.h>
#include <headrace/status.h>

#include <exception>

namespace headrace {

// Returns the code of an error: HR_USAGE for a UsageError, HR_MISSING_DEPENDENCY for a MissingError, HR_USER for any
// other UserError and when is_out_of_resources(error), HR_INTERNAL for everything else.
hr_status exit_code_of(const std::exception& error);

// Returns whether memory ran out, or the system gives no more threads.
bool is_out_of_resources(const std::exception& error);

// Returns the code of a refusal: HR_MISSING_DEPENDENCY where a backend, a processor's feature or a device is missing,
// HR_USER for every other reason.
hr_status exit_code_of(hr_reason reason);

}  // namespace headrace
