#include "base/exit_code.h"

#include <new>
#include <system_error>

#include "base/error.h"

namespace headrace {

namespace {

template <typename Kind>
bool is_a(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

}  // namespace

bool is_out_of_resources(const std::exception& error) {
  if (is_a<std::bad_alloc>(error)) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && (system->code() == std::errc::resource_unavailable_try_again ||
                               system->code() == std::errc::not_enough_memory);
}

hr_status exit_code_of(const std::exception& error) {
  // An error that came in over a language border has the kind of its own language.
  const auto* own = dynamic_cast<const Error*>(&error);
  const std::string kind = own == nullptr ? "" : own->kind();
  if (is_a<UsageError>(error)) return HR_USAGE;
  if (is_a<MissingError>(error) || kind == "MissingError") return HR_MISSING_DEPENDENCY;
  if (is_a<UserError>(error) || kind == "UserError" || kind == "DiagnosticError") return HR_USER;
  // Lack of memory or threads counts as the user's: a smaller model or a larger machine solves it.
  if (is_out_of_resources(error)) return HR_USER;
  return HR_INTERNAL;
}

hr_status exit_code_of(hr_reason reason) {
  const bool is_missing = reason == HR_REASON_BACKEND_MISSING || reason == HR_REASON_CPU_FEATURE_MISSING ||
                          reason == HR_REASON_DEVICE_MISSING;
  return is_missing ? HR_MISSING_DEPENDENCY : HR_USER;
}

}  // namespace headrace
