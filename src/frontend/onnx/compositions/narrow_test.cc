// Cast, QuantizeLinear and DequantizeLinear of elements below 16 bits; expectations are worked out by hand from the
// standard's tables.
#include <limits>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

NDArray narrow(std::string_view dtype, const std::vector<double>& data) {
  return make_array({static_cast<int64_t>(data.size())}, data, DataType::parse(dtype));
}

std::vector<int> codes_of(const NDArray& array) {
  const auto* codes = array.data<uint8_t>();
  return {codes, codes + array.num_elements()};
}

NDArray cast(const NDArray& x, ElementType to, int64_t saturate) {
  return run_node("Cast", 21, {x},
                  {AttributeSpec("to", static_cast<int64_t>(to)), AttributeSpec("saturate", saturate)})[0];
}

TEST(ConvertNarrow, CastsSaturateOrGiveSpecialNumbers) {
  const NDArray x = f32({6}, {1, 464, 465, kInf, -kInf, -1e6});
  EXPECT_THAT(codes_of(cast(x, ElementType::kFloat8E4M3Fn, 1)), ElementsAre(0x38, 0x7e, 0x7e, 0x7e, 0xfe, 0xfe));
  EXPECT_THAT(codes_of(cast(x, ElementType::kFloat8E4M3Fn, 0)), ElementsAre(0x38, 0x7e, 0x7f, 0x7f, 0xff, 0xff));
  const NDArray halves = f16({5}, {247.5, 248, -248, kInf, -0.0});
  EXPECT_THAT(codes_of(cast(halves, ElementType::kFloat8E4M3Fnuz, 1)), ElementsAre(0x7f, 0x7f, 0xff, 0x7f, 0));
  EXPECT_THAT(codes_of(cast(halves, ElementType::kFloat8E4M3Fnuz, 0)), ElementsAre(0x7f, 0x80, 0x80, 0x80, 0));
  const NDArray great = make_array({4}, {61439.5, 61440, -61440, kInf}, DataType::float_(64));
  EXPECT_THAT(codes_of(cast(great, ElementType::kFloat8E5M2, 1)), ElementsAre(0x7b, 0x7b, 0xfb, 0x7b));
  EXPECT_THAT(codes_of(cast(great, ElementType::kFloat8E5M2, 0)), ElementsAre(0x7b, 0x7c, 0xfc, 0x7c));
  EXPECT_THAT(codes_of(cast(great, ElementType::kFloat8E5M2Fnuz, 0)), ElementsAre(0x7f, 0x80, 0x80, 0x80));
  EXPECT_THAT(codes_of(cast(i32({3}, {464, 465, -500}), ElementType::kFloat8E4M3Fn, 0)), ElementsAre(0x7e, 0x7f, 0xff));
  // float4 has no special numbers.
  EXPECT_THAT(codes_of(cast(x, ElementType::kFloat4E2M1, 0)), ElementsAre(2, 7, 7, 7, 15, 15));
}

TEST(ConvertNarrow, CastsToIntegersKeepTheLowBits) {
  EXPECT_THAT(doubles_of(cast(f32({4}, {7.9, 8, -9, 17}), ElementType::kInt4, 1)), ElementsAre(7, -8, 7, 1));
  EXPECT_THAT(doubles_of(cast(f16({3}, {-1, 16, 15}), ElementType::kUint4, 1)), ElementsAre(15, 0, 15));
  EXPECT_THAT(doubles_of(cast(f32({3}, {2, 1, -3}), ElementType::kInt2, 1)), ElementsAre(-2, 1, 1));
  EXPECT_THAT(doubles_of(cast(narrow("uint2", {3, 1}), ElementType::kFloat, 1)), ElementsAre(3, 1));
  EXPECT_THAT(doubles_of(cast(narrow("float8_e5m2", {-1.5, 57344}), ElementType::kFloat16, 1)),
              ElementsAre(-1.5, 57344));
  const NDArray like = run_node("CastLike", 21, {f32({1}, {1e9}), narrow("float8_e5m2", {0})},
                                {AttributeSpec("saturate", int64_t{0})})[0];
  EXPECT_THAT(codes_of(like), ElementsAre(0x7c));
  EXPECT_THAT(node_error("Cast", 21, {f32({1}, {1})}, {AttributeSpec("to", 24)}),
              HasSubstr("a cast to float8_e8m0fnu is not supported"));
}

