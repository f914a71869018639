// The errors of one text, collected and shown together.
#pragma once

#include "ir/span.h"

namespace headrace {

class TextErrors {
 public:
  TextErrors(std::string_view text, std::string source_name);

  // An error at `text[offset, offset + length)`.
  void report(size_t offset, size_t length, std::string message);
  bool any() const { return !errors_.empty(); }
  // One UserError with every report in order of place: line and column, message, source line, caret. Nothing when there
  // is none. Past 50 reports the rest are counted.
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
