#include "base/interrupt.h"

#include <chrono>

namespace headrace {

namespace {

using Clock = std::chrono::steady_clock;

thread_local InterruptCheck current = nullptr;
thread_local Clock::time_point asked;

}  // namespace

InterruptScope::InterruptScope(InterruptCheck check) : outer_(current) { current = check; }

InterruptScope::~InterruptScope() { current = outer_; }

void poll_interrupt() {
  if (current == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (now - asked < std::chrono::milliseconds(20)) return;
  asked = now;
  current();
}

}  // namespace headrace
