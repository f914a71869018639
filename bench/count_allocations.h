// Bytes that the process has asked operator new for, ever: a measure of work that is the same in each run.
#pragma once

#include <cstdint>

namespace headrace::bench {

int64_t allocated_bytes();

}  // namespace headrace::bench
