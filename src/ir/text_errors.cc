#include "ir/text_errors.h"

#include <algorithm>
#include <optional>

namespace headrace {

static constexpr size_t kMaxShown = 50;
static constexpr size_t kMaxLineShown = 160;

TextErrors::TextErrors(std::string_view text, std::string source_name) : text_(text), source_(std::move(source_name)) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
}

void TextErrors::report(size_t offset, size_t length, std::string message) {
  errors_.push_back({std::min(offset, text_.size()), length, std::move(message)});
}

std::pair<size_t, size_t> TextErrors::line_column(size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const size_t line = static_cast<size_t>(after - line_starts_.begin());
  return {line, offset - line_starts_[line - 1] + 1};
}

Span TextErrors::span(size_t begin, size_t end) const {
  const auto [line, column] = line_column(begin);
  const auto [end_line, end_column] = line_column(std::max(begin, end));
  return make_span(source_, static_cast<int64_t>(line), static_cast<int64_t>(column), static_cast<int64_t>(end_line),
                   static_cast<int64_t>(end_column));
}

std::string text_excerpt(std::string_view text, size_t offset, size_t length, std::string_view indent) {
  const size_t break_before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const size_t begin = break_before == std::string_view::npos ? 0 : break_before + 1;
  size_t end = std::min(text.find('\n', offset), text.size());
  // A long line is shown from a little before the error on.
  const size_t from = offset - begin >= kMaxLineShown / 2 ? offset - kMaxLineShown / 2 : begin;
  end = std::min(end, from + kMaxLineShown);
  std::string shown(text.substr(from, end - from));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  const size_t room = std::max<size_t>(1, end > offset ? end - offset : 1);
  const std::string marks(std::clamp<size_t>(length, 1, room), '^');
  return fmt::format("{0}{1}\n{0}{2}{3}", indent, shown, std::string(offset - from, ' '), marks);
}

// Returns the offset of a line, counted from 1; nothing when the text has fewer lines.
static std::optional<size_t> offset_of_line(std::string_view text, int64_t line) {
  size_t offset = 0;
  for (int64_t i = 1; i < line; ++i) {
    offset = text.find('\n', offset);
    if (offset == std::string_view::npos) return std::nullopt;
    ++offset;
  }
  return offset;
}

static size_t word_length(std::string_view text, size_t offset) {
  const auto is_part = [](unsigned char c) {
    return c > 0x20 && std::string_view("()[]{},;=").find(static_cast<char>(c)) == std::string_view::npos;
  };
  size_t end = offset;
  while (end < text.size() && is_part(static_cast<unsigned char>(text[end]))) ++end;
  return end - offset;
}

std::string text_excerpt(std::string_view text, const Span& span, std::string_view indent) {
  const auto line = span->line < 1 || span->column < 1 ? std::nullopt : offset_of_line(text, span->line);
  if (!line) return {};
  const size_t line_end = std::min(text.find('\n', *line), text.size());
  const size_t offset = *line + static_cast<size_t>(span->column - 1);
  if (offset >= line_end) return {};
  const bool ends_here = span->end_line == span->line && span->end_column > span->column;
  const size_t length = ends_here                     ? static_cast<size_t>(span->end_column - span->column)
                        : span->end_line > span->line ? line_end - offset
                                                      : word_length(text, offset);
  return text_excerpt(text, offset, length, indent);
}

std::string TextErrors::render(const Report& report) const {
  const auto [line, column] = line_column(report.offset);
  return fmt::format("{}:{}:{}: {}\n{}", source_, line, column, report.message,
                     text_excerpt(text_, report.offset, report.length, "  "));
}

void TextErrors::throw_if_any() const {
  if (errors_.empty()) return;
  std::vector<Report> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Report& a, const Report& b) { return a.offset < b.offset; });
  std::string message;
  for (size_t i = 0; i < std::min(sorted.size(), kMaxShown); ++i) message += (i == 0 ? "" : "\n") + render(sorted[i]);
  if (sorted.size() > kMaxShown) message += fmt::format("\n... and {} more errors", sorted.size() - kMaxShown);
  const auto [line, column] = line_column(sorted[0].offset);
  throw UserError(message, {"", fmt::format("{}:{}:{}", source_, line, column)});
}

}  // namespace headrace
