#include "executors/pipeline/flow.h"

#include <algorithm>

#include "base/error.h"
#include "executors/pipeline/slots.h"

namespace headrace::executors::pipeline {
namespace {

using Kind = Source::Kind;

constexpr uint64_t kReserved = ~uint64_t{0};

int64_t nanoseconds_of(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

Failure stage_failure(const Stage& stage, const Request& request, Ref<ErrorObj> cause) {
  return {.kind = FailureKind::stage_failed,
          .request = request.number,
          .stage = stage.spec.name,
          .backend = stage.spec.backend,
          .cause = std::move(cause)};
}

}  // namespace

bool is_stuck(const Stage& stage, const Replica& replica) {
  const double limit = stage.spec.time_limit_seconds * 1e9;
  const int64_t since = replica.running_since.load(std::memory_order_acquire);
  return limit > 0 && since != 0 && static_cast<double>(nanoseconds_of(Clock::now()) - since) > limit;
}

Flow::Flow(const PipelineSpec& spec, const std::vector<size_t>& order, size_t most_tokens, FlowEvents events)
    : events_(std::move(events)), entries_(most_tokens) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (const size_t index : order) make_stage(spec, index, place);
  make_channels(spec, place, most_tokens);
  find_neighbours();
}

void Flow::make_stage(const PipelineSpec& spec, size_t index, const std::vector<size_t>& place) {
  auto stage = std::make_unique<Stage>();
  stage->spec = spec.stages[index];
  stage->is_source = true;
  for (Source source : stage->spec.inputs) {
    if (source.kind == Kind::stage) {
      source.index = place[source.index];
      stage->is_source = false;
    }
    stage->inputs.push_back({.source = source});
  }
  stage->outputs.resize(stage->spec.replicas[0]->outputs().size());
  for (const std::shared_ptr<StageCode>& code : stage->spec.replicas) {
    auto replica = std::make_unique<Replica>();
    replica->code = code;
    replica->arguments.resize(stage->inputs.size());
    replica->results.resize(stage->outputs.size());
    stage->replicas.push_back(std::move(replica));
  }
  if (stage->is_source &&
      std::find(source_groups_.begin(), source_groups_.end(), stage->spec.group) == source_groups_.end())
    source_groups_.push_back(stage->spec.group);
  stages_.push_back(std::move(stage));
}

// Gives every output its slots: the most that one of its edges needs, and one more for each replica but one.
void Flow::make_channels(const PipelineSpec& spec, const std::vector<size_t>& place, size_t most_tokens) {
  std::vector<StageEdge> edges;
  for (size_t i = 0; i < stages_.size(); ++i) {
    for (const StageInput& input : stages_[i]->inputs) {
      if (input.source.kind != Kind::stage) continue;
      edges.push_back({.producer = static_cast<int32_t>(input.source.index), .consumer = static_cast<int32_t>(i)});
    }
  }
  const std::vector<int32_t> needed = slots_of_edges(static_cast<int32_t>(stages_.size()), edges);
  size_t edge = 0;
  for (const std::unique_ptr<Stage>& consumer : stages_) {
    for (StageInput& input : consumer->inputs) {
      if (input.source.kind != Kind::stage) continue;
      Stage& producer = *stages_[input.source.index];
      Channel& channel = producer.outputs[input.source.port];
      const size_t replicas = producer.replicas.size() + consumer->replicas.size() - 2;
      channel.num_slots = std::max(channel.num_slots, static_cast<size_t>(needed[edge++]) + replicas);
      channel.num_readers += 1;
      input.channel = &channel;
    }
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const Source& source = spec.outputs[i].source;
    stages_[place[source.index]]->outputs[source.port].results.push_back(i);
  }
  for (const std::unique_ptr<Stage>& stage : stages_) make_slots(*stage, most_tokens);
}

// An output that no stage reads has no slots: its values leave the pipeline, or end, as soon as they are made.
void Flow::make_slots(Stage& stage, size_t most_tokens) {
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    Channel& channel = stage.outputs[i];
    const Port& port = stage.spec.replicas[0]->outputs()[i];
    channel.num_slots = std::min(channel.num_slots, most_tokens + stage.replicas.size());
    channel.slots = std::make_unique<Slot[]>(channel.num_slots);
    if (port.is_any) continue;
    const size_t most_fresh = channel.results.empty() ? stage.replicas.size() : most_tokens;
    channel.pool.emplace(port.spec, channel.stays() ? channel.num_slots : most_fresh, channel.stays() ? 0 : most_fresh);
    for (size_t slot = 0; slot < channel.num_slots && channel.stays(); ++slot)
      channel.slots[slot].memory = Value(channel.pool->take());
  }
}

