// The main() of every test program: gtest's, and the kit's own options.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.h"
#include "kit/options.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    headrace::kit::read_options(argc, argv);
  } catch (const headrace::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return RUN_ALL_TESTS();
}
