// HostProcess: a process that runs the code of one stage.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executors/pipeline/isolation/connection.h"
#include "executors/pipeline/isolation/shared_memory.h"

namespace headrace::executors::pipeline::isolation {

// The program, arguments and files of a process to start. It inherits the files, as kFirstFile and on, and no other
// descriptors but its output.
struct HostCommand {
  std::vector<std::string> words;  // the path of the program, and its arguments
  std::vector<std::shared_ptr<const Descriptor>> files = {};
};

class HostProcess {
 public:
  // Starts the process, with signals as the system has them at first and in a process group of its own, so that what a
  // terminal sends to the program does not reach it. UserError when the program cannot be started.
  explicit HostProcess(const HostCommand& command);
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;
  // Closes the connection, waits a moment for the process to end, and kills it otherwise. In a process that was forked
  // since, it leaves the process to the one that started it.
  ~HostProcess();

  int connection() const { return connection_.number(); }
  SharedMemory& memory() { return memory_; }
  int pid() const { return pid_; }

  // Kills the process. Any thread may call it.
  void kill() noexcept;
  // Kills the process if it runs, waits for its end, and returns how it ended: "was killed by signal 11 (Segmentation
  // fault)", "ended with exit code 3".
  std::string end();

 private:
  struct Ends {
    Descriptor own, other;
  };
  static Ends make_ends();
  HostProcess(const HostCommand& command, Ends ends);
  void start(const HostCommand& command, int other_end);
  bool wait_for_end(Clock::duration patience);

  const uint64_t process_;  // which has started it
  Descriptor connection_;
  SharedMemory memory_;
  int pid_ = -1;
  // A descriptor of the process, so that another one that gets its number is never killed; empty where the system has
  // none.
  std::optional<Descriptor> handle_;
  std::mutex mutex_;  // guards what follows
  bool is_over_ = false;
  bool is_end_known_ = false;
  int status_ = 0;
};

}  // namespace headrace::executors::pipeline::isolation
