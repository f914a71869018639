// The options that say how far from its reference an output may be.
#pragma once

#include <CLI/App.hpp>

#include "tools/headrace/comparison.h"

namespace headrace::tools {

class ToleranceOptions {
 public:
  // Adds --limit with this help, --rtol and --atol.
  void add_to(CLI::App& verb, const std::string& limit_help);
  // Returns the first option that is given, such as "--limit"; empty for none.
  std::string given() const;
  Tolerance read() const;

 private:
  std::optional<double> limit_, relative_, absolute_;
};

}  // namespace headrace::tools
