#include "driver/check_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "kit/errors.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using testing::HasSubstr;

TEST(CheckSize, AWorkspaceIsRefusedAtItsOp) {
  check_workspace_size(kMaxBytes, {});
  const std::string error = kit::user_error_of([] { check_workspace_size(3 * kMaxBytes, make_span("m.relay", 7, 3)); });
  EXPECT_THAT(error, HasSubstr("its kernel would work in 3298 GB, more than any machine has; check the padding and the "
                               "sizes in its attributes, or fix a smaller batch"));
  EXPECT_THAT(error, HasSubstr("m.relay"));
}

TEST(CheckSize, LargePaddingIsReportedAtItsOp) {
  ops::register_all_ops();
  const std::string error = kit::user_error_of([] {
    compile_to_memory(make_model(relay::parse_module(
        "#[version = \"0.0.5\"]\n"
        "def @main(%x: Tensor[(1, 1, 8, 8), float32]) {\n"
        "  nn.max_pool2d(%x, pool_size=[2, 2], strides=[1, 1], padding=[2000000000, 2000000000])\n}\n")));
  });
  EXPECT_THAT(error, HasSubstr("more than any machine; check the padding and the sizes in its attributes, or fix a "));
  EXPECT_THAT(error, HasSubstr("at: nn.max_pool2d"));
}

TEST(CheckSize, ARunIsRefused) {
  check_run_size(kMaxBytes);
  EXPECT_THAT(kit::user_error_of([] { check_run_size(2 * kMaxBytes); }), HasSubstr("a run would hold 2199 GB at once"));
}

}  // namespace
}  // namespace headrace::driver
