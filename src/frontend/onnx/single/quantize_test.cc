// QuantizeLinear and DequantizeLinear; expectations are worked out by hand from the standard's formulas.
#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

TEST(ConvertQuantize, QuantizesHalvesToEvenAndSaturates) {
  const NDArray x = f32({6}, {1, 3, 5, -1, 1000, -1000});  // halves of a scale of 2
  const NDArray y = run_node("QuantizeLinear", 13, {x, f32({}, {2}), i8({}, {10})})[0];
  EXPECT_EQ(y.dtype(), DataType::int_(8));
  EXPECT_THAT(doubles_of(y), ElementsAre(10, 12, 12, 10, 127, -128));
  const NDArray plain = run_node("QuantizeLinear", 10, {x, f32({1}, {2})})[0];
  EXPECT_EQ(plain.dtype(), DataType::uint(8));
  EXPECT_THAT(doubles_of(plain), ElementsAre(0, 2, 2, 0, 255, 0));
  const NDArray wide = run_node("QuantizeLinear", 21, {x, f32({}, {2})}, {AttributeSpec("output_dtype", 5)})[0];
  EXPECT_EQ(wide.dtype(), DataType::int_(16));
  EXPECT_THAT(doubles_of(wide), ElementsAre(0, 2, 2, 0, 500, -500));
}

TEST(ConvertQuantize, QuantizesIntegersAndHalfPrecision) {
  EXPECT_THAT(doubles_of(run_node("QuantizeLinear", 13, {i32({3}, {7, -7, 9}), f32({}, {2}), i8({}, {0})})[0]),
              ElementsAre(4, -4, 4));
  // 2050 / 3 is 683.33, which float16 rounds to 683.5, and that is rounded to 684.
  const NDArray x = f16({1}, {2050});
  const std::vector<Operand> operands = {x, f16({}, {3}), make_array({}, {0}, DataType::int_(16))};
  EXPECT_THAT(doubles_of(run_node("QuantizeLinear", 21, operands)[0]), ElementsAre(683));
  EXPECT_THAT(doubles_of(run_node("QuantizeLinear", 23, operands)[0]), ElementsAre(684));
  EXPECT_THAT(doubles_of(run_node("QuantizeLinear", 23, operands, {AttributeSpec("precision", 1)})[0]),
              ElementsAre(683));
}

TEST(ConvertQuantize, QuantizesAlongAnAxisAndInBlocks) {
  const NDArray x = f32({2, 3}, {2, 4, 6, 8, 10, 12});
  const std::vector<Operand> rows = {x, f32({2}, {1, 2}), u8({2}, {0, 100})};
  EXPECT_THAT(doubles_of(run_node("QuantizeLinear", 13, rows, {AttributeSpec("axis", -2)})[0]),
              ElementsAre(2, 4, 6, 104, 105, 106));
  // Blocks of two along axis 1, the last of one element.
  const std::vector<Operand> blocks = {x, f32({2, 2}, {1, 2, 4, 3}), u8({2, 2}, {0, 1, 2, 3})};
  EXPECT_THAT(doubles_of(run_node("QuantizeLinear", 21, blocks, {AttributeSpec("block_size", 2)})[0]),
              ElementsAre(2, 4, 4, 4, 4, 7));
  const std::vector<Operand> back = {u8({2, 2}, {1, 2, 3, 4}), f32({1, 2}, {1, 10})};
  EXPECT_THAT(doubles_of(run_node("DequantizeLinear", 21, back,
                                  {AttributeSpec("block_size", int64_t{1} << 40), AttributeSpec("axis", 0)})[0]),
              ElementsAre(1, 20, 3, 40));
}

