// Counts heap allocations, for tests that claim a path makes none. A program that uses it links the target
// headrace_kit_allocations, which puts counters before the C library's malloc and its kin (in a sanitized build: hooks
// of the sanitizer's allocator).
#pragma once

#include <cstdint>

namespace headrace::kit {

struct AllocationCount {
  int64_t allocations = 0;
  int64_t bytes = 0;
};

// Counts what every thread of the process allocates while the object lives. One at a time.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;

  // Returns the allocations since the object was made.
  AllocationCount count() const;
};

}  // namespace headrace::kit
