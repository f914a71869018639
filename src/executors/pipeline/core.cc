#include "executors/pipeline/core.h"

#include "base/error.h"
#include "executors/tensor_check.h"
#include "runtime/processors.h"

namespace headrace::executors::pipeline {
namespace {

PipelineOptions checked(const PipelineOptions& options) {
  if (options.max_inflight == 0 || options.max_inflight > artifact::kMostInFlight)
    throw_user_error("max_inflight is {}; it lies from 1 to {}", options.max_inflight, artifact::kMostInFlight);
  for (const auto& [name, seconds] :
       {std::pair{"probe_seconds", options.probe_seconds}, std::pair{"stop_seconds", options.stop_seconds}}) {
    if (!(seconds >= 0 && seconds <= kMaxRegionTimeout))
      throw_user_error("{} is {}; it lies from 0 to {}", name, seconds, kMaxRegionTimeout);
  }
  return options;
}

// The most bytes that the queue of a channel between two threads may take.
constexpr size_t kQueueBytes = size_t{256} << 10;

std::vector<size_t> checked_order(const PipelineSpec& spec) {
  for (const GroupSpec& group : spec.groups) runtime::check_cpus(group.cpus, "group '" + group.name + "'");
  return check_spec(spec);
}

// Returns how often time limits are looked at: an eighth of the shortest, from a millisecond to a tenth of a second.
std::optional<std::chrono::nanoseconds> check_period(const PipelineSpec& spec) {
  std::optional<std::chrono::nanoseconds> period;
  for (const StageSpec& stage : spec.stages) {
    if (stage.time_limit_seconds <= 0) continue;
    const auto wanted = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(std::clamp(stage.time_limit_seconds / 8, 1e-3, 0.1)));
    period = period.has_value() ? std::min(*period, wanted) : wanted;
  }
  return period;
}

// Returns a tensor of the pool with the elements of a value, which must be a tensor that fits the port.
NDArray copied(std::string_view what, const Port& port, const Value& value, TensorPool& pool) {
  if (!matches_item<NDArray>(value.raw()))
    throw UserError(fmt::format("{} '{}' is a {}; it takes a tensor, {}", what, port.name(), kind_name(value.raw()),
                                type_text(port)),
                    {.op = port.name(), .place = ""});
  const auto array = value.as<NDArray>();
  require_tensor(what, port.spec, array.tensor(), Access::copied);
  NDArray copy = pool.take();
  copy.copy_from(array);
  return copy;
}

}  // namespace

Core::Core(PipelineSpec spec, const PipelineOptions& options)
    : spec_(std::move(spec)),
      options_(checked(options)),
      process_(runtime::process_generation()),
      entrance_(options_.max_inflight, options_.max_unread),
      breaker_(options_.failures_in_row, options_.probe_seconds) {
  const std::vector<size_t> order = checked_order(spec_);
  FlowEvents events{.next_request = [this] { return entrance_.pop(); },
                    .see_queue = [this](const auto& visit) { entrance_.see_waiting(visit); },
                    .leave = [this](const std::shared_ptr<Request>& request) { leave(request); },
                    .stage_failed = [this](Stage& stage, const Failure& failure) { breaker_.failed(stage, failure); },
                    .stage_worked = [this](Stage& stage) { breaker_.worked(stage); },
                    .wake = [this](size_t group) { wake(group); }};
  // Where new requests replace those that wait at the entrance, they must wait there, and not in queues inside.
  const size_t queue_bytes = options_.when_full == WhenFull::drop_oldest ? 0 : kQueueBytes;
  flow_ = std::make_unique<Flow>(spec_, order, FlowRoom{options_.max_inflight, queue_bytes}, std::move(events));
  make_inputs();
  make_workers();
  number_lanes();
  find_kept_outputs();
  watch_period_ = check_period(spec_);
}

void Core::make_inputs() {
  const auto pool_of = [&](const Port& port, size_t first) {
    return port.is_any ? std::nullopt : std::optional<TensorPool>(std::in_place, port.spec, first, first);
  };
  for (const Port& port : spec_.inputs) input_pools_.push_back(pool_of(port, options_.max_inflight));
  for (const ParamSpec& param : spec_.params) param_pools_.push_back(pool_of(param.port, 0));
  params_ = std::make_shared<std::vector<Value>>(spec_.params.size());
}

