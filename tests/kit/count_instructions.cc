#include "kit/count_instructions.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KIT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KIT_SANITIZED 1
#endif
#endif

namespace headrace::kit {

namespace {

constexpr int kDone = 0, kNotTraced = 3, kThrew = 4;

[[noreturn]] void be_traced(const std::function<void()>& prepare, const std::function<void()>& run) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNotTraced);
  try {
    prepare();
    raise(SIGSTOP);
    run();
  } catch (...) {
    _exit(kThrew);
  }
  _exit(kDone);
}

}  // namespace

std::optional<int64_t> count_instructions(const std::function<void()>& prepare, const std::function<void()>& run) {
#ifdef KIT_SANITIZED
  return {};
#endif
  const pid_t child = fork();
  if (child == 0) be_traced(prepare, run);
  if (child < 0) return {};
  int status = 0;
  int64_t count = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const int signal = WSTOPSIG(status);
    if (signal != SIGSTOP && signal != SIGTRAP) {  // a crash of the work
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
    ++count;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotTraced) return {};
  HEADRACE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == kDone, "the counted work failed: status {}", status);
  return count;
}

}  // namespace headrace::kit
