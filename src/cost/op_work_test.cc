#include "cost/op_work.h"

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::cost {
namespace {

TEST(OpWork, CountsMultiplyAdds) {
  const auto work = [](const std::string& text) {
    ops::register_all_ops();
    const IRModule module = relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test"));
    return work_of(*module->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>());
  };
  const StepWork conv = work(
      "def @main(%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(32, 4, 3, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, padding=[1, 1], groups=4, channels=32, kernel_size=[3, 3]) }");
  EXPECT_EQ(conv.operations, 2.0 * 32 * 8 * 8 * 4 * 3 * 3);
  EXPECT_EQ(conv.bytes_read, 4.0 * (16 * 8 * 8 + 32 * 4 * 3 * 3));
  EXPECT_EQ(conv.bytes_written, 4.0 * 32 * 8 * 8);
  EXPECT_EQ(work("def @main(%x: Tensor[(1, 3, 8, 8, 16), float32], %w: Tensor[(2, 3, 3, 3, 16, 16), float32]) {\n"
                 "  nn.conv2d(%x, %w, padding=[1, 1], data_layout=\"NCHW16c\", kernel_layout=\"OIHW16i16o\") }")
                .operations,
            2.0 * 32 * 8 * 8 * 48 * 3 * 3);
  const StepWork dense =
      work("def @main(%x: Tensor[(5, 7), float32], %w: Tensor[(11, 7), float32]) { nn.dense(%x, %w) }");
  EXPECT_EQ(dense.operations, 2.0 * 5 * 7 * 11);
  EXPECT_EQ(work("def @main(%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 5, 4), float32]) {\n"
                 "  nn.batch_matmul(%x, %y) }")
                .operations,
            2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(work("def @main(%x: Tensor[(5, 7), float32]) { sum(%x) }").operations, 35);
  EXPECT_EQ(work("def @main(%x: Tensor[(5, 7), float32]) { reshape(%x, newshape=[35]) }").bytes_read, 0);
  EXPECT_EQ(seconds_of({}, {}, 4), 0);
}

}  // namespace
}  // namespace headrace::cost
