// Errors of other languages that cross C++ on their way.
#pragma once

#include "object/function.h"

namespace headrace {

// Its payload lets the language it came from raise its own exception again, with its own traceback, when the error
// comes back to it; to C++ it is an Error whose kind is the exception's name.
class ForeignError : public Error {
 public:
  ForeignError(std::string kind, std::string message, ObjectRef payload)
      : Error(std::move(kind), std::move(message), {}), payload_(std::move(payload)) {}
  const ObjectRef& payload() const { return payload_; }

 private:
  ObjectRef payload_;
};

}  // namespace headrace