bool Core::is_forked() const { return process_ != runtime::process_generation(); }

// ---- Submission.

void Core::check_not_forked() const {
  if (is_forked())
    throw RefusedError("PipelineStopped", "a pipeline does not work in a process forked since it was made");
}

void Core::check_takes_requests() const {
  check_not_forked();
  if (!has_started_.load(std::memory_order_acquire) && state() == State::built)
    throw RefusedError("PipelineNotStarted", "the pipeline is built, and takes no requests before start()");
}

Value Core::take_input(size_t index, const Value& value, bool keeps_inputs) {
  const Port& port = spec_.inputs[index];
  if (port.is_any) return value;
  if (keeps_inputs && port.spec.location.device == cpu() && matches_item<NDArray>(value.raw())) {
    Message message;
    const auto array = value.as<NDArray>();
    if (check_tensor("input", port.spec, array.tensor(), Access::direct, message)) return value;
  }
  return Value(copied("input", port, value, *input_pools_[index]));
}

std::vector<Value> Core::take_inputs(std::vector<Value> inputs, bool keeps_inputs) {
  if (inputs.size() != spec_.inputs.size()) {
    std::vector<std::string> names;
    for (const Port& port : spec_.inputs) names.push_back(port.name());
    throw_user_error("the pipeline takes {} inputs ({}), got {}", names.size(), fmt::join(names, ", "), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = take_input(i, inputs[i], keeps_inputs);
  return inputs;
}

void Core::check_params() const {
  const std::lock_guard lock(params_mutex_);
  for (size_t i = 0; i < params_->size(); ++i) {
    if (!(*params_)[i].is_none()) continue;
    const ParamSpec& param = spec_.params[i];
    throw UserError(
        fmt::format("parameter '{}' of group '{}' has no value; call set_params first", param.port.name(), param.group),
        {.op = param.port.name(), .place = ""});
  }
}

std::shared_ptr<Request> Core::submit(std::vector<Value> inputs, const SubmitOptions& options, bool is_queued,
                                      std::shared_ptr<Unread>* unread) {
  check_takes_requests();
  check_params();
  if (options.deadline.has_value() || watch_period_.has_value()) watch_->start();
  // Not by make_shared: a timer for its deadline keeps the block of counts, and not the memory of the request.
  const std::shared_ptr<Request> request(
      new Request(take_inputs(std::move(inputs), options.keeps_inputs), spec_.outputs.size()));
  request->deadline = options.deadline;
  request->is_queued = is_queued;
  if (is_queued) request->holds.store(2, std::memory_order_relaxed);
  if (options.on_done) call_when_done(request, options.on_done);
  std::shared_ptr<Request> dropped;
  try {
    request->is_probe = breaker_.check();
    // A stage that waited for a place in its own pipeline would wait for itself.
    const bool is_refused = options_.when_full == WhenFull::wait && !may_wait();
    const WhenFull when_full = is_refused ? WhenFull::reject : options_.when_full;
    dropped = entrance_.enter(request, when_full, options.place_until, [&](Request& entering) {
      const std::lock_guard lock(params_mutex_);
      entering.params = params_;
      if (flow_->needs_entry_times()) entering.entered = Clock::now();
      if (unread != nullptr && options_.max_unread > 0) {
        *unread = std::make_shared<Unread>([core = weak_from_this()] {
          const std::shared_ptr<Core> alive = core.lock();
          if (alive != nullptr && !alive->is_forked()) alive->entrance_.was_read();
        });
        entering.unread = *unread;
        entrance_.counts_until_read();
      }
      if (is_queued) outbox_.add(request);
    });
  } catch (...) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    if (request->is_probe) breaker_.probe_ended();
    throw;
  }
  submitted_.fetch_add(1, std::memory_order_relaxed);
  if (dropped != nullptr) {
    if (dropped->is_queued) outbox_.remove(*dropped);
    fail(dropped, FailureKind::dropped, nullptr, false);  // its place is the new one's
  }
  if (request->deadline.has_value()) watch_->add(request);
  watch_->poke();
  wake_sources();
  return request;
}

uint64_t Core::set_params(const std::string& group, const std::map<std::string, NDArray>& values) {
  check_not_forked();
  const bool is_known = std::any_of(spec_.params.begin(), spec_.params.end(),
                                    [&](const ParamSpec& param) { return param.group == group; });
  if (!is_known) throw_user_error("the pipeline has no parameter group '{}'", group);
  std::vector<std::pair<size_t, Value>> copies;
  for (const auto& [name, value] : values) {
    const auto found = std::find_if(spec_.params.begin(), spec_.params.end(), [&](const ParamSpec& param) {
      return param.group == group && param.port.name() == name;
    });
    if (found == spec_.params.end()) throw_user_error("parameter group '{}' has no parameter '{}'", group, name);
    const auto index = static_cast<size_t>(found - spec_.params.begin());
    std::optional<TensorPool>& pool = param_pools_[index];
    copies.emplace_back(
        index, pool.has_value() ? Value(copied("parameter", found->port, Value(value), *pool)) : Value(value.copy()));
  }
  return entrance_.between_requests([&] {
    const std::lock_guard lock(params_mutex_);
    auto next = std::make_shared<std::vector<Value>>(*params_);
    for (auto& [index, value] : copies) (*next)[index] = std::move(value);
    params_ = std::move(next);
  });
}

// ---- Outcomes.

// Finds the outputs that a function reads, too: it may keep what it got.
void Core::find_kept_outputs() {
  const auto is_kept = [](const Source& wanted, const StageSpec& stage) {
    const bool reads = std::any_of(stage.inputs.begin(), stage.inputs.end(), [&](const Source& source) {
      return source.kind == wanted.kind && source.index == wanted.index && source.port == wanted.port;
    });
    const bool is_function = std::any_of(stage.replicas.begin(), stage.replicas.end(), [](const auto& code) {
      return !code->is_program() && !code->process().has_value();
    });
    return reads && is_function;
  };
  for (const OutputSpec& output : spec_.outputs)
    are_kept_.push_back(std::any_of(spec_.stages.begin(), spec_.stages.end(),
                                    [&](const StageSpec& stage) { return is_kept(output.source, stage); }));
}

// Copies tensors that another output of the request has, too, or that a function may keep, so that who writes into one
// output changes nothing else.
void Core::separate_outputs(Request& request) const noexcept {
  std::vector<Value>& outputs = request.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!matches_item<NDArray>(outputs[i].raw())) continue;
    const auto tensor = outputs[i].as<NDArray>();
    const auto begin_of = [](const NDArray& array) {
      return static_cast<const char*>(array.tensor().data) + array.tensor().byte_offset;
    };
    const auto is_same = [&](const Value& other) {
      return matches_item<NDArray>(other.raw()) && begin_of(other.as<NDArray>()) == begin_of(tensor);
    };
    const bool is_alone =
        !are_kept_[i] && std::none_of(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(i), is_same);
    if (is_alone || tensor.size_bytes() == 0) continue;
    try {
      NDArray copy = NDArray::empty(tensor.shape(), tensor.dtype(), tensor.device());
      copy.copy_from(tensor);
      outputs[i] = Value(std::move(copy));
    } catch (...) {  // no memory for it
      store_current_exception();
      request.fail({.request = request.number, .cause = take_stored_error()});
    }
  }
}

