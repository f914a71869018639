// From what went wrong to the number that says so: the one mapping of the programs, of the C API and of Python.
#pragma once

#include <headrace/reason.h>
#include <headrace/status.h>

#include <exception>

namespace headrace {

hr_status exit_code_of(const std::exception& error);

// Memory ran out, or the system gives no more threads.
bool is_out_of_resources(const std::exception& error);

// Of a refusal, which is the user's to mend or a dependency that is missing.
hr_status exit_code_of(hr_reason reason);

}  // namespace headrace
