// The operators of quantized models; expectations are worked out by hand from the standard's formulas.
#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

std::vector<double> values_of(const NDArray& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.num_elements(); ++i) result.push_back(element_as_double(array.tensor(), i));
  return result;
}

NDArray u8(const Shape& shape, const std::vector<double>& data) { return make_array(shape, data, DataType::uint(8)); }
NDArray i8(const Shape& shape, const std::vector<double>& data) { return make_array(shape, data, DataType::int_(8)); }
NDArray i32(const Shape& shape, const std::vector<double>& data) { return make_array(shape, data, DataType::int_(32)); }
NDArray f16(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::float_(16));
}

TEST(ConvertQuantize, QuantizesHalvesToEvenAndSaturates) {
  const NDArray x = f32({6}, {1, 3, 5, -1, 1000, -1000});  // halves of a scale of 2
  const NDArray y = run_node("QuantizeLinear", 13, {x, f32({}, {2}), i8({}, {10})})[0];
  EXPECT_EQ(y.dtype(), DataType::int_(8));
  EXPECT_THAT(values_of(y), ElementsAre(10, 12, 12, 10, 127, -128));
  const NDArray plain = run_node("QuantizeLinear", 10, {x, f32({1}, {2})})[0];
  EXPECT_EQ(plain.dtype(), DataType::uint(8));
  EXPECT_THAT(values_of(plain), ElementsAre(0, 2, 2, 0, 255, 0));
  const NDArray wide = run_node("QuantizeLinear", 21, {x, f32({}, {2})}, {AttributeSpec("output_dtype", 5)})[0];
  EXPECT_EQ(wide.dtype(), DataType::int_(16));
  EXPECT_THAT(values_of(wide), ElementsAre(0, 2, 2, 0, 500, -500));
}

TEST(ConvertQuantize, QuantizesIntegersAndHalfPrecision) {
  EXPECT_THAT(values_of(run_node("QuantizeLinear", 13, {i32({3}, {7, -7, 9}), f32({}, {2}), i8({}, {0})})[0]),
              ElementsAre(4, -4, 4));
  // 2050 / 3 is 683.33, which float16 rounds to 683.5, and that is rounded to 684.
  const NDArray x = f16({1}, {2050});
  const std::vector<Operand> operands = {x, f16({}, {3}), make_array({}, {0}, DataType::int_(16))};
  EXPECT_THAT(values_of(run_node("QuantizeLinear", 21, operands)[0]), ElementsAre(683));
  EXPECT_THAT(values_of(run_node("QuantizeLinear", 23, operands)[0]), ElementsAre(684));
  EXPECT_THAT(values_of(run_node("QuantizeLinear", 23, operands, {AttributeSpec("precision", 1)})[0]),
              ElementsAre(683));
}

TEST(ConvertQuantize, QuantizesAlongAnAxisAndInBlocks) {
  const NDArray x = f32({2, 3}, {2, 4, 6, 8, 10, 12});
  const std::vector<Operand> rows = {x, f32({2}, {1, 2}), u8({2}, {0, 100})};
  EXPECT_THAT(values_of(run_node("QuantizeLinear", 13, rows, {AttributeSpec("axis", -2)})[0]),
              ElementsAre(2, 4, 6, 104, 105, 106));
  // Blocks of two along axis 1, the last of one element.
  const std::vector<Operand> blocks = {x, f32({2, 2}, {1, 2, 4, 3}), u8({2, 2}, {0, 1, 2, 3})};
  EXPECT_THAT(values_of(run_node("QuantizeLinear", 21, blocks, {AttributeSpec("block_size", 2)})[0]),
              ElementsAre(2, 4, 4, 4, 4, 7));
  const std::vector<Operand> back = {u8({2, 2}, {1, 2, 3, 4}), f32({1, 2}, {1, 10})};
  EXPECT_THAT(values_of(run_node("DequantizeLinear", 21, back,
                                 {AttributeSpec("block_size", int64_t{1} << 40), AttributeSpec("axis", 0)})[0]),
              ElementsAre(1, 20, 3, 40));
}

