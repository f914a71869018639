// Verdict: whether a backend takes something, and why not.
#pragma once

#include <headrace/reason.h>

#include <string>
#include <string_view>
#include <utility>

#include "object/value.h"

namespace headrace::partition {

// Whether a backend takes a call, and why not.
struct Verdict {
  hr_reason reason = HR_REASON_NONE;
  std::string message = {};  // a sentence, read after the name of the backend, in which "it" is the op

  bool ok() const { return reason == HR_REASON_NONE; }
};

// The answer of a check that users write: a bool, or a Verdict, which also has the reason.
struct CheckAnswer : Verdict {
  CheckAnswer(Verdict verdict) : Verdict(std::move(verdict)) {}  // implicit, so that a check may return either
  CheckAnswer(bool is_taken) : Verdict{.reason = is_taken ? HR_REASON_NONE : HR_REASON_OP_UNSUPPORTED} {}
};

// Reads the answer of a check that is a function of another language. True and numbers other than 0 mean yes; False, 0
// and None mean no; a string means no, and says why; and so does a list of a reason's number and a string. UserError,
// which begins with `source` ("the check of the pattern 'a.b'"), for other answers.
Verdict read_answer(const Value& answer, std::string_view source);
// Returns the answer that read_answer reads as this verdict.
Value answer_of(const Verdict& verdict);

// Returns whether the number is that of a reason which a backend may give for not taking a call.
bool is_refusal_reason(int64_t reason);
// Returns the reason of that name ("DTYPE_UNSUPPORTED"). UserError, which lists those that a backend may give, for
// other names.
hr_reason read_refusal_reason(std::string_view name);

}  // namespace headrace::partition
