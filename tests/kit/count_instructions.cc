#include "kit/count_instructions.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <sstream>

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

// The code of the kernel that reads clocks in the process's own memory. It reads again while the kernel changes the
// time, which a step, a thousand times as slow as an instruction, makes likely.
class ClockCode {
 public:
  ClockCode() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (!line.ends_with("[vdso]")) continue;
      char dash = 0;
      std::istringstream(line) >> std::hex >> begin_ >> dash >> end_;
    }
  }

  // Returns whether a stopped child is in that code.
  bool has(pid_t child) const {
#ifdef __x86_64__
    const long at = ptrace(PTRACE_PEEKUSER, child, offsetof(user, regs.rip), nullptr);
    return static_cast<uint64_t>(at) >= begin_ && static_cast<uint64_t>(at) < end_;
#else
    static_cast<void>(child);
    return false;
#endif
  }

 private:
  uint64_t begin_ = 0, end_ = 0;  // a child that was forked has it at the same place
};

}  // namespace

std::optional<int64_t> count_instructions(const std::function<void()>& prepare, const std::function<void()>& run) {
#ifdef KIT_SANITIZED
  return {};
#endif
  const pid_t child = fork();
  if (child == 0) be_traced(prepare, run);
  if (child < 0) return {};
  const ClockCode clock_code;
  int status = 0;
  int64_t count = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const int signal = WSTOPSIG(status);
    if (signal != SIGSTOP && signal != SIGTRAP) {  // a crash of the work
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    if (!clock_code.has(child)) ++count;
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotTraced) return {};
  HEADRACE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == kDone, "the counted work failed: status {}", status);
  return count;
}

}  // namespace headrace::kit
