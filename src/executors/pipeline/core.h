// Core: the parts of a pipeline, wired up. Threads and tickets share it, so that it outlives a pipeline whose stage
// does not return.
#pragma once

#include <thread>

#include "executors/pipeline/breaker.h"
#include "executors/pipeline/flow.h"
#include "executors/pipeline/outbox.h"
#include "executors/pipeline/pipeline.h"
#include "executors/pipeline/watch.h"

namespace headrace::executors::pipeline {

class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(PipelineSpec spec, const PipelineOptions& options);
  void prepare();
  void start();

  // Sets `unread` where the outcomes of tickets are counted until they are read.
  std::shared_ptr<Request> submit(std::vector<Value> inputs, const SubmitOptions& options, bool is_queued,
                                  std::shared_ptr<Unread>* unread = nullptr);
  bool cancel(const std::shared_ptr<Request>& request);
  void call_when_done(const std::shared_ptr<Request>& request, std::function<void(const Ticket&)> function);
  std::shared_ptr<Request> take_outcome(Until until, bool in_order);
  size_t num_ready() const { return is_forked() ? 0 : outbox_.num_done(); }
  uint64_t set_params(const std::string& group, const std::map<std::string, NDArray>& values);
  State state() const;
  void reset();
  bool may_wait() const;
  bool wait_for_place(Until until) { return is_forked() || entrance_.wait_for_place(until); }
  bool drain(Until until);
  std::vector<std::string> stop(Until until, bool keeps_calls = false);
  PipelineMetrics metrics() const;
  void start_trace();
  Trace trace() const;
  Trace stop_trace();
  bool is_forked() const;
  // Returns whether a thread of the pipeline calls: a worker, or the watch in one of its callbacks.
  bool is_own_thread() const;
  // Leaves the threads that have not ended to themselves.
  void abandon();

  const PipelineSpec& spec() const { return spec_; }
  const PipelineOptions& options() const { return options_; }

 private:
  // A thread and the stages that it runs, as one of their replicas.
  struct Worker {
    size_t group = 0;
    size_t replica = 0;
    std::vector<Stage*> stages;
    Parker parker;
    std::unique_ptr<TraceRing> trace = {};  // made by the first trace
    uint64_t first_event = 0;               // first one that the trace includes
    std::vector<Waiting> reasons;           // why each stage waits, while the thread sleeps
    std::thread thread;
    bool has_begun = false;  // guarded by threads_mutex_, as what follows
    bool is_warm = false;
    Failure warm_up_failure = {};  // its cause is null if the stages worked
    bool has_ended = false;
  };

  void make_workers();
  void start_threads();
  void wait_until_warm();
  void warm_up(Worker& worker);
  void check_not_forked() const;
  void check_takes_requests() const;
  void number_lanes();
  Trace read_trace() const;
  void note_rest(Worker& worker, Clock::time_point start, Clock::time_point end);
  void make_inputs();
  void work(Worker& worker);
  bool run_stages(Worker& worker, Clock::time_point& now);
  void rest(Worker& worker, Clock::time_point& now);
  bool has_work(const Worker& worker, Until& due);
  void wake(size_t group);
  void wake_sources();

  std::vector<Value> take_inputs(std::vector<Value> inputs, bool keeps_inputs);
  Value take_input(size_t index, const Value& value, bool keeps_inputs);
  void check_params() const;
  void find_kept_outputs();
  void separate_outputs(Request& request) const noexcept;
  void leave(const std::shared_ptr<Request>& request);
  void release(Request& request);
  void settle(const std::shared_ptr<Request>& request);
  void count(const Request& request);
  static void call(const Request::Callback& callback, const std::shared_ptr<Request>& request) noexcept;
  bool fail(const std::shared_ptr<Request>& request, FailureKind kind, const Stage* stage, bool is_waiting);
  bool check_time_limits();
  void end_stuck(Stage& stage, const Replica& replica, uint64_t token);
  void end_all();
  void expire(const std::shared_ptr<Request>& request);
  std::vector<std::string> join(Until until);
  bool interrupt_calls();
  void release_codes();
  std::vector<std::string> running_stages();

  const PipelineSpec spec_;
  const PipelineOptions options_;
  const uint64_t process_;
  Entrance entrance_;
  Outbox outbox_;
  Breaker breaker_;
  std::vector<std::optional<TensorPool>> input_pools_;  // one per input, present for typed inputs
  std::vector<std::optional<TensorPool>> param_pools_;
  mutable std::mutex params_mutex_;
  ParamValues params_;
  std::unique_ptr<Flow> flow_;
  std::vector<std::vector<Worker*>> groups_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<bool> are_kept_;  // by output: a function reads it, too
  std::optional<std::chrono::nanoseconds> watch_period_;
  std::unique_ptr<Watch> watch_;
  std::mutex start_mutex_;  // one thread starts the others
  std::atomic<bool> has_started_ = false;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_draining_ = false;
  std::atomic<bool> has_failed_ = false;  // a thread had not ended when it was last waited for
  std::timed_mutex stop_mutex_;           // one thread joins the others
  mutable std::mutex threads_mutex_;
  std::condition_variable thread_changed_;
  int spin_rounds_ = 0;
  std::atomic<Clock::time_point> started_ = Clock::now();
  std::atomic<uint64_t> submitted_ = 0, refused_ = 0;
  static constexpr size_t kSuccess = 7;                         // follows the last FailureKind
  std::array<std::atomic<uint64_t>, kSuccess + 1> outcomes_{};  // by FailureKind
  Histogram latency_;
  mutable std::mutex trace_mutex_;  // guards what follows
  bool is_tracing_ = false;
  int64_t trace_begin_ns_ = 0;
};

}  // namespace headrace::executors::pipeline
