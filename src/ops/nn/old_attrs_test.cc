#include <gtest/gtest.h>

#include "base/read_text.h"
#include "object/json.h"
#include "ops/all_ops.h"
#include "ops/nn/conv.h"
#include "ops/nn/pool.h"
#include "relay/expr.h"
#include "relay/infer/infer_type.h"
#include "relay/text/print.h"

namespace headrace::ops {
namespace {

// tests/old_attrs.json was written by a program that had one type of attributes for all ranks.
TEST(OldAttrs, AreReadAsTheTypeOfTheirOp) {
  register_all_ops();
  const Value read = load_json(read_text(HEADRACE_SOURCE_DIR "/src/ops/tests/old_attrs.json", "program"));
  const auto function = relay::infer_type(read.as<Expr>()).cast<relay::FunctionNode>();
  EXPECT_EQ(relay::print_expr(function), R"(#[version = "0.0.5"]
fn (%x: Tensor[(1, 4, 9), float32], %y: Tensor[(1, 4, 9, 9), float32], %z: Tensor[(1, 4, 5, 5, 5), float32], %u: Tensor[(4, 4, 3), float32], %v: Tensor[(4, 4, 3, 3, 3), float32]) {
  %0 = nn.max_pool1d(%x, pool_size=[3]);
  %1 = nn.max_pool2d(%y, pool_size=[2, 3], strides=[2, 1], padding=[1, 0, 0, 1]);
  %2 = nn.avg_pool3d(%z, pool_size=[2, 2, 2], count_include_pad=True);
  %3 = nn.adaptive_avg_pool2d(%y, output_size=[3, 2]);
  %4 = nn.adaptive_max_pool1d(%x, output_size=[2]);
  %5 = nn.conv1d(%x, %u, strides=[2]);
  %6 = nn.conv3d(%z, %v, padding=[1, 1, 1], kernel_size=[3, 3, 3]);
  %7 = nn.conv3d_transpose(%z, %v, strides=[2, 2, 2], output_padding=[1, 1, 1]);
  %8 = nn.conv1d_transpose(%x, %u);
  (%0, %1, %2, %3, %4, %5, %6, %7, %8)
}
)");
  const Array<Expr>& calls = function->body.as<relay::TupleNode>()->items;
  const auto& pool = calls[1].as<relay::CallNode>()->attrs_as<MaxPool2DAttrs>();
  EXPECT_EQ(pool.layout, "NCHW");
  EXPECT_EQ(pool.dilation, (Shape{1, 1}));
  const auto& transpose = calls[7].as<relay::CallNode>()->attrs_as<Conv3DTransposeAttrs>();
  EXPECT_EQ(transpose.kernel_layout, "IODHW");
  EXPECT_EQ(transpose.padding, (Shape{0, 0, 0}));
}

}  // namespace
}  // namespace headrace::ops
