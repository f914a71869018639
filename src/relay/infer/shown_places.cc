#include "relay/infer/shown_places.h"

#include <charconv>

#include "ir/text_errors.h"

namespace headrace::relay {

namespace {

// Removes ":12" from the end and returns the number; nothing when the text does not end so.
std::optional<int64_t> take_number(std::string_view& place) {
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  const char* end = place.data() + place.size();
  const auto [stop, error] = std::from_chars(place.data() + colon + 1, end, number);
  if (error != std::errc() || stop != end || number < 1) return std::nullopt;
  place = place.substr(0, colon);
  return number;
}

// Parses "text:3:14" as a span without an end; null for a place of another form.
Span span_of_place(std::string_view place) {
  const auto column = take_number(place);
  const auto line = column ? take_number(place) : std::nullopt;
  return line ? make_span(std::string(place), *line, *column) : Span();
}

}  // namespace

UserError with_shown_place(const UserError& error, const Span& about, const IRModule& module) {
  const auto& [op, place] = error.where();
  const bool is_about = about && !place.empty() && to_string(about) == place;
  const Span span = is_about ? about : span_of_place(place);
  const auto source = span && module ? module->source_map().get(span->source) : std::nullopt;
  const std::string shown = source ? text_excerpt((*source)->source, span, "    ") : "";
  if (shown.empty()) return error;
  const std::string at = op.empty() ? "" : fmt::format("\n  at: {}", op);
  return UserError(fmt::format("{}{}\n  in: {}\n{}", error.message(), at, place, shown), error.where());
}

}  // namespace headrace::relay
