// Child processes and temporary folders that a signal must not leave behind.
//
// SIGINT, SIGTERM and SIGHUP end the program as they always do, after its children were killed, its folders removed and
// one line was printed. Signals are blocked in every thread, and a thread of their own waits for them, so that the
// clean-up is ordinary code and not a signal handler.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headrace::tools {

// Call before the process starts threads, which inherit the blocked signals. A second call does nothing. A signal that
// was ignored at the start of the program, as under nohup, stays ignored.
void watch_for_interruptions();

// While one lives, the first Ctrl-C does not end the program: it asks the work to stop early and to report what it has.
// The second one ends it.
class StopRequest {
 public:
  // Watches for interruptions.
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;

  // Returns whether work was asked to stop.
  static bool is_made();
};

// An empty folder in the system's folder for temporary files; removed with what is in it.
class TemporaryFolder {
 public:
  // `name`: what its name begins with. UserError when no folder can be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A process in a process group of its own, so that a Ctrl-C at the terminal reaches this program alone.
class ChildProcess {
 public:
  ChildProcess() = default;
  // Waits for its end: close its input before.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;

  // Starts `command`, looked up in PATH, with these files as its standard input and output, and with `folder` for what
  // it writes to TMPDIR. False, with errno set, when it cannot be started.
  bool start(const std::vector<std::string>& command, int input, int output, const TemporaryFolder& folder);
  // Waits for the end of a process that was started, once. Returns its exit code; -1 if a signal ended it.
  int wait();

 private:
  int id_ = -1;
};

}  // namespace headrace::tools
