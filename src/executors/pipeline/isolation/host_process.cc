#include "executors/pipeline/isolation/host_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "runtime/processors.h"

namespace headrace::executors::pipeline::isolation {
namespace {

// How long a process may take to end by itself when its pipeline has.
constexpr auto kPatience = std::chrono::milliseconds(200);

// Returns the descriptor again, above all numbers that the process uses.
Descriptor above(int number, int first) {
  Descriptor copy(::fcntl(number, F_DUPFD_CLOEXEC, first));
  if (copy.number() < 0) throw_user_error("no descriptor for the process of a stage: {}", std::strerror(errno));
  return copy;
}

// The attributes and actions of posix_spawn, which free themselves.
struct Spawn {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  Spawn() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawn() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
};

}  // namespace

HostProcess::Ends HostProcess::make_ends() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw_user_error("no connection to the process of a stage: {}", std::strerror(errno));
  return {.own = Descriptor(ends[0]), .other = Descriptor(ends[1])};
}

HostProcess::HostProcess(const HostCommand& command) : HostProcess(command, make_ends()) {}

HostProcess::HostProcess(const HostCommand& command, Ends ends)
    : process_(runtime::process_generation()), connection_(std::move(ends.own)), memory_(kFirstBytes) {
  start(command, ends.other.number());
}

void HostProcess::start(const HostCommand& command, int other_end) {
  const int first_free = kFirstFile + static_cast<int>(command.files.size());
  std::vector<Descriptor> copies;
  copies.push_back(above(other_end, first_free));
  copies.push_back(above(memory_.file(), first_free));
  for (const auto& file : command.files) copies.push_back(above(file->number(), first_free));
  Spawn spawn;
  ::posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (size_t i = 0; i < copies.size(); ++i)
    ::posix_spawn_file_actions_adddup2(&spawn.actions, copies[i].number(), kConnection + static_cast<int>(i));
  ::posix_spawn_file_actions_addclosefrom_np(&spawn.actions, first_free);
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0], &spawn.actions, &spawn.attributes, words.data(), environ);
  if (error != 0)
    throw_user_error("the program '{}', which runs a stage in a process of its own, cannot be started: {}",
                     command.words[0], std::strerror(error));
  pid_ = pid;
  if (const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); handle >= 0) handle_.emplace(handle);
}

HostProcess::~HostProcess() {
  if (process_ != runtime::process_generation()) return;
  connection_.close();
  if (!wait_for_end(kPatience)) static_cast<void>(end());
}

// Returns whether it has ended.
bool HostProcess::wait_for_end(Clock::duration patience) {
  const Clock::time_point until = Clock::now() + patience;
  for (auto pause = std::chrono::microseconds(50);; pause = std::min(pause * 2, std::chrono::microseconds(5000))) {
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return true;
      const pid_t found = ::waitpid(pid_, &status_, WNOHANG);
      // Where another part of the program waits for all of its processes, the end of this one is seen there alone.
      is_over_ = found == pid_ || (found < 0 && errno == ECHILD);
      is_end_known_ = found == pid_;
      if (is_over_) return true;
    }
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(pause);
  }
}

void HostProcess::kill() noexcept {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  if (handle_.has_value()) {
    static_cast<void>(::syscall(SYS_pidfd_send_signal, handle_->number(), SIGKILL, nullptr, 0));
  } else {
    ::kill(pid_, SIGKILL);
  }
}

std::string HostProcess::end() {
  // A process that ends by itself closes its connection a moment before it has ended.
  kill();
  while (!wait_for_end(std::chrono::seconds(1))) {
  }
  if (!is_end_known_)
    return "ended in a way that is not known, because another part of the program waits for processes";
  if (WIFEXITED(status_)) return fmt::format("ended with exit code {}", WEXITSTATUS(status_));
  const int number = WTERMSIG(status_);
  const char* name = ::sigdescr_np(number);
  return fmt::format("was killed by signal {} ({})", number, name == nullptr ? "unknown" : name);
}

}  // namespace headrace::executors::pipeline::isolation
