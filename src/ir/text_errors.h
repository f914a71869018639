// The errors of one text, collected and shown together.
#pragma once

#include "ir/span.h"

namespace headrace {

// Returns two lines, each behind `indent`: the line that `offset` is in (a part of it where it is long), and below it
// `length` carets.
std::string text_excerpt(std::string_view text, size_t offset, size_t length, std::string_view indent);
// Returns the line and the caret for the beginning of a span; marks one word where the span has no end. Empty when the
// text has no such place because the span points into another text.
std::string text_excerpt(std::string_view text, const Span& span, std::string_view indent);

class TextErrors {
 public:
  TextErrors(std::string_view text, std::string source_name);

  // Records an error at `text[offset, offset + length)`.
  void report(size_t offset, size_t length, std::string message);
  bool any() const { return !errors_.empty(); }
  // Throws one UserError with every report in order of place: line and column, message, source line, carets. Does
  // nothing without reports. Reports past the 50th are only counted. The error's place is that of the first.
  void throw_if_any() const;
  Span span(size_t begin, size_t end) const;

 private:
  struct Report {
    size_t offset, length;
    std::string message;
  };
  std::pair<size_t, size_t> line_column(size_t offset) const;  // from 1
  std::string render(const Report& report) const;

  std::string_view text_;
  std::string source_;
  std::vector<size_t> line_starts_{0};
  std::vector<Report> errors_;
};

}  // namespace headrace
