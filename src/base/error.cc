#include "base/error.h"

namespace headrace {

// Who takes a message as a C string would lose what follows a NUL, which names from files and from Python may hold.
static std::string without_nul(std::string text) {
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}

static std::string with_place(const std::string& message, const ErrorPlace& where) {
  std::string text = message;
  if (!where.op.empty()) text += fmt::format("\n  at: {}", where.op);
  if (!where.place.empty()) text += fmt::format("\n  in: {}", where.place);
  return text;
}

Error::Error(std::string kind, std::string message, ErrorPlace where)
    : std::runtime_error(without_nul(with_place(message, where))),
      kind_(std::move(kind)),
      message_(without_nul(std::move(message))),
      where_(std::move(where)) {}

UserError::UserError(std::string message, ErrorPlace where)
    : Error("UserError", std::move(message), std::move(where)) {}

InternalError::InternalError(std::string message, ErrorPlace where)
    : Error("InternalError", std::move(message), std::move(where)) {}

void detail::check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{} (check '{}' failed at {}:{}; this is a defect of Headrace, please report it)",
                                  message, condition, file, line));
}

}  // namespace headrace
