// Failures of requests: what a ticket says instead of results.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "object/function.h"

namespace headrace::executors::pipeline {

enum class FailureKind : uint8_t {
  stage_failed,   // a stage returned an error; `cause` has it
  stage_timeout,  // a stage took longer than its limit
  deadline,       // the request's own deadline passed
  cancelled,      // by the caller
  dropped,        // to make place for a newer request
  stopped,        // the pipeline stopped first
  stage_lost,     // the process of a stage ended; `cause` says how
};
// Returns the name that languages use: "StageFailed", "StageTimeout", "DeadlineExceeded", "Cancelled", "Dropped",
// "Stopped", "StageLost".
std::string failure_name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::stage_failed;
  uint64_t request = 0;      // its number, counted from 0 in the order of submission
  std::string stage = {};    // empty: no stage's fault
  std::string backend = {};  // backend of the stage, where it names one
  Ref<ErrorObj> cause = {};  // null: no error of a stage
  // The batch whose call failed for all of its requests: how many there were, and the numbers of the first and the last
  // one; no requests: it failed alone.
  size_t batch_size = 0;
  uint64_t batch_first = 0, batch_last = 0;
};

// Returns one sentence with the request's number, the stage and the cause.
std::string message_of(const Failure& failure);

// Thrown where the results of a request that failed are asked for. Its kind is failure_name(failure().kind).
class RequestError : public Error {
 public:
  explicit RequestError(Failure failure);
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

// Thrown by a call that the pipeline does not take now. Its kind is "PipelineFull" when there was no place in time,
// "PipelineBroken" when a stage keeps failing, "PipelineStopped" when the pipeline takes no more requests,
// "PipelineNotStarted" when it takes none yet.
class RefusedError : public Error {
 public:
  RefusedError(std::string kind, std::string message) : Error(std::move(kind), std::move(message), {}) {}
};

}  // namespace headrace::executors::pipeline
