#include "base/stack.h"

#include <pthread.h>

#include <cstdint>

namespace headrace {

namespace {

// The bounds of the reserve; empty where the system does not give them.
struct Reserve {
  uintptr_t begin = 0, end = 0;
};

Reserve reserve_of_this_thread() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* base = nullptr;
  size_t size = 0;
  const bool is_known = pthread_attr_getstack(&attributes, &base, &size) == 0;
  pthread_attr_destroy(&attributes);
  if (!is_known) return {};
  const auto begin = reinterpret_cast<uintptr_t>(base);
  return {begin, begin + static_cast<uintptr_t>(kStackReserveBytes)};
}

}  // namespace

// Returns whether the stack is low; false for a caller on a stack of its own, such as a fiber's, whose bounds are
// unknown.
bool is_stack_low() {
  thread_local const Reserve reserve = reserve_of_this_thread();
  const auto at = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return at >= reserve.begin && at < reserve.end;
}

}  // namespace headrace
