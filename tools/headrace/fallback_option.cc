#include "tools/headrace/fallback_option.h"

#include "base/reason_name.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

void FallbackOption::add_to(CLI::App& verb) {
  takes_word(
      verb.add_option("--fallback", word_,
                      "Where a backend is missing or fails: native (its region runs natively) or none (an error)")
          ->capture_default_str(),
      "fallback", {"native", "none"});
}

executors::Fallback FallbackOption::read() const {
  return word_ == "none" ? executors::Fallback::none : executors::Fallback::native;
}

Report report_of(const executors::FallbackEvent& event) {
  return {{"region", Value(event.region)},
          {"backend", Value(event.backend)},
          {"reason", Value(static_cast<int64_t>(event.reason))},
          {"reason_name", Value(std::string(reason_name(event.reason)))},
          {"message", Value(event.message)}};
}

std::string line_of(const executors::FallbackEvent& event) {
  return fmt::format("region {} ran natively, not by {}: {}\n", shown(event.region), shown(event.backend),
                     shown(event.message));
}

Array<Value> fallbacks_report(const executors::Executor& executor) {
  Array<Value> list;
  for (const executors::FallbackEvent& event : executor.fallbacks()) list.push_back(Value(report_of(event)));
  return list;
}

std::string fallbacks_text(const executors::Executor& executor) {
  std::string text;
  for (const executors::FallbackEvent& event : executor.fallbacks()) text += line_of(event);
  return text;
}

}  // namespace headrace::tools
