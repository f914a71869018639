// Verdict: whether a backend takes something, and why not.
#pragma once

#include <headrace/reason.h>

#include <string>
#include <utility>

namespace headrace::partition {

// Whether a backend takes a call, and why not.
struct Verdict {
  hr_reason reason = HR_REASON_NONE;
  std::string message = {};  // the rest of a sentence that begins with the name of the op

  bool ok() const { return reason == HR_REASON_NONE; }
};

// The answer of a check that users write: a bool, or a Verdict, which also has the reason.
struct CheckAnswer : Verdict {
  CheckAnswer(Verdict verdict) : Verdict(std::move(verdict)) {}  // implicit, so that a check may return either
  CheckAnswer(bool is_taken) : Verdict{.reason = is_taken ? HR_REASON_NONE : HR_REASON_OP_UNSUPPORTED} {}
};

}  // namespace headrace::partition
