// The processors that threads may run on.
#pragma once

#include <sched.h>

#include <vector>

namespace headrace::tools {

// Restricts this thread, and the threads and processes that it starts, to `count` of the processors that it may use, as
// long as the scope lives. Takes one processor of each core before the second one of any. Uses all processors if there
// are no more than `count`.
class ProcessorScope {
 public:
  explicit ProcessorScope(int count);
  // Uses these processors. Throws UserError if the process may not use one of them.
  explicit ProcessorScope(const std::vector<int>& processors);
  ~ProcessorScope();
  ProcessorScope(const ProcessorScope&) = delete;

  // Their numbers, ascending; empty when the system does not say which it has.
  const std::vector<int>& processors() const { return processors_; }

 private:
  void restrict_to(const std::vector<int>& processors);

  cpu_set_t before_{};
  std::vector<int> processors_;
};

}  // namespace headrace::tools