void Flow::find_neighbours() {
  const auto join = [](Stage& stage, size_t group) {
    std::vector<size_t>& known = stage.neighbours;
    if (group != stage.spec.group && std::find(known.begin(), known.end(), group) == known.end())
      known.push_back(group);
  };
  for (const std::unique_ptr<Stage>& consumer : stages_) {
    for (const StageInput& input : consumer->inputs) {
      if (input.source.kind != Kind::stage) continue;
      Stage& producer = *stages_[input.source.index];
      join(producer, consumer->spec.group);
      join(*consumer, producer.spec.group);
    }
  }
  // Replicas wait for each other's slots.
  for (const std::unique_ptr<Stage>& stage : stages_) {
    if (stage->replicas.size() > 1) stage->neighbours.push_back(stage->spec.group);
  }
}

// Whether the request with that token is in the pipeline; lets the next one in if it is that one's turn.
bool Flow::is_admitted(uint64_t token) {
  if (admitted_.load(std::memory_order_acquire) > token) return true;
  const std::lock_guard lock(mutex_);
  if (admitted_.load(std::memory_order_relaxed) > token) return true;
  std::shared_ptr<Request>& entry = entries_[token % entries_.size()];
  if (entry != nullptr) return false;
  std::shared_ptr<Request> request = events_.next_request();
  if (request == nullptr) return false;
  request->stages_left.store(stages_.size(), std::memory_order_relaxed);
  entry = std::move(request);
  admitted_.store(token + 1, std::memory_order_release);
  return true;
}

// Replicas share the stage's next token; a single one is alone.
std::unique_lock<std::mutex> Flow::lock_claims(Stage& stage) {
  std::unique_lock lock(stage.claims, std::defer_lock);
  if (stage.replicas.size() > 1) lock.lock();
  return lock;
}

Waiting Flow::waits(Stage& stage) {
  const std::unique_lock lock = lock_claims(stage);
  return waits_for(stage, stage.next);
}

Waiting Flow::waits_for(Stage& stage, uint64_t token) {
  for (const StageInput& input : stage.inputs) {
    if (input.channel == nullptr) continue;
    if (input.channel->slot_of(token).holds.load(std::memory_order_acquire) != token + 1) return Waiting::for_input;
  }
  for (const Channel& channel : stage.outputs) {
    if (channel.num_readers == 0) continue;
    if (channel.slot_of(token).holds.load(std::memory_order_acquire) != 0) return Waiting::for_place;
  }
  return stage.is_source && !is_admitted(token) ? Waiting::for_input : Waiting::no;
}

// Takes the stage's next token. With replicas the slots are marked, since the other replicas look at them before they
// are written.
bool Flow::claim(Stage& stage, uint64_t& token) {
  const std::unique_lock lock = lock_claims(stage);
  if (waits_for(stage, stage.next) != Waiting::no) return false;
  token = stage.next++;
  for (const Channel& channel : stage.outputs) {
    if (channel.num_readers > 0) channel.slot_of(token).holds.store(kReserved, std::memory_order_relaxed);
  }
  return true;
}

bool Flow::run_next(Stage& stage, Replica& replica, Clock::time_point& now) {
  uint64_t token = 0;
  if (!claim(stage, token)) return false;
  Request& request = *entries_[token % entries_.size()];
  const bool is_late = request.deadline.has_value() && now >= *request.deadline;
  if (is_late) request.fail({.kind = FailureKind::deadline, .request = request.number, .stage = stage.spec.name});
  if (request.is_dead()) {
    replica.skipped.add(1);
  } else if (!compute(stage, replica, token, request, now)) {
    std::fill(replica.results.begin(), replica.results.end(), Value());
  }
  publish(stage, replica, token, request);
  release_inputs(stage, token);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before another group is found asleep or not
  for (const size_t group : stage.neighbours) events_.wake(group);
  if (pass(token, request)) now = Clock::now();  // the callbacks of the request took their time
  return true;
}

