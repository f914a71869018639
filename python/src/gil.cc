#include "gil.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace headrace::python {

namespace {

constexpr std::chrono::seconds kLongestWait{2};

std::atomic<int> working = 0;         // GilReleased objects that live, of threads that do not sleep for ever
thread_local int working_here = 0;    // those of this thread
std::atomic<bool> is_ending = false;  // set once, with the lock held
std::atomic<pthread_t> ending_thread;

// Called with the status of the process before static objects are destroyed.
void end_without_destructors(int status, void*) {
  if (working == 0) return;
  std::fflush(nullptr);
  ::_exit(status);
}

// The interpreter's exit handler. Threads that are not daemons have ended by now.
void wait_for_threads() {
  ending_thread = pthread_self();
  is_ending = true;
  PyThreadState* state = PyEval_SaveThread();
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  while (working > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  PyEval_RestoreThread(state);
  // Handlers run in the opposite order of their registration, those of static objects among them.
  if (working > 0) ::on_exit(&end_without_destructors, nullptr);
}

}  // namespace

bool is_given_up() noexcept { return is_ending && pthread_equal(ending_thread, pthread_self()) == 0; }

void sleep_for_ever() noexcept {
  working -= std::exchange(working_here, 0);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);  // signals are for the threads that go on
  for (;;) ::pause();
}

GilReleased::GilReleased() {
  ++working;
  ++working_here;
  state_ = PyEval_SaveThread();
  if (is_given_up()) sleep_for_ever();
}

GilReleased::~GilReleased() {
  if (is_given_up()) sleep_for_ever();
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // the unwinding of pthread_exit
    sleep_for_ever();
  }
  --working_here;
  --working;
}

GilHeld::GilHeld() {
  try {
    state_ = PyGILState_Ensure();
  } catch (...) {  // the unwinding of pthread_exit
    sleep_for_ever();
  }
}

GilHeld::~GilHeld() { PyGILState_Release(state_); }

void wait_at_exit() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&wait_for_threads));
  // A forked process has this thread alone.
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { working = working_here; }); });
}

}  // namespace headrace::python
