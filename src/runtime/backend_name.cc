#include "runtime/backend_name.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/utf8.h"

namespace headrace::runtime {

namespace {

constexpr size_t kMaxLength = 64;
// By partition: kNative and kExternal of placements, kDefaultCompiler of annotations.
constexpr std::string_view kReserved[] = {"native", "external", "default"};

bool is_of_a_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

}  // namespace

void check_backend_name(std::string_view name, std::string_view library) {
  const std::string subject = library.empty() ? "" : fmt::format("the backend of '{}': ", library);
  if (name.empty() || name.size() > kMaxLength || !std::all_of(name.begin(), name.end(), is_of_a_word))
    throw_user_error(
        "{}'{}' is not a name of a backend; it must be of letters, digits, '_' and '-', at most {} of them", subject,
        as_utf8(std::string(name)), kMaxLength);
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved))
    throw_user_error("{}'{}' is a word of the compiler's own; give the backend another name", subject, name);
}

}  // namespace headrace::runtime
