// Flow: the way of requests through the stages of a pipeline.
//
// A request that has been admitted is a token with a number, which counts up. Every stage takes every token, in the
// order of the numbers; a stage skips the work for a request that has failed, but takes its token. So two values meet
// at a stage because they have the same number, never because of when they arrive.
//
// A stage's output has a few slots, and token k uses slot k modulo their number: the producer writes its result there,
// and consumers read it in place. A slot is free when all consumers have taken their token. Tokens therefore wait where
// the next slot is taken, which is the pipeline's backpressure, and no token waits for a later one, so none waits for
// ever.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "executors/pipeline/counters.h"
#include "executors/pipeline/entrance.h"
#include "executors/pipeline/request.h"
#include "executors/pipeline/spec.h"
#include "executors/pipeline/tensor_pool.h"
#include "executors/pipeline/trace.h"

namespace headrace::executors::pipeline {

// One place for a value between a producer and its consumers.
struct alignas(64) Slot {
  std::atomic<uint64_t> holds = 0;  // the token's number and 1; 0: free; kReserved: being written
  std::atomic<uint32_t> readers_left = 0;
  Clock::time_point since{};  // when the value was made
  Value value;                // empty for a request that has failed
  Value memory;  // a tensor that stays with the slot, while nobody else keeps it; empty where values are made anew
};

// How much waits in a channel between two threads whose values may be of any size: `least` values, and more while they
// are within `most_bytes` together.
struct Queue {
  size_t least = 0;
  int64_t most_bytes = 0;
  std::atomic<int64_t> bytes = 0;
};

// An output of a stage.
struct Channel {
  std::unique_ptr<Slot[]> slots;
  size_t num_slots = 0;
  bool is_queue = false;           // read by another thread: may have more slots than it needs
  std::unique_ptr<Queue> queue;    // queue of values of any type; null: all slots may be taken
  uint32_t num_readers = 0;        // inputs of stages
  std::vector<size_t> results;     // outputs of the pipeline
  std::optional<TensorPool> pool;  // pool of its tensors; empty for values of any type

  Slot& slot_of(uint64_t token) const { return slots[token % num_slots]; }
  // Returns whether its tensors stay in its slots: stages read them, and they do not leave the pipeline.
  bool stays() const { return num_readers > 0 && results.empty(); }
};

// An input of a stage: `channel` is where it lies if another stage makes it.
struct StageInput {
  Source source;
  const Channel* channel = nullptr;
};

// A request of a batch.
struct BatchEntry {
  Request* request = nullptr;
  uint64_t token = 0;
};

// Describes a call for metrics and traces.
struct CallNote {
  Clock::time_point start;
  uint64_t request = 0;  // the number of the first one
  size_t requests = 1;
  bool has_failed = false;
};

// State that only the thread uses that runs a replica.
struct Replica {
  std::shared_ptr<StageCode> code;
  // The values of one request; in a batch those of each port follow each other, as in BatchCall.
  std::vector<const Value*> arguments;
  std::vector<Value> results;
  // For a stage that takes batches: the requests of the call, and their errors; the values of one that is tried alone.
  std::vector<BatchEntry> entries;
  std::vector<Ref<ErrorObj>> batch_errors;
  std::vector<const Value*> lone_arguments;
  std::vector<Value> lone_results;
  // The time at which the running call began, and its token; 0: none runs. Read by the watch over time limits.
  std::atomic<int64_t> running_since = 0;
  std::atomic<uint64_t> running_token = 0;
  // Requests that it worked on; of these, failures; requests that it skipped. Nanoseconds of work, and of waiting for
  // inputs and for places.
  Counter items, errors, skipped, busy_ns, starved_ns, blocked_ns;
  std::atomic<TraceRing*> trace = nullptr;  // where its times are noted; null: they are not
  uint32_t lane = 0;                        // in a trace
  Counter batches, waited_ns;               // calls for several requests; nanoseconds that requests waited for them
};

struct Stage {
  StageSpec spec;
  std::vector<StageInput> inputs;
  std::vector<Channel> outputs;
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<size_t> neighbours;   // other groups that wait for what this stage takes or makes
  bool is_source = false;           // reads the output of no other stage
  size_t batch = 0;                 // requests of one call; 0: the code takes one at a time
  size_t max_rows = 0;              // no request joins a call that has as many rows
  std::optional<size_t> row_input;  // whose tensors have any number of rows; none: each request has one row
  size_t most_tokens = 0;           // in one call: those requests, and others that have failed before
  std::chrono::nanoseconds max_delay{};
  std::mutex claims;  // guards `next` where there are replicas
  uint64_t next = 0;  // the token to take
  std::atomic<uint64_t> failures_in_row = 0;
  Histogram run_ns;
};

// Returns whether the replica's call runs, for longer than its stage allows.
bool is_stuck(const Stage& stage, const Replica& replica);

// Returns the failure of a request in a stage.
Failure stage_failure(const Stage& stage, const Request& request, Ref<ErrorObj> cause);

// Why a stage cannot take its next token.
enum class Waiting : uint8_t { no, for_input, for_place };

// Functions that the flow calls in the pipeline around it.
struct FlowEvents {
  std::function<std::shared_ptr<Request>()> next_request;  // the oldest that waits, or null
  // Shows the requests that wait, oldest first, until the function returns false.
  std::function<void(const std::function<bool(const Request&)>&)> see_queue;
  std::function<void(const std::shared_ptr<Request>&)> leave;
  std::function<void(Stage&, const Failure&)> stage_failed;
  std::function<void(Stage&)> stage_worked;
  std::function<void(size_t group)> wake;
};

// How many requests may be in the stages at a time, and how many bytes a channel between two threads may take for slots
// beyond those that it needs (slots.h).
struct FlowRoom {
  size_t most_tokens = 0;
  size_t queue_bytes = 0;
};

class Flow {
 public:
  // `order` is the one in which requests pass the stages. UserError without memory.
  Flow(const PipelineSpec& spec, const std::vector<size_t>& order, const FlowRoom& room, FlowEvents events);

