// Stages that take several requests in one call.
//
// Such a stage takes a range of tokens. The requests of a range that have not failed before are its batch; the others
// pass as they do elsewhere. A range ends where no further token has its inputs, where the batch is full, and where a
// request sees other parameters. A stage without producers counts requests that wait to be admitted, but admits them
// only when the call begins, so that until then they can be cancelled, or dropped for newer ones.
//
// A batch waits for places for all of its results. That ends, because those places are taken by earlier tokens only,
// and an output has at least as many slots as a range has tokens.
#include <algorithm>
#include <utility>

#include "executors/pipeline/flow_steps.h"

namespace headrace::executors::pipeline {

void Flow::make_batch(Stage& stage, size_t most_tokens) {
  const Batch& batch = *stage.spec.batch;
  stage.batch = std::min(static_cast<size_t>(batch.max_batch), most_tokens);
  stage.most_tokens = most_tokens;
  stage.max_rows = static_cast<size_t>(batch.max_batch);
  for (size_t i = 0; i < stage.inputs.size() && batch.any_rows && !stage.row_input; ++i) {
    if (stage.inputs[i].source.kind != Source::Kind::param) stage.row_input = i;
  }
  stage.max_delay =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(batch.max_delay_seconds));
}

// Returns whether two requests see the same values of the parameters that the stage reads.
bool Flow::have_same_params(const Stage& stage, const Request& a, const Request& b) {
  if (a.params == b.params) return true;
  return std::all_of(stage.inputs.begin(), stage.inputs.end(), [&](const StageInput& input) {
    const size_t index = input.source.index;
    return input.source.kind != Source::Kind::param || (*a.params)[index].object() == (*b.params)[index].object();
  });
}

// Returns when all values of a request had arrived at the stage.
Clock::time_point Flow::arrival_of(const Stage& stage, uint64_t token, const Request& request) {
  if (stage.is_source) return request.entered;
  Clock::time_point last{};
  for (const StageInput& input : stage.inputs) {
    if (input.channel != nullptr) last = std::max(last, input.channel->slot_of(token).since);
  }
  return last;
}

// Returns the range that the stage could take now.
Flow::Range Flow::look_for_batch(const Stage& stage) {
  while (true) {
    Range range = look_at_tokens(stage);
    if (!stage.is_source || range.is_closed || look_at_queue(stage, range)) return range;
  }
}

// Adds a request to a range, if it can be in the same call. Returns whether it is.
bool Flow::join(const Stage& stage, Range& range, const Request& request, const Value* rows,
                Clock::time_point arrival) {
  if (range.oldest != nullptr && !have_same_params(stage, *range.oldest, request)) {
    range.is_closed = true;
    return false;
  }
  if (range.oldest == nullptr) range.since = arrival, range.oldest = &request;
  const auto* tensor = rows == nullptr ? nullptr : rows->as_node<NDArrayObj>();
  range.rows += tensor == nullptr || tensor->tensor.ndim == 0 ? 1 : static_cast<size_t>(tensor->tensor.shape[0]);
  range.is_closed = ++range.live == stage.batch || range.rows >= stage.max_rows;
  return true;
}

// Returns the range of tokens that are in the pipeline.
Flow::Range Flow::look_at_tokens(const Stage& stage) {
  Range range{.first = stage.next};
  while (!range.is_closed && range.count < stage.most_tokens) {
    const uint64_t token = range.first + range.count;
    const bool is_there =
        stage.is_source ? admitted_.load(std::memory_order_acquire) > token : has_inputs(stage, token);
    if (!is_there) return range;
    const Request& request = request_of(token);
    if (request.is_dead()) {
      range.is_closed = range.oldest == nullptr;  // one that is the first passes alone, at once
    } else {
      const Value* rows = stage.row_input ? argument_of(stage.inputs[*stage.row_input], token, request) : nullptr;
      if (!join(stage, range, request, rows, arrival_of(stage, token, request))) return range;
    }
    ++range.count;
  }
  range.is_closed = true;
  return range;
}

// Adds the requests that could be admitted now. Returns false if another stage has admitted some since the range was
// looked for.
bool Flow::look_at_queue(const Stage& stage, Range& range) {
  const std::lock_guard lock(mutex_);
  const uint64_t next = range.first + range.count;
  if (admitted_.load(std::memory_order_relaxed) != next) return false;
  events_.see_queue([&](const Request& request) {
    const bool has_place = entries_[(next + range.queued) % entries_.size()] == nullptr;
    const Value* rows = stage.row_input ? argument_of(stage.inputs[*stage.row_input], 0, request) : nullptr;
    if (!has_place || !join(stage, range, request, rows, request.entered)) return false;
    ++range.queued;
    range.is_closed |= range.count + range.queued == stage.most_tokens;
    return !range.is_closed;
  });
  return true;
}

