// Loading a user's library that registers things as it is loaded.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace headrace::kit {

// Loads a library, which stays loaded, and returns what it wrote to stderr.
inline std::string told_by_loading(const char* path) {
  ::testing::internal::CaptureStderr();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(library, nullptr) << dlerror();
  return told;
}

}  // namespace headrace::kit
