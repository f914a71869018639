// Regions whose backend is missing or fails: the option that says what happens to them, and what is shown of those that
// ran natively.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "executors/executor.h"
#include "object/array.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

class FallbackOption {
 public:
  void add_to(CLI::App& verb);
  executors::Fallback read() const;

 private:
  std::string word_ = "native";
};

// Return an event as an object of a report, and as a line: "region r ran natively, not by chip: the chip is too hot".
Report report_of(const executors::FallbackEvent& event);
std::string line_of(const executors::FallbackEvent& event);

// Return those of all regions that fell back to native code since the executor was made.
Array<Value> fallbacks_report(const executors::Executor& executor);
std::string fallbacks_text(const executors::Executor& executor);

}  // namespace headrace::tools
