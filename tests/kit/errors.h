// Captures the messages of calls that should fail.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace headrace::kit {

// Returns the message of the UserError (with its place, if it has one) that the call throws; empty when it throws
// nothing. Anything else it throws passes through.
template <typename Call>
std::string user_error_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

}  // namespace headrace::kit
