// The warm-up of a pipeline, before it takes requests.
#pragma once

#include "executors/pipeline/stage_code.h"

namespace headrace::executors::pipeline {

// Makes one call of the code on zeros, with as many requests as a call may have, so that memory is touched, caches are
// filled, and a backend that fails does so before the first request. Returns null, or the error of the call. Does
// nothing for code that is no program, and for ports that take any value.
Ref<ErrorObj> warm_up(StageCode& code) noexcept;

}  // namespace headrace::executors::pipeline
