#include "executors/pipeline/pipeline.h"

#include "executors/pipeline/core.h"

namespace headrace::executors::pipeline {

std::string state_name(State state) {
  switch (state) {
    case State::built:
      return "built";
    case State::running:
      return "running";
    case State::degraded:
      return "degraded";
    case State::draining:
      return "draining";
    case State::stopped:
      return "stopped";
    case State::failed:
      return "failed";
  }
  return "stopped";
}

Ticket::Ticket(std::shared_ptr<Core> core, std::shared_ptr<Request> request)
    : core_(std::move(core)), request_(std::move(request)), unread_(request_->unread.lock()) {}

// In a forked process no thread finishes the request.
bool Ticket::is_done() const { return request_->is_done() || core_->is_forked(); }

bool Ticket::wait(Until until) const { return core_->is_forked() || request_->wait(until); }

std::vector<Value> Ticket::results() const {
  wait();
  if (std::optional<Failure> failed = failure()) throw RequestError(*std::move(failed));
  if (unread_ != nullptr) unread_->end();
  return request_->results();
}

std::optional<Failure> Ticket::failure() const {
  if (request_->is_done()) {
    if (request_->failure() == nullptr) return std::nullopt;
    if (unread_ != nullptr) unread_->end();
    return *request_->failure();
  }
  if (core_->is_forked()) return Failure{.kind = FailureKind::stopped, .request = request_->number};
  return std::nullopt;
}

void Ticket::on_done(std::function<void(const Ticket&)> function) const {
  core_->call_when_done(request_, std::move(function));
}

bool Ticket::cancel() const { return core_->cancel(request_); }

Pipeline::Pipeline(PipelineSpec spec, const PipelineOptions& options)
    : core_(std::make_shared<Core>(std::move(spec), options)) {
  core_->prepare();
  if (options.starts) core_->start();
}

void Pipeline::start() { core_->start(); }

Pipeline::~Pipeline() {
  const auto patience =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options().stop_seconds));
  core_->stop(Clock::now() + patience);
  core_->abandon();
}

const PipelineSpec& Pipeline::spec() const { return core_->spec(); }
const PipelineOptions& Pipeline::options() const { return core_->options(); }

Ticket Pipeline::submit(std::vector<Value> inputs, SubmitOptions options) {
  std::shared_ptr<Unread> unread;  // lives until the ticket has it
  std::shared_ptr<Request> request = core_->submit(std::move(inputs), options, false, &unread);
  return {core_, std::move(request)};
}

bool Pipeline::waits_for_places() const { return core_->may_wait(); }

bool Pipeline::wait_for_place(Until until) { return !core_->may_wait() || core_->wait_for_place(until); }

uint64_t Pipeline::push(std::vector<Value> inputs, SubmitOptions options) {
  return core_->submit(std::move(inputs), options, true)->number;
}

std::optional<Ticket> Pipeline::next(Until until) {
  std::shared_ptr<Request> request = core_->take_outcome(until, true);
  return request == nullptr ? std::nullopt : std::optional<Ticket>(std::in_place, core_, std::move(request));
}

std::optional<Ticket> Pipeline::next_done(Until until) {
  std::shared_ptr<Request> request = core_->take_outcome(until, false);
  return request == nullptr ? std::nullopt : std::optional<Ticket>(std::in_place, core_, std::move(request));
}

size_t Pipeline::num_ready() const { return core_->num_ready(); }

uint64_t Pipeline::set_params(const std::string& group, const std::map<std::string, NDArray>& values) {
  return core_->set_params(group, values);
}

State Pipeline::state() const { return core_->state(); }
void Pipeline::reset() { core_->reset(); }
bool Pipeline::drain(Until until) { return core_->drain(until); }
std::vector<std::string> Pipeline::stop(Until until, bool keeps_calls) { return core_->stop(until, keeps_calls); }
PipelineMetrics Pipeline::metrics() const { return core_->metrics(); }
void Pipeline::start_trace() { core_->start_trace(); }
Trace Pipeline::trace() const { return core_->trace(); }
Trace Pipeline::stop_trace() { return core_->stop_trace(); }

}  // namespace headrace::executors::pipeline
