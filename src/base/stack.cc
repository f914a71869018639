#include "base/stack.h"

#include <pthread.h>

#include <cstdint>

namespace headrace {

namespace {

// The lowest address that leaves the reserve; 0 where the system does not tell.
uintptr_t lowest_address() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* base = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &base, &size) == 0;
  pthread_attr_destroy(&attributes);
  return is_known ? reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(kStackReserveBytes) : 0;
}

}  // namespace

bool is_stack_low() {
  thread_local const uintptr_t lowest = lowest_address();
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest;
}

}  // namespace headrace
