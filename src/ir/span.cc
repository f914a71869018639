#include "ir/span.h"

namespace headrace {

Span make_span(std::string source, int64_t line, int64_t column, int64_t end_line, int64_t end_column) {
  Span span = make_object<SpanNode>();
  span->source = std::move(source);
  span->line = line;
  span->column = column;
  span->end_line = end_line;
  span->end_column = end_column;
  return span;
}

std::string to_string(const Span& span) {
  if (!span) return {};
  if (span->line == 0) return span->source;
  return fmt::format("{}:{}:{}", span->source, span->line, span->column);
}

}  // namespace headrace