TEST(ConvertQuantize, Dequantizes) {
  const NDArray x = u8({2, 2}, {0, 128, 255, 130});
  EXPECT_THAT(doubles_of(run_node("DequantizeLinear", 13, {x, f32({}, {0.5}), u8({}, {128})})[0]),
              ElementsAre(-64, 0, 63.5, 1));
  EXPECT_THAT(doubles_of(run_node("DequantizeLinear", 13, {x, f32({2}, {1, 2}), u8({2}, {0, 128})})[0]),
              ElementsAre(0, 0, 255, 4));
  const NDArray half = run_node("DequantizeLinear", 19, {i8({1}, {-3}), f16({}, {0.5})})[0];
  EXPECT_EQ(half.dtype(), DataType::float_(16));
  EXPECT_THAT(doubles_of(half), ElementsAre(-1.5));
  EXPECT_THAT(doubles_of(run_node("DequantizeLinear", 10, {i32({2}, {-7, 100000}), f32({}, {0.25})})[0]),
              ElementsAre(-1.75, 25000));
  const NDArray asked =
      run_node("DequantizeLinear", 23, {i8({1}, {-3}), f32({}, {0.5})}, {AttributeSpec("output_dtype", 10)})[0];
  EXPECT_EQ(asked.dtype(), DataType::float_(16));
}

TEST(ConvertQuantize, RefusesScalesAndZeroPointsThatDoNotFit) {
  const NDArray x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), q = u8({2, 3}, {1, 2, 3, 4, 5, 6}), one = f32({}, {1});
  EXPECT_THAT(node_error("QuantizeLinear", 13, {x, f32({2}, {1, 2}), u8({2}, {0, 0})}),
              HasSubstr("its scale has the shape (2), expected one number, or 3 for axis 1"));
  EXPECT_THAT(node_error("QuantizeLinear", 13, {x, f32({3}, {1, 2, 3}), u8({}, {0})}),
              HasSubstr("its zero point has the shape (), but its scale (3)"));
  EXPECT_THAT(node_error("QuantizeLinear", 13, {x, f32({3}, {1, 2, 3})}, {AttributeSpec("axis", 2)}),
              HasSubstr("axis"));
  EXPECT_THAT(node_error("QuantizeLinear", 13, {x, f32({2, 3}, {1, 2, 3, 4, 5, 6})}),
              HasSubstr("its scale has the shape (2, 3)"));
  EXPECT_THAT(node_error("QuantizeLinear", 13, {x, i32({}, {1})}), HasSubstr("its y_scale has dtype int32"));
  EXPECT_THAT(node_error("QuantizeLinear", 13, {x, one, i32({}, {1})}), HasSubstr("quantization to int32"));
  EXPECT_THAT(node_error("QuantizeLinear", 21, {x, one, u8({}, {1})}, {AttributeSpec("output_dtype", 3)}),
              HasSubstr("attribute 'output_dtype' is int8, but its y_zero_point has dtype uint8"));
  EXPECT_THAT(node_error("QuantizeLinear", 21, {x, one}, {AttributeSpec("output_dtype", 8)}),
              HasSubstr("output_dtype string is not supported"));
  EXPECT_THAT(node_error("QuantizeLinear", 23, {x, one}, {AttributeSpec("precision", 7)}),
              HasSubstr("attribute 'precision' is int64"));
  EXPECT_THAT(node_error("QuantizeLinear", 23, {x, one}, {AttributeSpec("precision", 11)}),
              HasSubstr("precision float64 is not supported"));
  EXPECT_THAT(node_error("QuantizeLinear", 13, {q, one}), HasSubstr("floats or int32"));
  EXPECT_THAT(node_error("QuantizeLinear", 21, {x, f32({2, 2}, {1, 2, 3, 4})}, {AttributeSpec("block_size", 3)}),
              HasSubstr("its scale has the shape [2, 2], expected [2, 1] for blocks of 3"));
  EXPECT_THAT(node_error("QuantizeLinear", 21, {x, f32({2, 2}, {1, 2, 3, 4})}, {AttributeSpec("block_size", -1)}),
              HasSubstr("attribute 'block_size' is -1"));
  EXPECT_THAT(node_error("DequantizeLinear", 13, {q, one, i8({}, {0})}),
              HasSubstr("its x_zero_point has dtype int8, but it belongs to uint8"));
  EXPECT_THAT(node_error("DequantizeLinear", 13, {i64({1}, {0}), one}),
              HasSubstr("integers of 2 to 16 bits, int32, or floats of 8 or 4 bits"));
  EXPECT_THAT(node_error("DequantizeLinear", 23, {q, one}, {AttributeSpec("output_dtype", 3)}),
              HasSubstr("a result of int8 is not supported"));
}

}  // namespace
}  // namespace headrace::onnx
