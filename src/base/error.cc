#include "base/error.h"

#include <algorithm>
#include <typeinfo>
#include <vector>

#include "base/frames.h"
#include "base/printable.h"

namespace headrace {

namespace {

// Shorter lines stay as they are: those of a program that an error shows, with a mark below.
constexpr size_t kLongLine = 1000;
constexpr size_t kMaxItems = 16, kItemsShown = 8;
constexpr size_t kMaxWord = 400, kWordShown = 60;

// An open bracket: the items so far, and where the first ones that are shown end.
struct OpenList {
  char closes;
  size_t items = 1;
  size_t shown_end = 0;
};

}  // namespace

// Shortens a list: "[0, 1, 2, 3, 4, 5, 6, 7, ... (100000 in all)]". Shapes and attributes from users have any length,
// and no message needs all of one.
static std::string with_short_lists(std::string_view text) {
  std::string result;
  std::vector<OpenList> open;
  for (const char c : text) {
    if (c == ',' && !open.empty() && open.back().items++ == kItemsShown) open.back().shown_end = result.size();
    if (!open.empty() && c == open.back().closes) {
      const OpenList list = open.back();
      open.pop_back();
      if (list.items > kMaxItems) {
        result.resize(list.shown_end);
        result += fmt::format(", ... ({} in all)", list.items);
      }
    }
    if (c == '[' || c == '(' || c == '{') open.push_back({c == '[' ? ']' : c == '(' ? ')' : '}'});
    result += c;
  }
  return result;
}

// Replaces NUL characters, which names from files and from Python may contain: readers of a C string would lose the
// rest.
static std::string without_nul(std::string text) {
  for (size_t at = 0; (at = text.find('\0', at)) != std::string::npos;) text.replace(at, 1, "\\x00");
  return text;
}

// Adds the place, unless the message shows it already, as a list of errors does, or begins with it. Names of a place
// come from files: they are escaped, so that none of them makes a line.
static std::string with_place(const std::string& message, const ErrorPlace& where) {
  std::string lines;
  if (!where.op.empty()) lines += fmt::format("\n  at: {}", escaped(where.op));
  const bool begins_with_place = message.starts_with(where.place + ":");
  if (!where.place.empty() && !begins_with_place) lines += fmt::format("\n  in: {}", escaped(where.place));
  return (message + "\n").find(lines + "\n") == std::string::npos ? message + lines : message;
}

// Shortens a text without blanks: "aaaa... (100000 bytes)".
static std::string with_short_words(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = std::min(text.find_first_of(" \n"), text.size());
    size_t shown = length > kMaxWord ? kWordShown : length;
    while (shown < length && (static_cast<unsigned char>(text[shown]) & 0xc0) == 0x80) --shown;  // whole UTF-8
    result += text.substr(0, shown);
    if (shown < length) result += fmt::format("... ({} bytes)", length);
    const size_t next = std::min(length + 1, text.size());
    result += text.substr(length, next - length);
    text.remove_prefix(next);
  }
  return result;
}

static std::string fit_to_show(std::string message) {
  const std::string text = without_nul(std::move(message));
  std::string result;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    result += line.size() < kLongLine ? line : with_short_words(with_short_lists(line));
  }
  return result;
}

Error::Error(std::string kind, std::string message, ErrorPlace where)
    : std::runtime_error(without_nul(with_place(fit_to_show(message), where))),
      kind_(std::move(kind)),
      message_(fit_to_show(std::move(message))),
      where_(std::move(where)) {}

bool is_plain(const UserError& error) { return typeid(error) == typeid(UserError); }

UserError::UserError(std::string message, ErrorPlace where)
    : Error("UserError", std::move(message), std::move(where)) {}

// Appends the frames to the message, unless the message was made of another error's text and has them already.
InternalError::InternalError(std::string message, ErrorPlace where)
    : Error("InternalError", std::move(message), std::move(where)) {
  if (frames_of(*this).empty())
    static_cast<std::runtime_error&>(*this) = std::runtime_error(fmt::format("{}\n{}", what(), calling_frames(1)));
}

void detail::check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{} (check '{}' failed at {}:{}; this is a defect of Headrace, please report it)",
                                  message, condition, file, line));
}

}  // namespace headrace
