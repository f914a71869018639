// Runs independent jobs on threads; the outcome does not depend on how many.
#pragma once

#include <cstddef>
#include <functional>

namespace headrace::codegen {

// Calls `job(i)` for each i below `count`, on at most `threads` threads (the caller is one of them; a number below 1
// counts as 1). Jobs write to their own index only. When jobs throw, the exception of the lowest index is rethrown
// after all threads have stopped; jobs of a higher index may have been skipped.
void for_each_index(size_t count, int threads, const std::function<void(size_t)>& job);

}  // namespace headrace::codegen