  // In the order in which requests pass them.
  const std::vector<std::unique_ptr<Stage>>& stages() const { return stages_; }
  const std::vector<size_t>& source_groups() const { return source_groups_; }

  // Returns why the stage cannot take its next token now. Moves `due` to the time at which a batch that waits for more
  // requests is due, if that is earlier.
  Waiting waits(Stage& stage, Until& due);
  // Lets a replica take its stage's next token, if it can: returns whether it did. `now` is the time, and is moved on
  // by the work.
  bool run_next(Stage& stage, Replica& replica, Clock::time_point& now);

  // Returns whether requests need the time at which they enter.
  bool needs_entry_times() const { return needs_entry_times_; }
  // Lets no batch wait for more requests from now on; wake the groups then.
  void hurry() { is_hurried_.store(true, std::memory_order_release); }

  // Calls `visit` for each request that has been admitted and has not left, oldest first, with the token's number.
  void for_each_request(const std::function<void(uint64_t token, const std::shared_ptr<Request>&)>& visit);

 private:
  // Tokens that follow each other, for one call of a stage that takes batches.
  struct Range {
    uint64_t first = 0;
    size_t count = 0;                 // tokens whose inputs are there
    size_t live = 0;                  // requests of these that have not failed
    size_t queued = 0;                // further requests, which are not admitted yet
    size_t rows = 0;                  // rows of all these requests
    bool is_closed = false;           // no other request can join
    const Request* oldest = nullptr;  // the first that has not failed; valid while the range is looked for
    Clock::time_point since{};        // the arrival of the first request
  };

  void make_stage(const PipelineSpec& spec, size_t index, const std::vector<size_t>& place, size_t most_tokens);
  static void make_batch(Stage& stage, size_t most_tokens);
  static void make_replica(Stage& stage, const std::shared_ptr<StageCode>& code);
  void make_channels(const PipelineSpec& spec, const std::vector<size_t>& order, const std::vector<size_t>& place,
                     const FlowRoom& room);
  static void make_slots(Stage& stage, const FlowRoom& room);
  void find_neighbours();
  bool is_admitted(uint64_t token);
  Waiting waits_for(Stage& stage, uint64_t token);
  std::unique_lock<std::mutex> lock_claims(Stage& stage);
  bool claim(Stage& stage, uint64_t& token);
  bool run_one(Stage& stage, Replica& replica, Clock::time_point& now);
  bool compute(Stage& stage, Replica& replica, uint64_t token, Request& request, Clock::time_point& now);
  void fail(Stage& stage, Replica& replica, Request& request, const Failure& failure);

  // For stages that take batches: flow_batch.cc.
  Range look_for_batch(const Stage& stage);
  Range look_at_tokens(const Stage& stage);
  bool look_at_queue(const Stage& stage, Range& range);
  static bool join(const Stage& stage, Range& range, const Request& request, const Value* rows,
                   Clock::time_point arrival);
  Waiting batch_waits(const Stage& stage, const Range& range, Clock::time_point now, Until& due) const;
  bool claim_batch(Stage& stage, Clock::time_point now, Range& range);
  bool run_batch(Stage& stage, Replica& replica, Clock::time_point& now);
  void choose_entries(Stage& stage, Replica& replica, const Range& range, Clock::time_point now);
  void compute_batch(Stage& stage, Replica& replica, Clock::time_point& now);
  static void gather_batch(Stage& stage, Replica& replica);
  static Ref<ErrorObj> call_batch(const Stage& stage, Replica& replica);
  void settle_batch(Stage& stage, Replica& replica, const Ref<ErrorObj>& error);
  void try_each_alone(Stage& stage, Replica& replica, Clock::time_point& now);
  static Ref<ErrorObj> call_alone(const Stage& stage, Replica& replica, size_t entry);
  void publish_batch(Stage& stage, Replica& replica, const Range& range, Clock::time_point now);
  static bool have_same_params(const Stage& stage, const Request& a, const Request& b);
  static Clock::time_point arrival_of(const Stage& stage, uint64_t token, const Request& request);
  Request& request_of(uint64_t token) const { return *entries_[token % entries_.size()]; }
  bool pass(uint64_t token, Request& request);

  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<size_t> source_groups_;
  bool needs_entry_times_ = false;
  std::atomic<bool> is_hurried_ = false;
  FlowEvents events_;
  std::mutex mutex_;                               // guards the entries and admission
  std::vector<std::shared_ptr<Request>> entries_;  // by token, modulo their number
  std::atomic<uint64_t> admitted_ = 0;
};

}  // namespace headrace::executors::pipeline
