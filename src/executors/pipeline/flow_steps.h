// The steps of a call of a stage, for one request and for several. They are inline, since a request takes less than a
// microsecond at a stage; those that are larger are marked so, since a call of each costs as much as its work.
#pragma once

#include "executors/pipeline/flow.h"

namespace headrace::executors::pipeline {

// The state of a slot while its value is made.
inline constexpr uint64_t kReserved = ~uint64_t{0};

// Returns whether all values that other stages make for the token are there.
inline bool has_inputs(const Stage& stage, uint64_t token) {
  for (const StageInput& input : stage.inputs) {
    if (input.channel == nullptr) continue;
    if (input.channel->slot_of(token).holds.load(std::memory_order_acquire) != token + 1) return false;
  }
  return true;
}

// Returns the bytes that a value counts for in a queue; more than any queue holds where they are not known.
inline int64_t bytes_in_queue(const Value& value) {
  constexpr int64_t kUnknown = int64_t{1} << 40;
  const int32_t type = value.type_index();
  if (type == type_index::kNone || type == type_index::kBool || type == type_index::kInt || type == type_index::kFloat)
    return 0;
  return matches_item<NDArray>(value.raw()) ? static_cast<int64_t>(value.as<NDArray>().size_bytes()) : kUnknown;
}

// Returns whether a channel that holds too much already has as many values as it must hold.
inline bool is_heavy(const Channel& channel, uint64_t token) {
  const Queue* queue = channel.queue.get();
  if (queue == nullptr || token < queue->least) return false;
  if (queue->bytes.load(std::memory_order_acquire) <= queue->most_bytes) return false;
  const uint64_t before = token - queue->least;
  return channel.slot_of(before).holds.load(std::memory_order_acquire) == before + 1;
}

// Returns whether the slots for the token's results are free.
[[gnu::always_inline]] inline bool has_places(const Stage& stage, uint64_t token) {
  for (const Channel& channel : stage.outputs) {
    if (channel.num_readers == 0) continue;
    if (channel.slot_of(token).holds.load(std::memory_order_acquire) != 0 || is_heavy(channel, token)) return false;
  }
  return true;
}

// Returns whether the stage waits for others: to make its inputs, or to take its outputs.
[[gnu::always_inline]] inline Waiting waits_for_neighbours(const Stage& stage, uint64_t token) {
  if (!has_inputs(stage, token)) return Waiting::for_input;
  return has_places(stage, token) ? Waiting::no : Waiting::for_place;
}

// Marks the slots of a token as taken.
inline void reserve(const Stage& stage, uint64_t token) {
  for (const Channel& channel : stage.outputs) {
    if (channel.num_readers > 0) channel.slot_of(token).holds.store(kReserved, std::memory_order_relaxed);
  }
}

// Marks a request as failed by its deadline.
void expire(const Stage& stage, Request& request);

// Returns whether the request's deadline has passed; the request has failed then.
inline bool is_late(const Stage& stage, Request& request, Clock::time_point now) {
  if (!request.deadline.has_value() || now < *request.deadline) return false;
  expire(stage, request);
  return true;
}

// Wakes the groups that wait for what the stage has taken or made.
inline void wake_neighbours(const FlowEvents& events, const Stage& stage) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before another group is found asleep or not
  for (const size_t group : stage.neighbours) events.wake(group);
}

// Returns the value of an input for a request.
inline const Value* argument_of(const StageInput& input, uint64_t token, const Request& request) {
  switch (input.source.kind) {
    case Source::Kind::input:
      return &request.inputs[input.source.index];
    case Source::Kind::param:
      return &(*request.params)[input.source.index];
    case Source::Kind::stage:
      break;
  }
  return &input.channel->slot_of(token).value;
}

// Sets the value of an output that the stage will write: a tensor, or nothing where it makes the value.
inline void set_memory(Channel& channel, uint64_t token, Value& result) {
  if (!channel.pool.has_value()) return;
  if (!channel.stays()) {
    result = Value(channel.pool->take());
    return;
  }
  Value& memory = channel.slot_of(token).memory;
  if (memory.is_none()) memory = Value(channel.pool->take());
  result = memory;
}

// Points the replica at the request's inputs and at memory for its outputs.
[[gnu::always_inline]] inline void gather(Stage& stage, Replica& replica, uint64_t token, const Request& request) {
  for (size_t i = 0; i < stage.inputs.size(); ++i) replica.arguments[i] = argument_of(stage.inputs[i], token, request);
  for (size_t i = 0; i < stage.outputs.size(); ++i) set_memory(stage.outputs[i], token, replica.results[i]);
}

// Notes that a call begins, for the watch over time limits.
inline void begin_call(Replica& replica, uint64_t token, Clock::time_point start) {
  replica.running_token.store(token, std::memory_order_relaxed);
  replica.running_since.store(nanoseconds_of(start), std::memory_order_release);
}

// Notes that a call has ended; returns the time.
inline Clock::time_point end_call(Stage& stage, Replica& replica, const CallNote& call) {
  replica.running_since.store(0, std::memory_order_release);
  const Clock::time_point now = Clock::now();
  const auto time = static_cast<uint64_t>(std::chrono::nanoseconds(now - call.start).count());
  replica.busy_ns.add(time);
  stage.run_ns.add(time);
  if (TraceRing* trace = replica.trace.load(std::memory_order_acquire))
    trace->add({.begin_ns = nanoseconds_of(call.start),
                .end_ns = nanoseconds_of(now),
                .request = call.request,
                .requests = static_cast<uint32_t>(call.requests),
                .lane = replica.lane,
                .kind = call.has_failed ? TraceEvent::Kind::failed_call : TraceEvent::Kind::call});
  return now;
}

// Puts results where their readers find them: that of output i is results[i * stride]. They are empty for a request
// that has failed.
[[gnu::always_inline]] inline void publish(Stage& stage, Value* results, size_t stride, uint64_t token,
                                           Request& request, Clock::time_point now) {
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    Channel& channel = stage.outputs[i];
    Value& result = results[i * stride];
    for (const size_t output : channel.results) request.outputs[output] = result;
    if (channel.num_readers == 0) {
      result = Value();
      continue;
    }
    Slot& slot = channel.slot_of(token);
    slot.value = std::move(result);
    if (channel.queue != nullptr) channel.queue->bytes.fetch_add(bytes_in_queue(slot.value), std::memory_order_relaxed);
    slot.since = now;
    slot.readers_left.store(channel.num_readers, std::memory_order_relaxed);
    slot.holds.store(token + 1, std::memory_order_release);
  }
}

// Gives back what the token had of the stage's inputs: the last reader frees the slot.
[[gnu::always_inline]] inline void release_inputs(Stage& stage, uint64_t token) {
  for (const StageInput& input : stage.inputs) {
    if (input.channel == nullptr) continue;
    Slot& slot = input.channel->slot_of(token);
    if (slot.readers_left.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (Queue* queue = input.channel->queue.get())
      queue->bytes.fetch_sub(bytes_in_queue(slot.value), std::memory_order_relaxed);
    slot.value = Value();
    // A function may keep a tensor that it was given; then it has the memory, and the slot gets other memory.
    if (!slot.memory.is_none() && !slot.memory.object()->is_unique()) slot.memory = Value();
    slot.holds.store(0, std::memory_order_release);
  }
}

}  // namespace headrace::executors::pipeline