Waiting Flow::batch_waits(const Stage& stage, const Range& range, Clock::time_point now, Until& due) const {
  const size_t count = range.count + range.queued;
  if (count == 0) return Waiting::for_input;
  for (size_t i = 0; i < count; ++i) {
    if (!has_places(stage, range.first + i)) return Waiting::for_place;
  }
  if (range.is_closed || is_hurried_.load(std::memory_order_acquire)) return Waiting::no;
  const Clock::time_point end = range.since + stage.max_delay;
  if (now >= end) return Waiting::no;
  due = due.has_value() ? std::min(*due, end) : end;
  return Waiting::for_input;
}

// Takes the range that is due, if one is.
bool Flow::claim_batch(Stage& stage, Clock::time_point now, Range& range) {
  const std::unique_lock lock = lock_claims(stage);
  range = look_for_batch(stage);
  Until due;
  if (batch_waits(stage, range, now, due) != Waiting::no) return false;
  const size_t has_places_for = range.count + range.queued;
  for (size_t i = 0; i < range.queued && is_admitted(range.first + range.count + i);) ++i;
  range = look_for_batch(stage);  // requests may have been cancelled meanwhile, or see other parameters
  range.count = std::min(range.count, has_places_for);
  for (size_t i = 0; i < range.count; ++i) reserve(stage, stage.next++);
  return range.count > 0;
}

bool Flow::run_batch(Stage& stage, Replica& replica, Clock::time_point& now) {
  Range range;
  if (!claim_batch(stage, now, range)) return false;
  choose_entries(stage, replica, range, now);
  if (!replica.entries.empty()) compute_batch(stage, replica, now);
  publish_batch(stage, replica, range, now);
  for (size_t i = 0; i < range.count; ++i) release_inputs(stage, range.first + i);
  wake_neighbours(events_, stage);
  bool has_left = false;
  for (size_t i = 0; i < range.count; ++i) {
    const uint64_t token = range.first + i;
    has_left |= pass(token, request_of(token));
  }
  if (has_left) now = Clock::now();
  return true;
}

// Chooses the requests of the call: those that have not failed, nor are late.
void Flow::choose_entries(Stage& stage, Replica& replica, const Range& range, Clock::time_point now) {
  replica.entries.clear();
  for (size_t i = 0; i < range.count; ++i) {
    const uint64_t token = range.first + i;
    Request& request = request_of(token);
    if (is_late(stage, request, now) || request.is_dead()) {
      replica.skipped.add(1);
      continue;
    }
    replica.entries.push_back({.request = &request, .token = token});
    const auto waited = std::max(now - arrival_of(stage, token, request), Clock::duration::zero());
    replica.waited_ns.add(static_cast<uint64_t>(std::chrono::nanoseconds(waited).count()));
  }
}

void Flow::compute_batch(Stage& stage, Replica& replica, Clock::time_point& now) {
  const size_t count = replica.entries.size();
  Ref<ErrorObj> error;
  const Clock::time_point start = now;
  try {
    gather_batch(stage, replica);
    begin_call(replica, replica.entries[0].token, start);
    error = call_batch(stage, replica);
  } catch (...) {  // no memory for the outputs
    store_current_exception();
    error = take_stored_error();
  }
  now = end_call(stage, replica,
                 {.start = start,
                  .request = replica.entries[0].request->number,
                  .requests = count,
                  .has_failed = static_cast<bool>(error)});
  replica.items.add(count);
  replica.batches.add(1);
  if (error && count > 1 && stage.spec.batch->retry_alone) {
    try_each_alone(stage, replica, now);
  } else {
    settle_batch(stage, replica, error);
  }
}

// Points the replica at the inputs of all requests and at memory for their outputs.
void Flow::gather_batch(Stage& stage, Replica& replica) {
  const size_t count = replica.entries.size();
  for (size_t entry = 0; entry < count; ++entry) {
    const auto [request, token] = replica.entries[entry];
    replica.batch_errors[entry] = {};
    for (size_t i = 0; i < stage.inputs.size(); ++i)
      replica.arguments[i * count + entry] = argument_of(stage.inputs[i], token, *request);
    for (size_t i = 0; i < stage.outputs.size(); ++i)
      set_memory(stage.outputs[i], token, replica.results[i * count + entry]);
  }
}

