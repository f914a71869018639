#include "base/stack.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace headrace {
namespace {

// The compiler must take it that `frame` is read and written here: without, it makes a loop of the recursion.
void use(char* frame) { asm volatile("" : : "r"(frame) : "memory"); }

// Returns the stack pointer at which a recursion of small frames is stopped.
uintptr_t descend() {
  char frame[1024];
  use(frame);
  const uintptr_t end = is_stack_low() ? reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) : descend();
  use(frame);
  return end;
}

void* descend_in_thread(void* end) {
  *static_cast<uintptr_t*>(end) = descend();
  return nullptr;
}

// How many bytes are left of a stack of that size when the recursion ends.
size_t bytes_left(size_t stack_bytes) {
  const long page = ::sysconf(_SC_PAGESIZE);
  void* const stack = std::aligned_alloc(static_cast<size_t>(page), stack_bytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack, stack_bytes), 0);
  pthread_t thread{};
  uintptr_t end = 0;
  EXPECT_EQ(pthread_create(&thread, &attributes, descend_in_thread, &end), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<uintptr_t>(stack);
  std::free(stack);
  return end - begin;
}

TEST(Stack, EndsARecursionWhereTheReserveBegins) {
  for (const size_t size : {size_t{256} * 1024, size_t{1024} * 1024}) {
    const auto left = static_cast<long>(bytes_left(size));
    EXPECT_LT(std::abs(left - kStackReserveBytes), 8192) << left << " bytes, within a few frames of the reserve";
  }
}

TEST(Stack, IsNotLowWhereItIsLarge) { EXPECT_FALSE(is_stack_low()); }

}  // namespace
}  // namespace headrace