// Points the replica at the request's inputs and at memory for its outputs.
void Flow::gather(Stage& stage, Replica& replica, uint64_t token, const Request& request) {
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const StageInput& input = stage.inputs[i];
    switch (input.source.kind) {
      case Kind::input:
        replica.arguments[i] = &request.inputs[input.source.index];
        break;
      case Kind::param:
        replica.arguments[i] = &(*request.params)[input.source.index];
        break;
      case Kind::stage:
        replica.arguments[i] = &input.channel->slot_of(token).value;
        break;
    }
  }
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    Channel& channel = stage.outputs[i];
    if (!channel.pool.has_value()) continue;
    if (!channel.stays()) {
      replica.results[i] = Value(channel.pool->take());
      continue;
    }
    Value& memory = channel.slot_of(token).memory;
    if (memory.is_none()) memory = Value(channel.pool->take());
    replica.results[i] = memory;
  }
}

// Runs the stage's code for a request. Returns whether it succeeded; a failure is the request's, from then on.
bool Flow::compute(Stage& stage, Replica& replica, uint64_t token, Request& request, Clock::time_point& now) {
  Ref<ErrorObj> error;
  const Clock::time_point start = now;
  try {
    gather(stage, replica, token, request);
    replica.running_token.store(token, std::memory_order_relaxed);
    replica.running_since.store(nanoseconds_of(start), std::memory_order_release);
    error = replica.code->run(replica.arguments, replica.results);
  } catch (...) {  // no memory for the outputs
    store_current_exception();
    error = take_stored_error();
  }
  replica.running_since.store(0, std::memory_order_release);
  now = Clock::now();
  const auto time = static_cast<uint64_t>(std::chrono::nanoseconds(now - start).count());
  replica.busy_ns.add(time);
  stage.run_ns.add(time);
  replica.items.add(1);
  if (!error) {
    events_.stage_worked(stage);
    return true;
  }
  replica.errors.add(1);
  const Failure failure = stage_failure(stage, request, std::move(error));
  request.fail(failure);
  events_.stage_failed(stage, failure);
  return false;
}

void Flow::publish(Stage& stage, Replica& replica, uint64_t token, Request& request) {
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    Channel& channel = stage.outputs[i];
    Value& result = replica.results[i];
    for (const size_t output : channel.results) request.outputs[output] = result;
    if (channel.num_readers == 0) {
      result = Value();
      continue;
    }
    Slot& slot = channel.slot_of(token);
    slot.value = std::move(result);
    slot.readers_left.store(channel.num_readers, std::memory_order_relaxed);
    slot.holds.store(token + 1, std::memory_order_release);
  }
}

void Flow::release_inputs(Stage& stage, uint64_t token) {
  for (const StageInput& input : stage.inputs) {
    if (input.channel == nullptr) continue;
    Slot& slot = input.channel->slot_of(token);
    if (slot.readers_left.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    slot.value = Value();
    // A function may keep a tensor that it was given; then it has the memory, and the slot gets other memory.
    if (!slot.memory.is_none() && !slot.memory.object()->is_unique()) slot.memory = Value();
    slot.holds.store(0, std::memory_order_release);
  }
}

// Counts a stage that a request has passed; after the last one the request leaves. Returns whether it did.
bool Flow::pass(uint64_t token, Request& request) {
  if (request.stages_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  std::shared_ptr<Request> leaving;
  {
    const std::lock_guard lock(mutex_);
    leaving = std::move(entries_[token % entries_.size()]);
  }
  events_.leave(leaving);
  return true;
}

void Flow::for_each_request(const std::function<void(uint64_t, const std::shared_ptr<Request>&)>& visit) {
  std::vector<std::pair<uint64_t, std::shared_ptr<Request>>> found;
  {
    const std::lock_guard lock(mutex_);
    const uint64_t end = admitted_.load(std::memory_order_relaxed);
    const uint64_t size = entries_.size();
    for (uint64_t token = end > size ? end - size : 0; token < end; ++token) {
      const std::shared_ptr<Request>& request = entries_[token % size];
      if (request != nullptr) found.emplace_back(token, request);
    }
  }
  for (const auto& [token, request] : found) visit(token, request);
}

}  // namespace headrace::executors::pipeline
