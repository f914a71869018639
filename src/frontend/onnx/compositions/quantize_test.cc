// Products of integers and DynamicQuantizeLinear; expectations are worked out by hand from the standard's formulas.
#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

TEST(ConvertIntegers, DynamicQuantization) {
  const auto got = run_node("DynamicQuantizeLinear", 11, {f32({3}, {-1, 0, 4.1})}, {}, 3);
  EXPECT_THAT(doubles_of(got[0]), ElementsAre(0, 50, 255));
  EXPECT_NEAR(doubles_of(got[1])[0], 0.02, 1e-8);
  EXPECT_THAT(doubles_of(got[2]), ElementsAre(50));
  const auto zeros = run_node("DynamicQuantizeLinear", 11, {f32({2}, {0, 0})}, {}, 3);
  EXPECT_THAT(doubles_of(zeros[0]), ElementsAre(0, 0));
  EXPECT_THAT(doubles_of(zeros[1]), ElementsAre(1));
  EXPECT_THAT(node_error("DynamicQuantizeLinear", 11, {f16({1}, {1})}, {}, 3), HasSubstr("expected float32"));
}

TEST(ConvertIntegers, ProductsOfIntegers) {
  const NDArray a = u8({2, 2}, {1, 2, 3, 255}), b = i8({2, 2}, {1, -1, 2, 0});
  EXPECT_THAT(doubles_of(run_node("MatMulInteger", 10, {a, b})[0]), ElementsAre(5, -1, 513, -3));
  EXPECT_THAT(doubles_of(run_node("MatMulInteger", 10, {a, b, u8({2}, {1, 3}), i8({2}, {1, -1})})[0]),
              ElementsAre(1, 1, 252, 252));
  EXPECT_THAT(node_error("MatMulInteger", 10, {a, b, u8({3}, {1, 2, 3})}),
              HasSubstr("its a_zero_point has the shape (3), which does not fit (2, 2)"));
  EXPECT_THAT(node_error("MatMulInteger", 10, {a, b, i8({}, {1})}), HasSubstr("its a_zero_point has dtype int8"));
  EXPECT_THAT(node_error("MatMulInteger", 10, {i32({2, 2}, {1, 2, 3, 4}), b}), HasSubstr("int8 or uint8"));
  // The sums (5, -1, 513, -3) times 0.5 * (1, 2) / 2, and 100.
  const std::vector<Operand> scaled = {
      a, f32({}, {0.5}), u8({}, {0}), b, f32({2}, {1, 2}), i8({2}, {0, 0}), f32({}, {2}), u8({}, {100})};
  EXPECT_THAT(doubles_of(run_node("QLinearMatMul", 10, scaled)[0]), ElementsAre(101, 100, 228, 98));
  std::vector<Operand> wrong = scaled;
  wrong[4] = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(node_error("QLinearMatMul", 10, wrong), HasSubstr("which differs along the axis that is summed"));
  wrong = scaled;
  wrong[6] = f32({2}, {1, 2});
  EXPECT_THAT(node_error("QLinearMatMul", 10, wrong), HasSubstr("a y_scale or y_zero_point of more than one number"));
  wrong = scaled;
  wrong[7] = i32({}, {1});
  EXPECT_THAT(node_error("QLinearMatMul", 10, wrong), HasSubstr("a result of int32 is not supported"));
}

TEST(ConvertIntegers, Convolutions) {
  // One row; pads hold the zero point, which counts as 0.
  const NDArray x = u8({1, 1, 1, 3}, {11, 12, 13}), w = u8({2, 1, 1, 2}, {1, 2, 5, 5});
  const Attributes pads = {AttributeSpec("pads", Ints{0, 1, 0, 0})};
  EXPECT_THAT(doubles_of(run_node("ConvInteger", 10, {x, w, u8({}, {10}), u8({2}, {0, 4})}, pads)[0]),
              ElementsAre(2, 5, 8, 1, 3, 5));
  // These are the sums above plus the biases 1 and 0, times 1 * (0.5, 2) / 2.
  const std::vector<Operand> scaled = {x,
                                       f32({}, {1}),
                                       u8({}, {10}),
                                       w,
                                       f32({2}, {0.5, 2}),
                                       u8({2}, {0, 4}),
                                       f32({}, {2}),
                                       i8({}, {-1}),
                                       i32({2}, {1, 0})};
  EXPECT_THAT(doubles_of(run_node("QLinearConv", 10, scaled, pads)[0]), ElementsAre(0, 1, 1, 0, 2, 4));
  const auto error_with = [&](size_t i, const NDArray& operand) {
    std::vector<Operand> wrong = scaled;
    wrong[i] = operand;
    return node_error("QLinearConv", 10, wrong, pads);
  };
  EXPECT_THAT(error_with(1, f32({2}, {1, 2})), HasSubstr("its x_scale has more than one number"));
  EXPECT_THAT(error_with(4, f32({3}, {1, 2, 3})),
              HasSubstr("its w_scale has the shape (3), which does not fit (2, 1, 1, 2)"));
  EXPECT_THAT(error_with(4, f32({2, 2}, {1, 2, 3, 4})), HasSubstr("its w_scale has 2 dimensions"));
  EXPECT_THAT(error_with(2, u8({2}, {1, 2})), HasSubstr("its x_zero_point has the shape (2), which does not fit"));
  EXPECT_THAT(error_with(5, i8({2}, {1, 2})), HasSubstr("its w_zero_point has dtype int8, but it belongs to uint8"));
  EXPECT_THAT(error_with(8, f32({2}, {1, 2})), HasSubstr("its bias has dtype float32, expected int32"));
}

}  // namespace
}  // namespace headrace::onnx
