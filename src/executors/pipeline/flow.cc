#include "executors/pipeline/flow.h"

#include <algorithm>

#include "base/error.h"
#include "executors/pipeline/channel_slots.h"
#include "executors/pipeline/flow_steps.h"

namespace headrace::executors::pipeline {
namespace {

using Kind = Source::Kind;

// The most slots of a channel that needs fewer.
constexpr size_t kMostQueued = 64;

// Returns how many slots of a port's values the bytes of a queue hold. Values of any type have no memory here; Queue
// bounds these. The memory of a device holds no more than the stages need.
size_t slots_of_queue(const Port& port, const FlowRoom& room) {
  if (room.queue_bytes == 0 || port.spec.location.device != cpu()) return 0;
  if (port.is_any) return kMostQueued;
  const auto bytes = static_cast<size_t>(num_elements(port.spec.shape)) * port.spec.dtype.bytes();
  return std::min(kMostQueued, room.queue_bytes / (bytes + sizeof(Slot) + sizeof(NDArrayObj)));
}

}  // namespace

void expire(const Stage& stage, Request& request) {
  request.fail({.kind = FailureKind::deadline, .request = request.number, .stage = stage.spec.name});
}

Failure stage_failure(const Stage& stage, const Request& request, Ref<ErrorObj> cause) {
  return {.kind = stage.spec.replicas[0]->failure_kind(*cause),
          .request = request.number,
          .stage = stage.spec.name,
          .backend = stage.spec.backend,
          .cause = std::move(cause)};
}

bool is_stuck(const Stage& stage, const Replica& replica) {
  const double limit = stage.spec.time_limit_seconds * 1e9;
  const int64_t since = replica.running_since.load(std::memory_order_acquire);
  return limit > 0 && since != 0 && static_cast<double>(nanoseconds_of(Clock::now()) - since) > limit;
}

Flow::Flow(const PipelineSpec& spec, const std::vector<size_t>& order, const FlowRoom& room, FlowEvents events)
    : events_(std::move(events)), entries_(room.most_tokens) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (const size_t index : order) make_stage(spec, index, place, room.most_tokens);
  make_channels(spec, order, place, room);
  find_neighbours();
}

void Flow::make_stage(const PipelineSpec& spec, size_t index, const std::vector<size_t>& place, size_t most_tokens) {
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
  if (stage->spec.batch.has_value()) make_batch(*stage, most_tokens);
  for (const std::shared_ptr<StageCode>& code : stage->spec.replicas) make_replica(*stage, code);
  if (stage->is_source && stage->batch > 0) needs_entry_times_ = true;
  if (stage->is_source &&
      std::find(source_groups_.begin(), source_groups_.end(), stage->spec.group) == source_groups_.end())
    source_groups_.push_back(stage->spec.group);
  stages_.push_back(std::move(stage));
}

void Flow::make_replica(Stage& stage, const std::shared_ptr<StageCode>& code) {
  auto replica = std::make_unique<Replica>();
  const size_t requests = std::max<size_t>(stage.batch, 1);
  replica->code = code;
  replica->arguments.resize(stage.inputs.size() * requests);
  replica->results.resize(stage.outputs.size() * requests);
  if (stage.batch > 0) {
    replica->entries.reserve(stage.batch);
    replica->batch_errors.resize(stage.batch);
    replica->lone_arguments.resize(stage.inputs.size());
    replica->lone_results.resize(stage.outputs.size());
  }
  stage.replicas.push_back(std::move(replica));
}

void Flow::make_channels(const PipelineSpec& spec, const std::vector<size_t>& order, const std::vector<size_t>& place,
                         const FlowRoom& room) {
  const std::vector<size_t> slots = slots_of_inputs(spec, order, room.most_tokens);
  size_t next = 0;
  for (const std::unique_ptr<Stage>& consumer : stages_) {
    for (StageInput& input : consumer->inputs) {
      if (input.source.kind != Kind::stage) continue;
      Stage& producer = *stages_[input.source.index];
      Channel& channel = producer.outputs[input.source.port];
      channel.num_slots = std::max(channel.num_slots, slots[next++]);
      // A stage that takes batches waits for places of a whole batch, and so takes full ones before a slow stage.
      channel.is_queue |= producer.spec.group != consumer->spec.group && producer.batch == 0;
      channel.num_readers += 1;
      input.channel = &channel;
    }
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const Source& source = spec.outputs[i].source;
    stages_[place[source.index]]->outputs[source.port].results.push_back(i);
  }
  for (const std::unique_ptr<Stage>& stage : stages_) make_slots(*stage, room);
}

