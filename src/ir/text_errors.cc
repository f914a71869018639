#include "ir/text_errors.h"

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

std::string TextErrors::render(const Report& report) const {
  const auto [line, column] = line_column(report.offset);
  const size_t begin = line_starts_[line - 1];
  size_t end = line < line_starts_.size() ? line_starts_[line] - 1 : text_.size();
  // A long line is shown from a little before the error on.
  const size_t from = column > kMaxLineShown / 2 ? report.offset - kMaxLineShown / 2 : begin;
  end = std::min(end, from + kMaxLineShown);
  std::string shown(text_.substr(from, end - from));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  const size_t caret = report.offset - from;
  const size_t room = std::max<size_t>(1, end > report.offset ? end - report.offset : 1);
  const std::string marks = "^" + std::string(std::clamp<size_t>(report.length, 1, room) - 1, '~');
  return fmt::format("{}:{}:{}: {}\n  {}\n  {}{}", source_, line, column, report.message, shown,
                     std::string(caret, ' '), marks);
}

void TextErrors::throw_if_any() const {
  if (errors_.empty()) return;
  std::vector<Report> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Report& a, const Report& b) { return a.offset < b.offset; });
  std::string message;
  for (size_t i = 0; i < std::min(sorted.size(), kMaxShown); ++i) message += (i == 0 ? "" : "\n") + render(sorted[i]);
  if (sorted.size() > kMaxShown) message += fmt::format("\n... and {} more errors", sorted.size() - kMaxShown);
  throw UserError(message);
}

}  // namespace headrace
