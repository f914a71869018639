// Errors of stages, from what executors return.
#pragma once

#include <string>

#include "executors/executor.h"
#include "object/function.h"

namespace headrace::executors::pipeline {

// Returns the error of a call that failed.
Ref<ErrorObj> error_of(const Status& status);
// Returns a UserError.
Ref<ErrorObj> make_stage_error(std::string message);

}  // namespace headrace::executors::pipeline
