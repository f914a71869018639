// The processors that threads may run on.
#pragma once

#include <sched.h>

#include <vector>

namespace headrace::tools {

// While it lives, this thread, the threads that it starts and the processes that it starts run on `count` processors
// alone: those that this thread may use, one of each core before the second of any. On all of them when there are no
// more than `count`.
class ProcessorScope {
 public:
  explicit ProcessorScope(int count);
  ~ProcessorScope();
  ProcessorScope(const ProcessorScope&) = delete;

  // Their numbers, ascending; empty when the system does not say which it has.
  const std::vector<int>& processors() const { return processors_; }

 private:
  cpu_set_t before_;
  std::vector<int> processors_;
};

}  // namespace headrace::tools