Ref<ErrorObj> Flow::call_batch(const Stage& stage, Replica& replica) {
  const size_t count = replica.entries.size();
  return replica.code->run_batch({.count = count,
                                  .sources = stage.spec.inputs,
                                  .inputs = std::span(replica.arguments).first(stage.inputs.size() * count),
                                  .outputs = std::span(replica.results).first(stage.outputs.size() * count),
                                  .errors = std::span(replica.batch_errors).first(count)});
}

// Gives each request of a call its outcome: the error of the call, or its own.
void Flow::settle_batch(Stage& stage, Replica& replica, const Ref<ErrorObj>& error) {
  const size_t count = replica.entries.size();
  for (size_t entry = 0; entry < count; ++entry) {
    Request& request = *replica.entries[entry].request;
    const Ref<ErrorObj> own = error ? error : std::exchange(replica.batch_errors[entry], {});
    if (!own) {
      events_.stage_worked(stage);
      continue;
    }
    Failure failure = stage_failure(stage, request, own);
    if (error && count > 1) {
      failure.batch_size = count;
      failure.batch_first = replica.entries.front().request->number;
      failure.batch_last = replica.entries.back().request->number;
    }
    fail(stage, replica, request, failure);
    for (size_t i = 0; i < stage.outputs.size(); ++i) replica.results[i * count + entry] = Value();
  }
}

// Calls the code once for each request of a batch that failed; those that have ended meanwhile are left out.
void Flow::try_each_alone(Stage& stage, Replica& replica, Clock::time_point& now) {
  const size_t count = replica.entries.size();
  for (size_t entry = 0; entry < count; ++entry) {
    Request* request = replica.entries[entry].request;
    Ref<ErrorObj> error;
    if (const bool is_over = is_late(stage, *request, now) || request->is_dead(); !is_over) {
      const Clock::time_point start = now;
      begin_call(replica, replica.entries[0].token, start);  // all of them end if it hangs
      error = call_alone(stage, replica, entry);
      now = end_call(stage, replica,
                     {.start = start, .request = request->number, .has_failed = static_cast<bool>(error)});
      if (!error) {
        events_.stage_worked(stage);
        continue;
      }
      fail(stage, replica, *request, stage_failure(stage, *request, error));
    }
    for (size_t i = 0; i < stage.outputs.size(); ++i) replica.results[i * count + entry] = Value();
  }
}

Ref<ErrorObj> Flow::call_alone(const Stage& stage, Replica& replica, size_t entry) {
  const size_t count = replica.entries.size();
  for (size_t i = 0; i < stage.inputs.size(); ++i) replica.lone_arguments[i] = replica.arguments[i * count + entry];
  for (size_t i = 0; i < stage.outputs.size(); ++i) {
    // An output of any value may still hold what the call of the batch left there.
    replica.lone_results[i] =
        stage.outputs[i].pool.has_value() ? std::move(replica.results[i * count + entry]) : Value();
  }
  const std::span<Ref<ErrorObj>> errors = std::span(replica.batch_errors).first(1);
  errors[0] = {};
  Ref<ErrorObj> error = replica.code->run_batch({.count = 1,
                                                 .sources = stage.spec.inputs,
                                                 .inputs = replica.lone_arguments,
                                                 .outputs = replica.lone_results,
                                                 .errors = errors});
  for (size_t i = 0; i < stage.outputs.size(); ++i)
    replica.results[i * count + entry] = std::exchange(replica.lone_results[i], Value());
  return error ? error : std::exchange(errors[0], {});
}

// Puts the results of the call, and nothing for requests that were left out, where their readers find them.
void Flow::publish_batch(Stage& stage, Replica& replica, const Range& range, Clock::time_point now) {
  const size_t count = replica.entries.size();
  size_t entry = 0;
  for (uint64_t token = range.first; token < range.first + range.count; ++token) {
    const bool is_in_batch = entry < count && replica.entries[entry].token == token;
    Value none;
    if (is_in_batch) {
      publish(stage, replica.results.data() + entry, count, token, request_of(token), now);
    } else {
      publish(stage, &none, 0, token, request_of(token), now);
    }
    if (is_in_batch) ++entry;
  }
}

}  // namespace headrace::executors::pipeline