TEST(ConvertQuantize, Dequantizes) {
  const NDArray x = u8({2, 2}, {0, 128, 255, 130});
  EXPECT_THAT(values_of(run_node("DequantizeLinear", 13, {x, f32({}, {0.5}), u8({}, {128})})[0]),
              ElementsAre(-64, 0, 63.5, 1));
  EXPECT_THAT(values_of(run_node("DequantizeLinear", 13, {x, f32({2}, {1, 2}), u8({2}, {0, 128})})[0]),
              ElementsAre(0, 0, 255, 4));
  const NDArray half = run_node("DequantizeLinear", 19, {i8({1}, {-3}), f16({}, {0.5})})[0];
  EXPECT_EQ(half.dtype(), DataType::float_(16));
  EXPECT_THAT(values_of(half), ElementsAre(-1.5));
  EXPECT_THAT(values_of(run_node("DequantizeLinear", 10, {i32({2}, {-7, 100000}), f32({}, {0.25})})[0]),
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
              HasSubstr("int8, uint8, int16, uint16 or int32"));
  EXPECT_THAT(node_error("DequantizeLinear", 23, {q, one}, {AttributeSpec("output_dtype", 3)}),
              HasSubstr("a result of int8 is not supported"));
}

TEST(ConvertQuantize, DynamicQuantization) {
  const auto got = run_node("DynamicQuantizeLinear", 11, {f32({3}, {-1, 0, 4.1})}, {}, 3);
  EXPECT_THAT(values_of(got[0]), ElementsAre(0, 50, 255));
  EXPECT_NEAR(values_of(got[1])[0], 0.02, 1e-8);
  EXPECT_THAT(values_of(got[2]), ElementsAre(50));
  const auto zeros = run_node("DynamicQuantizeLinear", 11, {f32({2}, {0, 0})}, {}, 3);
  EXPECT_THAT(values_of(zeros[0]), ElementsAre(0, 0));
  EXPECT_THAT(values_of(zeros[1]), ElementsAre(1));
  EXPECT_THAT(node_error("DynamicQuantizeLinear", 11, {f16({1}, {1})}, {}, 3), HasSubstr("expected float32"));
}

TEST(ConvertQuantize, ProductsOfIntegers) {
  const NDArray a = u8({2, 2}, {1, 2, 3, 255}), b = i8({2, 2}, {1, -1, 2, 0});
  EXPECT_THAT(values_of(run_node("MatMulInteger", 10, {a, b})[0]), ElementsAre(5, -1, 513, -3));
  EXPECT_THAT(values_of(run_node("MatMulInteger", 10, {a, b, u8({2}, {1, 3}), i8({2}, {1, -1})})[0]),
              ElementsAre(1, 1, 252, 252));
  EXPECT_THAT(node_error("MatMulInteger", 10, {a, b, u8({3}, {1, 2, 3})}),
              HasSubstr("its a_zero_point has the shape (3), which does not fit (2, 2)"));
  EXPECT_THAT(node_error("MatMulInteger", 10, {a, b, i8({}, {1})}), HasSubstr("its a_zero_point has dtype int8"));
  EXPECT_THAT(node_error("MatMulInteger", 10, {i32({2, 2}, {1, 2, 3, 4}), b}), HasSubstr("int8 or uint8"));
  // The sums (5, -1, 513, -3) times 0.5 * (1, 2) / 2, and 100.
  const std::vector<Operand> scaled = {
      a, f32({}, {0.5}), u8({}, {0}), b, f32({2}, {1, 2}), i8({2}, {0, 0}), f32({}, {2}), u8({}, {100})};
  EXPECT_THAT(values_of(run_node("QLinearMatMul", 10, scaled)[0]), ElementsAre(101, 100, 228, 98));
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

TEST(ConvertQuantize, Convolutions) {
  // One row; pads hold the zero point, which counts as 0.
  const NDArray x = u8({1, 1, 1, 3}, {11, 12, 13}), w = u8({2, 1, 1, 2}, {1, 2, 5, 5});
  const Attributes pads = {AttributeSpec("pads", Ints{0, 1, 0, 0})};
  EXPECT_THAT(values_of(run_node("ConvInteger", 10, {x, w, u8({}, {10}), u8({2}, {0, 4})}, pads)[0]),
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
  EXPECT_THAT(values_of(run_node("QLinearConv", 10, scaled, pads)[0]), ElementsAre(0, 1, 1, 0, 2, 4));
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
