// Skips tests in builds without a backend (-DUSE_CODEGENC=OFF and others).
#pragma once

#include <fmt/format.h>

#include <string>

#include "driver/all_backends.h"

namespace headrace::kit {

// Returns why a test that needs the backend is skipped; empty if this build has the backend. Asks how the build was
// configured, not which backends are registered, so a backend that is lost by mistake fails its tests.
inline std::string why_without(const std::string& backend) {
  for (const auto& [left_out, option] : driver::left_out_backends()) {
    if (left_out == backend)
      return fmt::format("the backend '{}' was left out of this build (-D{}=OFF)", backend, option);
  }
  return "";
}

}  // namespace headrace::kit