// A request has passed the last stage. Its place is free before its outcome is known, so that who waits for the outcome
// finds a place. Other sources may wait for its entry, and not only for a request.
void Core::leave(const std::shared_ptr<Request>& request) {
  request->inputs.clear();
  separate_outputs(*request);
  const bool is_first = request->decide();
  request->outputs.clear();
  release(*request);
  wake_sources();
  if (is_first) settle(request);
}

// Gives the request's place back, unless its outcome is still to be read.
void Core::release(Request& request) { entrance_.passed(request.holds.fetch_sub(1, std::memory_order_acq_rel) == 1); }

bool Core::fail(const std::shared_ptr<Request>& request, FailureKind kind, const Stage* stage, bool is_waiting) {
  Failure failure{.kind = kind, .request = request->number};
  if (stage != nullptr) failure.stage = stage->spec.name, failure.backend = stage->spec.backend;
  const bool is_first = request->decide(std::move(failure));
  if (is_waiting) release(*request);
  if (is_first) settle(request);
  return is_first;
}

// Does what follows from an outcome, once for each request. Who waits for the outcome of a probe may submit another
// one.
void Core::settle(const std::shared_ptr<Request>& request) {
  count(*request);
  if (request->is_probe) breaker_.probe_ended();
  request->publish();
  if (request->is_queued) outbox_.done(*request);
  for (const Request::Callback& callback : request->take_callbacks()) call(callback, request);
}

