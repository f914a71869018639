#include "tools/headrace/interruption.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/temporary_name.h"

extern char** environ;

namespace headrace::tools {

namespace {

// The child processes and folders that must be cleaned up on a signal. The mutex is held while a process or folder is
// created or removed. The thread that cleans up holds it until the process ends, so that nothing new is created
// meanwhile and no error is reported.
struct Leftovers {
  std::mutex mutex;
  std::set<pid_t> processes;
  std::set<std::filesystem::path> folders;
};

// Never destroyed: a signal may come while the program ends.
Leftovers& leftovers() {
  static auto& all = *new Leftovers;
  return all;
}

sigset_t blocked_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action{};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

void remove_all(Leftovers& all) {
  for (const pid_t process : all.processes) {
    kill(-process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  std::error_code ignored;
  for (const std::filesystem::path& folder : all.folders) std::filesystem::remove_all(folder, ignored);
}

[[noreturn]] void end_by(int number, const sigset_t& signals) {
  Leftovers& all = leftovers();
  all.mutex.lock();
  // One system call, so that the line is whole.
  const std::string line = fmt::format("headrace: interrupted ({})\n", number == SIGINT ? "Ctrl-C" : strsignal(number));
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
  remove_all(all);
  // The signal itself ends the process, so that shells see why it ended.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
  _exit(128 + number);
}

std::atomic<int> stop_requests{0};  // that live
std::atomic<bool> stop_is_requested{false};

// Returns whether the signal asks work to stop, and not the program to end.
bool takes_request(int number) { return number == SIGINT && stop_requests > 0 && !stop_is_requested.exchange(true); }

// This process's environment, with one variable changed.
std::vector<std::string> environment_with(const std::string& name, const std::string& value) {
  std::vector<std::string> variables{name + "=" + value};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(name + "=")) variables.emplace_back(*variable);
  }
  return variables;
}

// As system calls take them: a null pointer ends them.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

void watch_for_interruptions() {
  static std::once_flag once;
  std::call_once(once, [] {
    const sigset_t signals = blocked_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
      int number = 0;
      while (sigwait(&signals, &number) != 0 || takes_request(number)) continue;
      end_by(number, signals);
    }).detach();
  });
}

StopRequest::StopRequest() {
  watch_for_interruptions();
  ++stop_requests;
}

StopRequest::~StopRequest() { --stop_requests; }

bool StopRequest::is_made() { return stop_is_requested; }

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string pattern = temporary_name((parent / name).string());
  const std::lock_guard lock(leftovers().mutex);
  if (error || mkdtemp(pattern.data()) == nullptr)
    throw_user_error("cannot make a folder for temporary files as '{}': {}; name another place in TMPDIR", pattern,
                     error ? error.message() : std::strerror(errno));
  path_ = pattern;
  leftovers().folders.insert(path_);
}

TemporaryFolder::~TemporaryFolder() {
  const std::lock_guard lock(leftovers().mutex);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  leftovers().folders.erase(path_);
}

ChildProcess::~ChildProcess() {
  if (id_ > 0) wait();
}

int ChildProcess::wait() {
  // Its number must stay taken until it is removed from the list, or another process might get the signal.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  const std::lock_guard lock(leftovers().mutex);
  waitpid(id_, nullptr, 0);
  leftovers().processes.erase(id_);
  id_ = -1;
  return info.si_code == CLD_EXITED ? info.si_status : -1;
}

bool ChildProcess::start(const std::vector<std::string>& command, int input, int output,
                         const TemporaryFolder& folder) {
  const std::vector<std::string> variables = environment_with("TMPDIR", folder.path().string());
  const std::vector<char*> argv = pointers_to(command), environment = pointers_to(variables);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  sigset_t none, pipe;
  sigemptyset(&none);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  const std::lock_guard lock(leftovers().mutex);
  const int failed = posix_spawnp(&id_, argv[0], &actions, &attributes, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) {
    leftovers().processes.insert(id_);
  } else {
    id_ = -1;
    errno = failed;
  }
  return failed == 0;
}

}  // namespace headrace::tools
