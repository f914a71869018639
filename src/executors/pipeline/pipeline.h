// Pipeline: stages that work on a stream of requests at the same time, each in the thread of its group.
//
//   submit -> [waits] -> stage -> slots -> stage -> ... -> its ticket, or next()
//
// The rules: a submission waits only for a place; at most `max_inflight` requests have one; values meet in a stage
// because they belong to one request; a request that fails touches no other; and every request gets one outcome, also
// when the pipeline stops. In a process that was forked since the pipeline was made, the pipeline is stopped.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executors/pipeline/entrance.h"
#include "executors/pipeline/metrics.h"
#include "executors/pipeline/spec.h"
#include "executors/pipeline/trace.h"

namespace headrace::executors::pipeline {

struct PipelineOptions {
  size_t max_inflight = 16;  // requests that have a place: those in the stages and those that wait
  // So many tickets may hold results that nobody has read, besides the requests that have a place: submit() waits or
  // refuses, as where the pipeline is full, until one is read or given up. 0: any number, whose memory is the caller's.
  size_t max_unread = 0;
  WhenFull when_full = WhenFull::wait;
  // So many failures in a row make a stage broken, and the pipeline then refuses requests; 0: never. From time to time
  // one is let through, and ends that if the stage does not fail it.
  uint64_t failures_in_row = 8;
  double probe_seconds = 1;
  double stop_seconds = 5;  // how long the destructor waits for calls that run
  // Each program is called once on zeros, in the thread of its stage, before the pipeline takes requests. A stage that
  // fails then is an error of start().
  bool warms_up = false;
  bool starts = true;  // else the pipeline is only built, and start() starts it
};

enum class State : uint8_t {
  built,  // its threads do not run yet, or warm up; submissions are refused
  running,
  degraded,  // a stage is broken: submissions are refused, but for a probe from time to time
  draining,  // takes no more requests, and finishes those that it has
  stopped,
  failed,  // stopped, and the call of a stage has not returned
};
std::string state_name(State state);

class Core;

// A caller's end of a request. Copies share it. It may outlive the pipeline. Its outcome counts as read when results()
// or failure() has given it, or when the last copy is gone.
class Ticket {
 public:
  Ticket(std::shared_ptr<Core> core, std::shared_ptr<Request> request);

  // Returns the number of the request, in the order of submission.
  uint64_t number() const { return request_->number; }
  bool is_done() const;
  // Waits for the outcome: returns whether there was one by then.
  bool wait(Until until = {}) const;
  // Waits, and returns the outputs in the order of the pipeline's. Throws RequestError for a request that failed.
  std::vector<Value> results() const;
  // Returns why the request failed; nothing if it did not, or is not done.
  std::optional<Failure> failure() const;
  // Ends the request: one that waits gives its place back, one that has started does so at the next stage. Returns
  // whether it was not done before.
  bool cancel() const;
  // Calls the function with this ticket once there is an outcome, in a thread of the pipeline or of what ends the
  // request; at once if there is one. It must not block, and what it throws is lost.
  void on_done(std::function<void(const Ticket&)> function) const;

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<Request> request_;
  std::shared_ptr<Unread> unread_;  // null where unread outcomes are not counted
};

struct SubmitOptions {
  Until place_until = {};     // how long to wait for a place; nothing: for ever
  Until deadline = {};        // the request fails if it is not done by then
  bool keeps_inputs = false;  // tensors are read in place, not copied, and nobody writes them before the outcome
  // As Ticket::on_done.
  std::function<void(const Ticket&)> on_done = {};
};

// Any thread may call any of its functions.
class Pipeline {
 public:
  // Checks the spec and takes all memory; starts it, unless the options say otherwise. UserError as check_spec, and for
  // processors that this process may not use, or without memory.
  explicit Pipeline(PipelineSpec spec, const PipelineOptions& options = {});
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  // Stops the pipeline. A call that does not return in time keeps its thread and what it uses.
  ~Pipeline();

  // Starts the threads, and returns when the stages have warmed up, if they do; nothing happens where it was started
  // before. UserError without threads and for a stage that fails on zeros, which stops the pipeline; RefusedError for
  // one that is stopped.
  void start();

  const PipelineSpec& spec() const;
  const PipelineOptions& options() const;

  // Submits a request, with one value for each input, in the order of the spec. A tensor for a typed input is checked
  // and copied. Throws UserError for values that do not fit, and for parameters that were never set; RefusedError where
  // the pipeline does not take it now; a stage or callback that submits to its own pipeline never waits. Nothing has
  // entered then.
  Ticket submit(std::vector<Value> inputs, SubmitOptions options = {});
  // Waits, as submit does, for a place or the end of the pipeline; returns at once where submit does not wait. Returns
  // whether there was one by then; another caller may take it.
  bool wait_for_place(Until until = {});
  // Returns whether a submission by this thread waits for a place.
  bool waits_for_places() const;
  // Submits a request whose outcome next() and next_done() return, once; it has a place until then. One that is dropped
  // for a newer request has no outcome. Returns its number.
  uint64_t push(std::vector<Value> inputs, SubmitOptions options = {});
  // Return a ticket that is done: of the oldest request that was pushed, or of the first that was done. Nothing when
  // there was none by then, or when the pipeline is stopped and has none left.
  std::optional<Ticket> next(Until until = {});
  std::optional<Ticket> next_done(Until until = {});
  // Returns how many outcomes next_done() returns without waiting.
  size_t num_ready() const;

  // Replaces parameters of a group; the values are copied. Returns the number of the first request that sees them: it
  // sees all of them. UserError for a group or name that does not exist, and values that do not fit.
  uint64_t set_params(const std::string& group, const std::map<std::string, NDArray>& values);

  State state() const;
  // Lets a degraded pipeline take requests again.
  void reset();
  // Takes no more requests and stops when those that it has are done. Returns false, still draining, if they are not
  // done by then. Where another thread stops it meanwhile, returns whether no call runs any more.
  bool drain(Until until = {});
  // Stops: requests that wait, or are in the stages, end with a failure; calls that run are waited for. Returns the
  // names of the stages whose calls had not returned by then; their threads go on. Calls in processes of their own are
  // ended then, unless `keeps_calls`. From a thread of the pipeline, it does not wait.
  std::vector<std::string> stop(Until until = {}, bool keeps_calls = false);

  PipelineMetrics metrics() const;

  // Records from now on when each stage works and waits, until stop_trace(). Each thread of the pipeline keeps its last
  // TraceRing::kEvents events. Times that had begun before belong to the trace from its begin on. UserError while a
  // trace is recorded.
  void start_trace();
  // Return what was recorded since start_trace(); calls that run are not in it yet. A trace without events when none is
  // recorded.
  Trace trace() const;
  Trace stop_trace();

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace headrace::executors::pipeline