void Core::call(const Request::Callback& callback, const std::shared_ptr<Request>& request) noexcept {
  try {
    callback(request);
  } catch (...) {  // the callback's own affair, as pipeline.h says
  }
}

void Core::call_when_done(const std::shared_ptr<Request>& request, std::function<void(const Ticket&)> function) {
  if (is_forked()) return;
  // A request that is on its way keeps the pipeline's core by the thread that runs it, not by its callbacks.
  Request::Callback callback = [weak = weak_from_this(),
                                function = std::move(function)](const std::shared_ptr<Request>& done) {
    if (std::shared_ptr<Core> core = weak.lock()) function(Ticket(std::move(core), done));
  };
  if (!request->add_callback(callback)) call(callback, request);
}

void Core::count(const Request& request) {
  const Failure* failure = request.failure();
  outcomes_[failure == nullptr ? kSuccess : static_cast<size_t>(failure->kind)].fetch_add(1, std::memory_order_relaxed);
  if (failure == nullptr)
    latency_.add(static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - request.submitted).count()));
}

bool Core::cancel(const std::shared_ptr<Request>& request) {
  if (is_forked() || request->is_done()) return false;
  return fail(request, FailureKind::cancelled, nullptr, entrance_.remove(*request));
}

std::shared_ptr<Request> Core::take_outcome(Until until, bool in_order) {
  if (is_forked()) return nullptr;
  std::shared_ptr<Request> request = in_order ? outbox_.next(until) : outbox_.next_done(until);
  if (request != nullptr && request->holds.fetch_sub(1, std::memory_order_acq_rel) == 1) entrance_.leave();
  return request;
}

// ---- Time limits.

// Ends what waits for a call that has taken too long. Returns whether there is more to watch.
bool Core::check_time_limits() {
  for (const std::unique_ptr<Stage>& stage : flow_->stages()) {
    for (const std::unique_ptr<Replica>& replica : stage->replicas) {
      const uint64_t token = replica->running_token.load(std::memory_order_relaxed);
      if (is_stuck(*stage, *replica)) end_stuck(*stage, *replica, token);
    }
  }
  return entrance_.num_taken() > 0;
}

// Ends the request whose call has taken too long, and all that cannot pass the stage before it returns. The breaker
// opens first, so that whoever sees these outcomes finds the pipeline degraded, and closes if the call returns
// meanwhile. A request that enters after that is none of them.
void Core::end_stuck(Stage& stage, const Replica& replica, uint64_t token) {
  std::vector<std::shared_ptr<Request>> behind;
  flow_->for_each_request([&](uint64_t other, const std::shared_ptr<Request>& request) {
    if (other >= token && (other > token || !request->is_done())) behind.push_back(request);
  });
  std::optional<uint64_t> first;
  if (!behind.empty()) first = behind.front()->number;
  entrance_.see_waiting([&](const Request& waiting) {
    if (!first.has_value()) first = waiting.number;
    return false;
  });
  if (!first.has_value()) return;
  breaker_.open(
      stage,
      {.kind = FailureKind::stage_timeout, .request = *first, .stage = stage.spec.name, .backend = stage.spec.backend});
  const auto has_returned = [&] {
    return replica.running_since.load(std::memory_order_acquire) == 0 ||
           replica.running_token.load(std::memory_order_relaxed) != token;
  };
  const uint64_t end = entrance_.next_number();
  if (!has_returned()) {
    for (const std::shared_ptr<Request>& request : behind) fail(request, FailureKind::stage_timeout, &stage, false);
    for (const std::shared_ptr<Request>& request : entrance_.clear(end))
      fail(request, FailureKind::stage_timeout, &stage, true);
  }
  if (has_returned()) breaker_.returned(stage);
}

}  // namespace headrace::executors::pipeline
