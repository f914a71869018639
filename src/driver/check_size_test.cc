#include "driver/check_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace::driver {
namespace {

using testing::HasSubstr;

TEST(CheckSize, AWorkspaceIsRefusedAtItsOp) {
  check_workspace_size(kMaxBytes, {});
  const std::string error = kit::user_error_of([] { check_workspace_size(3 * kMaxBytes, make_span("m.relay", 7, 3)); });
  EXPECT_THAT(error, HasSubstr("its kernel would work in 3298 GB, more than any machine has; check the padding and the "
                               "sizes in attributes, or fix a smaller batch"));
  EXPECT_THAT(error, HasSubstr("m.relay"));
}

TEST(CheckSize, ARunIsRefused) {
  check_run_size(kMaxBytes);
  EXPECT_THAT(kit::user_error_of([] { check_run_size(2 * kMaxBytes); }), HasSubstr("a run would hold 2199 GB at once"));
}

}  // namespace
}  // namespace headrace::driver
