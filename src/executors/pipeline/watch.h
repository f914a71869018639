// Watch: a thread that notices when time is over, for requests with deadlines and stages with time limits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "executors/pipeline/request.h"

namespace headrace::executors::pipeline {

class Watch {
 public:
  // `expire` is called for a request whose deadline has passed. `check` is called every `period` while it returns true
  // and, after it has returned false, from the next poke() on; without a period, never.
  Watch(std::function<void(const std::shared_ptr<Request>&)> expire, std::function<bool()> check,
        std::optional<std::chrono::nanoseconds> period);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  // Starts the thread, if it does not run; call it before the others. UserError when the system has no thread.
  void start();
  // Ends the request at its deadline, if it is not done by then.
  void add(const std::shared_ptr<Request>& request);
  void poke();
  // Ends the thread, and waits for that until then, but not if the calling thread is it.
  void stop(Until until);

 private:
  struct State;  // shared with the thread, which outlives the watch where a callback ends that
  static void work(const std::shared_ptr<State>& state);

  const uint64_t process_;  // whose thread it is
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace headrace::executors::pipeline
