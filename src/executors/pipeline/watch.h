// Watch: a thread that notices when time is over, for requests with deadlines and stages with time limits.
#pragma once

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

  // Ends the request at its deadline, if it is not done by then. UserError when the thread cannot be started.
  void add(const std::shared_ptr<Request>& request);
  void poke();
  // Ends the thread, unless the calling thread is it; then the destructor does. Nothing is called afterwards.
  void stop();

 private:
  struct State;  // shared with the thread, which outlives the watch where a callback ends that
  void start();
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace headrace::executors::pipeline
