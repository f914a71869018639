#include "base/stack.h"

#include <gtest/gtest.h>
#include <pthread.h>

namespace headrace {
namespace {

// The compiler must take it that `frame` is read and written here: without, it makes a loop of the recursion.
void use(char* frame) { asm volatile("" : : "r"(frame) : "memory"); }

// How deep a recursion over frames of about a kilobyte gets.
int descend(int depth) {
  char frame[1024];
  use(frame);
  const int reached = is_stack_low() ? depth : descend(depth + 1);
  use(frame);
  return reached;
}

void* descend_in_thread(void* depth) {
  *static_cast<int*>(depth) = descend(0);
  return nullptr;
}

int depth_in_thread(size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread{};
  int depth = -1;
  EXPECT_EQ(pthread_create(&thread, &attributes, descend_in_thread, &depth), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return depth;
}

TEST(Stack, EndsARecursionInTime) {
  const int small = depth_in_thread(256 * 1024), large = depth_in_thread(1024 * 1024);
  EXPECT_GT(small, 20);
  EXPECT_LT(small, 170) << "the reserve is left";
  EXPECT_GT(large, 4 * small);
}

TEST(Stack, IsNotLowWhereItIsLarge) { EXPECT_FALSE(is_stack_low()); }

}  // namespace
}  // namespace headrace
