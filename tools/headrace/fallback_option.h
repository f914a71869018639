// Regions whose backend is missing or fails: the option that says what happens to them, and what is shown of those that
// ran natively.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "executors/executor.h"
#include "object/array.h"

namespace headrace::tools {

class FallbackOption {
 public:
  void add_to(CLI::App& verb);
  executors::Fallback read() const;

 private:
  std::string word_ = "native";
};

// Returns a list for reports, an object for each region that fell back to native code since the executor was made.
Array<Value> fallbacks_report(const executors::Executor& executor);
// Returns a line for each of them: "region r ran natively, not by chip: the chip is too hot".
std::string fallbacks_text(const executors::Executor& executor);

}  // namespace headrace::tools
