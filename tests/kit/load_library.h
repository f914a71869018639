// Loading a user's library that registers things as it is loaded.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace headrace::kit {

// What it tells on stderr; it stays loaded.
inline std::string told_by_loading(const char* path) {
  ::testing::internal::CaptureStderr();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(library, nullptr) << dlerror();
  return told;
}

}  // namespace headrace::kit