TEST(ConvertNarrow, QuantizesToNarrowNumbers) {
  const NDArray x = f32({5}, {0, 1, 2, 1e5, -200});
  const NDArray y = run_node("QuantizeLinear", 19, {x, f32({}, {2}), narrow("float8_e5m2", {0})})[0];
  EXPECT_EQ(y.dtype().to_string(), "float8_e5m2");
  EXPECT_THAT(doubles_of(y), ElementsAre(0, 0.5, 1, 49152, -96));
  const NDArray cut = run_node("QuantizeLinear", 19, {x, f32({}, {1e-3}), narrow("float8_e5m2", {0})},
                               {AttributeSpec("saturate", int64_t{0})})[0];
  EXPECT_EQ(codes_of(cut)[3], 0x7c);
  const NDArray four = run_node("QuantizeLinear", 21, {x, f32({}, {2})}, {AttributeSpec("output_dtype", 22)})[0];
  EXPECT_THAT(doubles_of(four), ElementsAre(0, 0, 1, 7, -8));
  const std::vector<Operand> blocks = {f32({4}, {1, 2, 3, 40}), f32({2}, {1, 2}), narrow("uint2", {1, 0})};
  const NDArray two =
      run_node("QuantizeLinear", 23, blocks, {AttributeSpec("block_size", 2), AttributeSpec("axis", int64_t{0})})[0];
  EXPECT_THAT(doubles_of(two), ElementsAre(2, 3, 2, 3));
  const std::vector<Operand> floats = {f32({4}, {1, 2, 3, 40}), f32({2}, {1, 2}), narrow("float4_e2m1fn", {0, 1})};
  const NDArray shifted =
      run_node("QuantizeLinear", 23, floats, {AttributeSpec("block_size", 2), AttributeSpec("axis", int64_t{0})})[0];
  EXPECT_THAT(doubles_of(shifted), ElementsAre(1, 2, 2, 6));  // 2.5 lies between 2 and 3
}

TEST(ConvertNarrow, DequantizesNarrowNumbers) {
  const std::vector<Operand> eights = {narrow("float8_e4m3fn", {0, 0.5, -448}), f32({}, {2})};
  EXPECT_THAT(doubles_of(run_node("DequantizeLinear", 19, eights)[0]), ElementsAre(0, 1, -896));
  const std::vector<Operand> fours = {narrow("int4", {-8, 7}), f32({2}, {1, 10}), narrow("int4", {1, -1})};
  EXPECT_THAT(doubles_of(run_node("DequantizeLinear", 21, fours, {AttributeSpec("axis", int64_t{0})})[0]),
              ElementsAre(-9, 80));
  const std::vector<Operand> floats = {narrow("float4_e2m1fn", {6, 1}), f16({}, {2}), narrow("float4_e2m1fn", {0.5})};
  const NDArray y = run_node("DequantizeLinear", 23, floats)[0];
  EXPECT_EQ(y.dtype(), DataType::float_(16));
  EXPECT_THAT(doubles_of(y), ElementsAre(11, 1));
}

TEST(ConvertNarrow, OperatorsThatMoveElementsTakeThem) {
  const NDArray x = make_array({2, 2}, {1, -0.5, 6, 2}, DataType::parse("float4_e2m1fn"));
  const NDArray turned = run_node("Transpose", 23, {x})[0];
  EXPECT_EQ(turned.dtype(), x.dtype());
  EXPECT_THAT(doubles_of(turned), ElementsAre(1, 6, -0.5, 2));
  EXPECT_THAT(doubles_of(run_node("Flatten", 23, {x}, {AttributeSpec("axis", int64_t{0})})[0]),
              ElementsAre(1, -0.5, 6, 2));
}

}  // namespace
}  // namespace headrace::onnx
