// Long work that its caller may call off.
#pragma once

namespace headrace {

// Looks whether the work shall end, and throws when it shall.
using InterruptCheck = void (*)();

// Makes poll_interrupt on this thread call `check` while the scope lives; with null it calls nothing.
class InterruptScope {
 public:
  explicit InterruptScope(InterruptCheck check);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  InterruptCheck outer_;
};

// Call between the steps of work that may take seconds. Calls the check at most every 20 ms, so it may be called often.
// Unwinding must undo everything that is half done at the call.
void poll_interrupt();

}  // namespace headrace
