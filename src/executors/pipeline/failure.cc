#include "executors/pipeline/failure.h"

namespace headrace::executors::pipeline {

std::string failure_name(FailureKind kind) {
  switch (kind) {
    case FailureKind::stage_failed:
      return "StageFailed";
    case FailureKind::stage_timeout:
      return "StageTimeout";
    case FailureKind::deadline:
      return "DeadlineExceeded";
    case FailureKind::cancelled:
      return "Cancelled";
    case FailureKind::dropped:
      return "Dropped";
    case FailureKind::stopped:
      return "Stopped";
    case FailureKind::stage_lost:
      return "StageLost";
  }
  return "StageFailed";
}

namespace {

// Returns " in a batch of 4 requests, from 7 to 10"; nothing for a request that failed alone.
std::string batch_text(const Failure& failure) {
  if (failure.batch_size == 0) return "";
  return fmt::format(" in a batch of {} requests, from {} to {}", failure.batch_size, failure.batch_first,
                     failure.batch_last);
}

// Returns the message of what failed, with the class of an exception of another language: "KeyError: 'boxes'".
std::string cause_text(const ErrorObj* cause) {
  if (cause == nullptr) return "no error was given";
  const bool is_foreign = static_cast<bool>(cause->payload) && cause->message != cause->kind;
  return is_foreign ? fmt::format("{}: {}", cause->kind, cause->message) : cause->message;
}

}  // namespace

std::string message_of(const Failure& failure) {
  const std::string cause = cause_text(failure.cause.get());
  const std::string backend = failure.backend.empty() ? "" : fmt::format(" ({})", failure.backend);
  const std::string stage = fmt::format("stage '{}'{}", failure.stage, backend);
  switch (failure.kind) {
    case FailureKind::stage_failed:
      return fmt::format("request {} failed in {}{}: {}", failure.request, stage, batch_text(failure), cause);
    case FailureKind::stage_timeout:
      return fmt::format("request {} ended because {} took longer than its time limit", failure.request, stage);
    case FailureKind::deadline:
      return fmt::format("request {} was not done by its deadline", failure.request);
    case FailureKind::cancelled:
      return fmt::format("request {} was cancelled", failure.request);
    case FailureKind::dropped:
      return fmt::format("request {} was dropped for a newer one, because the pipeline was full", failure.request);
    case FailureKind::stopped:
      return fmt::format("request {} was not done when the pipeline was stopped", failure.request);
    case FailureKind::stage_lost:
      return fmt::format("request {} was lost in {}{}: {}", failure.request, stage, batch_text(failure), cause);
  }
  return {};
}

RequestError::RequestError(Failure failure)
    : Error(failure_name(failure.kind), message_of(failure), {.op = failure.stage, .place = ""}),
      failure_(std::move(failure)) {}

}  // namespace headrace::executors::pipeline
