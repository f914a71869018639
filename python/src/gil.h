// The interpreter's lock, for work without it and for calls back into Python, up to and past the interpreter's end.
//
// A daemon thread may be in native code when the interpreter ends. The interpreter would end such a thread as soon as
// it wants the lock, by an unwinding that the C++ frames below cannot take, and the process's static objects are
// destroyed while the thread still uses them. So the interpreter's exit handlers wait until the threads that work
// without the lock are done, and these then sleep for the rest of the process. A compilation is given up, a run is
// waited for; where one takes longer than kLongestWait, the process ends without destroying what is static.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

namespace headrace::python {

namespace nb = nanobind;

// Releases the lock that this thread has, while it lives.
class GilReleased {
 public:
  GilReleased();
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the lock, on any thread, while it lives.
class GilHeld {
 public:
  GilHeld();
  ~GilHeld();
  GilHeld(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

// Whether another thread ends the interpreter: then nobody waits for this one's result.
bool is_given_up() noexcept;

// Sleeps for the rest of the process, as a thread that must not go on.
[[noreturn]] void sleep_for_ever() noexcept;

// The result of `call`, which runs Python code; a thread that the interpreter ends in it sleeps instead.
template <typename F>
auto run_python(F&& call) {
  try {
    return call();
  } catch (std::exception&) {
    throw;
  } catch (...) {  // the unwinding of pthread_exit
    sleep_for_ever();
  }
}

// Registers the wait with the interpreter's exit handlers.
void wait_at_exit();

}  // namespace headrace::python