// An output that no stage reads has no slots: its values leave the pipeline, or end, as soon as they are made. To wake
// a thread takes as long as many short calls, so a channel between two threads is a queue where there is room for one:
// the thread that wakes then finds several requests.
void Flow::make_slots(Stage& stage, const FlowRoom& room) {
  const size_t most_tokens = room.most_tokens;
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    Channel& channel = stage.outputs[i];
    const Port& port = stage.spec.replicas[0]->outputs()[i];
    const size_t needed = channel.num_slots;
    if (channel.is_queue) channel.num_slots = std::max(needed, slots_of_queue(port, room));
    channel.num_slots = std::min(channel.num_slots, most_tokens + stage.replicas.size());
    if (port.is_any && channel.num_slots > needed) {
      channel.queue = std::make_unique<Queue>();
      channel.queue->least = needed;
      channel.queue->most_bytes = static_cast<int64_t>(room.queue_bytes);
    }
    if (channel.num_readers > 0) stage.most_tokens = std::min(stage.most_tokens, channel.num_slots);
    channel.slots = std::make_unique<Slot[]>(channel.num_slots);
    if (port.is_any) continue;
    const size_t at_once = stage.replicas.size() * std::max<size_t>(stage.batch, 1);
    const size_t most_fresh = channel.results.empty() ? at_once : most_tokens;
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

Waiting Flow::waits(Stage& stage, Until& due) {
  const std::unique_lock lock = lock_claims(stage);
  if (stage.batch == 0) return waits_for(stage, stage.next);
  return batch_waits(stage, look_for_batch(stage), Clock::now(), due);
}

Waiting Flow::waits_for(Stage& stage, uint64_t token) {
  const Waiting why = waits_for_neighbours(stage, token);
  return why == Waiting::no && stage.is_source && !is_admitted(token) ? Waiting::for_input : why;
}

// Takes the next token of a stage with replicas. The slots are marked, since the other replicas look at them before
// they are written.
bool Flow::claim(Stage& stage, uint64_t& token) {
  const std::lock_guard lock(stage.claims);
  if (waits_for(stage, stage.next) != Waiting::no) return false;
  token = stage.next++;
  reserve(stage, token);
  return true;
}

bool Flow::run_next(Stage& stage, Replica& replica, Clock::time_point& now) {
  return stage.batch == 0 ? run_one(stage, replica, now) : run_batch(stage, replica, now);
}

bool Flow::run_one(Stage& stage, Replica& replica, Clock::time_point& now) {
  uint64_t token = 0;
  if (stage.replicas.size() > 1) {
    if (!claim(stage, token)) return false;
  } else {
    token = stage.next;  // which the stage's only thread has to itself
    if (waits_for_neighbours(stage, token) != Waiting::no || (stage.is_source && !is_admitted(token))) return false;
    stage.next = token + 1;
  }
  Request& request = request_of(token);
  if (is_late(stage, request, now) || request.is_dead()) {
    replica.skipped.add(1);
  } else if (!compute(stage, replica, token, request, now)) {
    std::fill(replica.results.begin(), replica.results.end(), Value());
  }
  publish(stage, replica.results.data(), 1, token, request, now);
  release_inputs(stage, token);
  wake_neighbours(events_, stage);
  if (pass(token, request)) now = Clock::now();  // the callbacks of the request took their time
  return true;
}

// Runs the stage's code for a request. Returns whether it succeeded; a failure is the request's, from then on.
bool Flow::compute(Stage& stage, Replica& replica, uint64_t token, Request& request, Clock::time_point& now) {
  Ref<ErrorObj> error;
  const Clock::time_point start = now;
  try {
    gather(stage, replica, token, request);
    begin_call(replica, token, start);
    error = replica.code->run(replica.arguments, replica.results);
  } catch (...) {  // no memory for the outputs
    store_current_exception();
    error = take_stored_error();
  }
  now = end_call(stage, replica, {.start = start, .request = request.number, .has_failed = static_cast<bool>(error)});
  replica.items.add(1);
  if (!error) {
    events_.stage_worked(stage);
    return true;
  }
  fail(stage, replica, request, stage_failure(stage, request, std::move(error)));
  return false;
}

void Flow::fail(Stage& stage, Replica& replica, Request& request, const Failure& failure) {
  replica.errors.add(1);
  request.fail(failure);
  events_.stage_failed(stage, failure);
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
