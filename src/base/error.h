// Errors: UserError for bad input (model, shape, option, file), InternalError for a broken invariant of this code.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace headrace {

// Where an error happened, in the user's words. Empty fields are unknown.
struct ErrorPlace {
  std::string op;     // operator or node name, such as "nn.conv2d" or an ONNX node's name
  std::string place;  // file:line:column of a text, or the path inside a model
};

// Base of every error that Headrace throws. `what()` is the message, followed by the place when it is known.
class Error : public std::runtime_error {
 public:
  Error(std::string kind, std::string message, ErrorPlace where);
  // Returns "UserError", "InternalError", or the kind of an error that came in over a language border.
  const std::string& kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const ErrorPlace& where() const { return where_; }

 private:
  std::string kind_;
  std::string message_;
  ErrorPlace where_;
};

// Reports bad input: the message says what is wrong, where, and what to do.
class UserError : public Error {
 public:
  explicit UserError(std::string message, ErrorPlace where = {});
};

// Something that the work needs is not here: a package, a backend, a feature of the processor.
class MissingError : public UserError {
 public:
  using UserError::UserError;
};

// The command line itself is wrong, whatever the files hold.
class UsageError : public UserError {
 public:
  using UserError::UserError;
};

// Returns whether the error says that its input is bad and no more: not that something is missing, which whoever looks
// for bad input, such as for operands that an op refuses, leaves to its caller.
bool is_plain(const UserError& error);

// Reports a broken invariant of this code; never thrown for bad input. what() ends in the C++ functions it was thrown
// in (base/frames.h).
class InternalError : public Error {
 public:
  explicit InternalError(std::string message, ErrorPlace where = {});
};

template <typename... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace detail

}  // namespace headrace

// Throws InternalError when `condition` is false: HEADRACE_CHECK(n > 0, "n is {}", n).
#define HEADRACE_CHECK(condition, ...)                                                              \
  do {                                                                                              \
    if (!(condition)) [[unlikely]]                                                                  \
      ::headrace::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
