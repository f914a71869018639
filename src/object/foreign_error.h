// Errors of other languages that cross C++ on their way.
#pragma once

#include <string_view>

#include "object/function.h"

namespace headrace {

// Returns whether an error of this kind asks the program to stop, and so must reach its caller. "BaseException" stands
// for all other exceptions of Python that are no Exception.
inline bool is_interrupt_kind(std::string_view kind) {
  return kind == "KeyboardInterrupt" || kind == "SystemExit" || kind == "BaseException";
}

// An exception of another language. Its payload lets that language raise its own exception again, with its own
// traceback, when the error returns to it. To C++ it is an Error whose kind is the exception's name.
class ForeignError : public Error {
 public:
  ForeignError(std::string kind, std::string message, ObjectRef payload)
      : Error(std::move(kind), std::move(message), {}), payload_(std::move(payload)) {}
  const ObjectRef& payload() const { return payload_; }
  // Returns whether it asks the program to stop, and so must reach its caller. Any other may be an answer to a question
  // that an op or module of a user was asked.
  bool is_interrupt() const { return is_interrupt_kind(kind()); }

 private:
  ObjectRef payload_;
};

}  // namespace headrace
