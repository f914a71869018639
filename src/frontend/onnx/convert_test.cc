// Converters against numbers worked out by hand from the ONNX specification: above all the old forms of operators,
// which the ONNX data (opsets 6 and 9 to 17) shows little of.
#include <cmath>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;

NDArray one(const std::vector<NDArray>& results) {
  EXPECT_EQ(results.size(), 1U);
  return results.at(0);
}

std::vector<double> counted(int64_t n) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i));
  return values;
}

// ---- arithmetic

TEST(ConvertBinary, OldBroadcastStartsAtTheAxis) {
  const NDArray a = f32({1, 2, 2}, {1, 2, 3, 4}), b = f32({2}, {10, 20});
  // b along axis 1: rows get 10 and 20.
  expect_near(one(run_node("Add", 6, {a, b}, {AttributeSpec("broadcast", 1), AttributeSpec("axis", 1)})), {1, 2, 2},
              {11, 12, 23, 24}, 0);
  // Without an axis b is aligned at the end.
  expect_near(one(run_node("Mul", 6, {a, b}, {AttributeSpec("broadcast", 1)})), {1, 2, 2}, {10, 40, 30, 80}, 0);
  expect_near(one(run_node("Sub", 6, {a, a}, {AttributeSpec("consumed_inputs", Ints{0, 0})})), {1, 2, 2}, {0, 0, 0, 0},
              0);
  EXPECT_THAT(node_error("Add", 6, {a, b}, {AttributeSpec("broadcast", 1), AttributeSpec("axis", 3)}),
              HasSubstr("axis"));
  EXPECT_THAT(node_error("Add", 7, {a, b}, {AttributeSpec("broadcast", 1)}), HasSubstr("'broadcast' is not supported"));
  EXPECT_THAT(node_error("Add", 6, {a, b}),
              HasSubstr("shapes (1, 2, 2) and (2); up to opset 6 they broadcast only with"));
}

TEST(ConvertBinary, VariadicOnes) {
  const NDArray a = f32({2}, {1, 8}), b = f32({2}, {3, 4}), c = f32({1}, {5});
  expect_near(one(run_node("Sum", 8, {a, b, c})), {2}, {9, 17}, 0);
  expect_near(one(run_node("Mean", 8, {a, b, c})), {2}, {3, 17.0 / 3}, 1e-6);
  expect_near(one(run_node("Max", 8, {a, b, c})), {2}, {5, 8}, 0);
  expect_near(one(run_node("Min", 8, {a, b, c})), {2}, {1, 4}, 0);
  EXPECT_THAT(node_error("Sum", 8, {}), HasSubstr("it has 0 inputs"));
}

TEST(ConvertBinary, PowersOfTwoDtypes) {
  expect_near(one(run_node("Pow", 15, {i64({3}, {2, 3, 4}), f32({3}, {2, 0.5, 1.5})})), {3}, {4, 1, 8}, 0);
  expect_near(one(run_node("Pow", 15, {f32({2}, {2, 3}), i64({2}, {-1, 2})})), {2}, {0.5, 9}, 1e-6);
}

TEST(ConvertBinary, ModTakesTheDivisorsOrTheDividendsSign) {
  const NDArray a = i64({4}, {-7, 7, -7, 7}), b = i64({4}, {3, 3, -3, -3});
  expect_near(one(run_node("Mod", 13, {a, b})), {4}, {2, 1, -1, -2}, 0);
  expect_near(one(run_node("Mod", 13, {a, b}, {AttributeSpec("fmod", 1)})), {4}, {-1, 1, -1, 1}, 0);
  EXPECT_THAT(node_error("Mod", 13, {f32({1}, {1}), f32({1}, {1})}), HasSubstr("'fmod' must be 1 for floats"));
}

TEST(ConvertBinary, BitShiftNeedsADirection) {
  const NDArray a = make_array({2}, {1, 4}, DataType::uint(8)), b = make_array({2}, {2, 1}, DataType::uint(8));
  expect_near(one(run_node("BitShift", 11, {a, b}, {AttributeSpec("direction", "LEFT")})), {2}, {4, 8}, 0);
  EXPECT_THAT(node_error("BitShift", 11, {a, b}), HasSubstr("neither LEFT nor RIGHT"));
}

// ---- activations

TEST(ConvertActivation, ClipByAttributesAndByInputs) {
  const NDArray x = f32({3}, {-5, 0, 5});
  const Attributes bounds = {AttributeSpec("min", -1.0F), AttributeSpec("max", 2.0F)};
  expect_near(one(run_node("Clip", 6, {x}, bounds)), {3}, {-1, 0, 2}, 0);
  expect_near(one(run_node("Clip", 6, {x}, {AttributeSpec("max", 2.0F)})), {3}, {-5, 0, 2}, 0);
  expect_near(one(run_node("Clip", 11, {x, Operand(), f32({}, {2})})), {3}, {-5, 0, 2}, 0);
  expect_near(one(run_node("Clip", 11, {x, fixed(f32({}, {-1})), fixed(f32({}, {2}))})), {3}, {-1, 0, 2}, 0);
  expect_near(one(run_node("Clip", 13, {x})), {3}, {-5, 0, 5}, 0);
  EXPECT_THAT(node_error("Clip", 11, {x}, bounds), HasSubstr("attribute 'min' is not supported"));
}

TEST(ConvertActivation, FormulasOfTheSpecification) {
  const NDArray x = f32({3}, {-2, 0, 2});
  const double alpha = 1.6732632, gamma = 1.0507010;
  expect_near(one(run_node("Elu", 6, {x}, {AttributeSpec("alpha", 2.0F)})), {3}, {2 * (std::exp(-2.0) - 1), 0, 2},
              1e-6);
  expect_near(one(run_node("Selu", 6, {x})), {3}, {gamma * alpha * (std::exp(-2.0) - 1), 0, 2 * gamma}, 1e-6);
  expect_near(one(run_node("Celu", 12, {x}, {AttributeSpec("alpha", 2.0F)})), {3}, {2 * (std::exp(-1.0) - 1), 0, 2},
              1e-6);
  expect_near(one(run_node("ThresholdedRelu", 10, {x})), {3}, {0, 0, 2}, 0);
  expect_near(one(run_node("HardSigmoid", 6, {x})), {3}, {0.1, 0.5, 0.9}, 1e-6);
  expect_near(one(run_node("HardSwish", 14, {x})), {3}, {-2.0 / 6, 0, 10.0 / 6}, 1e-6);
  expect_near(one(run_node("Softsign", 6, {x})), {3}, {-2.0 / 3, 0, 2.0 / 3}, 1e-6);
  expect_near(one(run_node("Shrink", 9, {x}, {AttributeSpec("bias", 0.5F), AttributeSpec("lambd", 1.0F)})), {3},
              {-1.5, 0, 1.5}, 0);
  expect_near(one(run_node("LeakyRelu", 6, {x})), {3}, {-0.02, 0, 2}, 1e-6);
  EXPECT_THAT(node_error("Celu", 12, {x}, {AttributeSpec("alpha", 0.0F)}), HasSubstr("'alpha' is 0"));
}

TEST(ConvertActivation, SoftplusDoesNotOverflow) {
  expect_near(one(run_node("Softplus", 6, {f32({3}, {-200, 0, 200})})), {3}, {0, std::log(2.0), 200}, 1e-6);
}

TEST(ConvertActivation, PReluSlopes) {
  const NDArray x = f32({1, 2, 2}, {-1, 1, -2, 2});
  const std::vector<double> by_channel = {-3, 1, -8, 2};
  expect_near(one(run_node("PRelu", 6, {x, f32({2}, {3, 4})})), {1, 2, 2}, by_channel, 0);
  expect_near(one(run_node("PRelu", 9, {x, f32({2, 1}, {3, 4})})), {1, 2, 2}, by_channel, 0);
  expect_near(one(run_node("PRelu", 9, {x, f32({1}, {3})})), {1, 2, 2}, {-3, 1, -6, 2}, 0);
  expect_near(one(run_node("PRelu", 9, {x, f32({2, 2}, {3, 4, 5, 6})})), {1, 2, 2}, {-3, 1, -10, 2}, 0);
  EXPECT_THAT(node_error("PRelu", 9, {f32({1}, {1}), f32({1, 1}, {1})}), HasSubstr("more dimensions than its data"));
}

// ---- unary

TEST(ConvertUnary, IsInfOfOneSign) {
  const double inf = INFINITY;
  const NDArray x = f32({3}, {-inf, 1, inf});
  expect_near(one(run_node("IsInf", 10, {x})), {3}, {1, 0, 1}, 0);
  expect_near(one(run_node("IsInf", 10, {x}, {AttributeSpec("detect_negative", 0)})), {3}, {0, 0, 1}, 0);
  expect_near(one(run_node("IsInf", 10, {x}, {AttributeSpec("detect_positive", 0)})), {3}, {1, 0, 0}, 0);
  expect_near(
      one(run_node("IsInf", 10, {x}, {AttributeSpec("detect_negative", 0), AttributeSpec("detect_positive", 0)})), {3},
      {0, 0, 0}, 0);
}

// Relay's round takes halves away from zero.
TEST(ConvertUnary, RoundTakesHalvesToEven) {
  const NDArray x = f32({6}, {0.5, 1.5, 2.5, -0.5, -2.5, 2.75});
  expect_near(one(run_node("Round", 11, {x})), {6}, {0, 2, 2, 0, -2, 3}, 0);
}

TEST(ConvertUnary, DropoutIsTheIdentityAtInference) {
  const NDArray x = f32({2}, {1, 2});
  const auto old = run_node("Dropout", 6, {x}, {AttributeSpec("ratio", 0.5F), AttributeSpec("is_test", 1)}, 2);
  expect_near(old.at(0), {2}, {1, 2}, 0);
  EXPECT_EQ(old.at(1).dtype(), DataType::float_(32));
  const auto later = run_node("Dropout", 12, {x, fixed(f32({}, {0.5}))}, {AttributeSpec("seed", 3)}, 2);
  EXPECT_EQ(later.at(1).dtype(), DataType::bool_());
  expect_near(later[1], {2}, {1, 1}, 0);
}

TEST(ConvertUnary, CastNeedsAKnownType) {
  expect_near(one(run_node("Cast", 6, {f32({2}, {1.9, -1.9})}, {AttributeSpec("to", 7)})), {2}, {1, -1}, 0);
  EXPECT_THAT(node_error("Cast", 9, {f32({1}, {1})}), HasSubstr("attribute 'to' is missing"));
  EXPECT_THAT(node_error("Cast", 9, {f32({1}, {1})}, {AttributeSpec("to", 99)}), HasSubstr("a cast to type 99"));
}

// ---- shapes

TEST(ConvertShape, SqueezeAndUnsqueezeByAttributeAndInput) {
  const NDArray x = f32({1, 2, 1}, {3, 4});
  EXPECT_EQ(one(run_node("Squeeze", 11, {x}, {AttributeSpec("axes", Ints{0})})).shape(), (Shape{2, 1}));
  EXPECT_EQ(one(run_node("Squeeze", 13, {x, fixed(i64({1}, {-1}))})).shape(), (Shape{1, 2}));
  EXPECT_EQ(one(run_node("Squeeze", 13, {x})).shape(), (Shape{2}));
  EXPECT_EQ(one(run_node("Unsqueeze", 11, {f32({2}, {1, 2})}, {AttributeSpec("axes", Ints{2, 0})})).shape(),
            (Shape{1, 2, 1}));
  EXPECT_EQ(one(run_node("Unsqueeze", 13, {f32({2}, {1, 2}), fixed(i64({2}, {0, -1}))})).shape(), (Shape{1, 2, 1}));
  EXPECT_THAT(node_error("Unsqueeze", 11, {x}), HasSubstr("its axes are missing"));
  EXPECT_THAT(node_error("Unsqueeze", 11, {x}, {AttributeSpec("axes", Ints{0, 0})}), HasSubstr("names an axis twice"));
  EXPECT_THAT(node_error("Squeeze", 11, {x, fixed(i64({1}, {0}))}), HasSubstr("axes are an attribute"));
}

TEST(ConvertShape, ReshapeCopiesInfersAndAllowsZero) {
  const NDArray x = f32({2, 3}, counted(6));
  EXPECT_EQ(one(run_node("Reshape", 6, {x, fixed(i64({3}, {0, -1, 1}))})).shape(), (Shape{2, 3, 1}));
  const NDArray empty = NDArray::empty({0, 3}, DataType::float_(32));
  EXPECT_EQ(one(run_node("Reshape", 14, {empty, fixed(i64({2}, {3, 0}))}, {AttributeSpec("allowzero", 1)})).shape(),
            (Shape{3, 0}));
  EXPECT_THAT(node_error("Reshape", 6, {x, fixed(i64({1}, {5}))}), HasSubstr("reshape"));
  EXPECT_THAT(node_error("Reshape", 6, {x, fixed(i64({2}, {-2, 3}))}), HasSubstr("its shape has the size -2"));
  EXPECT_THAT(node_error("Reshape", 6, {x, fixed(f32({1}, {6}))}), HasSubstr("must be a list of integers"));
}

TEST(ConvertShape, FlattenAtAnyAxis) {
  const NDArray x = f32({2, 3, 2}, counted(12));
  EXPECT_EQ(one(run_node("Flatten", 9, {x}, {AttributeSpec("axis", 0)})).shape(), (Shape{1, 12}));
  EXPECT_EQ(one(run_node("Flatten", 9, {x})).shape(), (Shape{2, 6}));
  EXPECT_EQ(one(run_node("Flatten", 11, {x}, {AttributeSpec("axis", -1)})).shape(), (Shape{6, 2}));
  EXPECT_EQ(one(run_node("Flatten", 9, {x}, {AttributeSpec("axis", 3)})).shape(), (Shape{12, 1}));
  EXPECT_THAT(node_error("Flatten", 9, {x}, {AttributeSpec("axis", 4)}), HasSubstr("'axis' is 4 for 3 dimensions"));
}

TEST(ConvertShape, SplitByAttributeAndEqually) {
  const NDArray x = f32({5}, counted(5));
  const auto parts = run_node("Split", 11, {x}, {AttributeSpec("split", Ints{2, 3})}, 2);
  expect_near(parts.at(0), {2}, {0, 1}, 0);
  expect_near(parts.at(1), {3}, {2, 3, 4}, 0);
  const auto halves = run_node("Split", 13, {f32({4}, counted(4))}, {}, 2);
  expect_near(halves.at(1), {2}, {2, 3}, 0);
  EXPECT_THAT(node_error("Split", 11, {x}, {AttributeSpec("split", Ints{2, 2})}, 2),
              HasSubstr("its sizes sum up to 4, but axis 0 has 5"));
  EXPECT_THAT(node_error("Split", 11, {x}, {AttributeSpec("split", Ints{5})}, 2),
              HasSubstr("it has 1 sizes for 2 outputs"));
  EXPECT_THAT(node_error("Split", 13, {x}, {}, 2), HasSubstr("split"));
}

TEST(ConvertShape, PadByAttributeAndInput) {
  const NDArray x = f32({3}, {1, 2, 3});
  expect_near(one(run_node("Pad", 2 + 4, {x}, {AttributeSpec("pads", Ints{1, 1}), AttributeSpec("value", 9.0F)})), {5},
              {9, 1, 2, 3, 9}, 0);
  expect_near(one(run_node("Pad", 11, {x, fixed(i64({2}, {0, 2})), f32({}, {7})})), {5}, {1, 2, 3, 7, 7}, 0);
  expect_near(one(run_node("Pad", 13, {x, fixed(i64({2}, {-1, 0}))})), {2}, {2, 3}, 0);
  expect_near(one(run_node("Pad", 11, {x, fixed(i64({2}, {2, 1}))}, {AttributeSpec("mode", "reflect")})), {6},
              {3, 2, 1, 2, 3, 2}, 0);
  expect_near(one(run_node("Pad", 11, {x, fixed(i64({2}, {1, 1}))}, {AttributeSpec("mode", "edge")})), {5},
              {1, 1, 2, 3, 3}, 0);
  EXPECT_THAT(node_error("Pad", 11, {x, fixed(i64({2}, {1, 1}))}, {AttributeSpec("mode", "wrap")}),
              HasSubstr("'mode' is 'wrap'"));
  EXPECT_THAT(node_error("Pad", 11, {x, fixed(i64({3}, {1, 1, 1}))}), HasSubstr("it has 3 pads for 1 dimensions"));
}

TEST(ConvertShape, DepthToSpaceModes) {
  const NDArray x = f32({1, 8, 1, 1}, counted(8));
  // DCR: depth is split as block, block, channel; CRD: as channel, block, block.
  expect_near(one(run_node("DepthToSpace", 11, {x}, {AttributeSpec("blocksize", 2)})), {1, 2, 2, 2},
              {0, 2, 4, 6, 1, 3, 5, 7}, 0);
  expect_near(one(run_node("DepthToSpace", 11, {x}, {AttributeSpec("blocksize", 2), AttributeSpec("mode", "CRD")})),
              {1, 2, 2, 2}, counted(8), 0);
  expect_near(
      one(run_node("SpaceToDepth", 11, {f32({1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7})}, {AttributeSpec("blocksize", 2)})),
      {1, 8, 1, 1}, counted(8), 0);
  EXPECT_THAT(node_error("DepthToSpace", 11, {x}, {AttributeSpec("blocksize", 3)}), HasSubstr("not a multiple"));
  EXPECT_THAT(node_error("SpaceToDepth", 11, {x}, {AttributeSpec("blocksize", 2)}), HasSubstr("not a multiple"));
  EXPECT_THAT(node_error("DepthToSpace", 11, {x}, {AttributeSpec("blocksize", 0)}), HasSubstr("'blocksize' is 0"));
}

TEST(ConvertShape, ExpandBroadcastsBothWays) {
  expect_near(one(run_node("Expand", 8, {f32({2, 1}, {1, 2}), fixed(i64({1}, {2}))})), {2, 2}, {1, 1, 2, 2}, 0);
  EXPECT_THAT(node_error("Expand", 8, {f32({2}, {1, 2}), fixed(i64({1}, {3}))}), HasSubstr("do not broadcast"));
}

TEST(ConvertShape, ShapeOfARange) {
  const NDArray x = NDArray::zeros({2, 3, 4}, DataType::float_(32));
  expect_near(one(run_node("Shape", 13, {x})), {3}, {2, 3, 4}, 0);
  expect_near(one(run_node("Shape", 15, {x}, {AttributeSpec("start", -2), AttributeSpec("end", 2)})), {1}, {3}, 0);
  expect_near(one(run_node("Shape", 15, {x}, {AttributeSpec("start", 2), AttributeSpec("end", 1)})), {0}, {}, 0);
  expect_near(one(run_node("Size", 13, {x})), {}, {24}, 0);
}

// ---- indices

TEST(ConvertIndex, SliceByAttributes) {
  const NDArray x = f32({2, 4}, counted(8));
  expect_near(one(run_node("Slice", 9, {x},
                           {AttributeSpec("starts", Ints{1}), AttributeSpec("ends", Ints{1000}),
                            AttributeSpec("axes", Ints{1})})),
              {2, 3}, {1, 2, 3, 5, 6, 7}, 0);
  expect_near(
      one(run_node("Slice", 11,
                   {x, fixed(i64({1}, {-1})), fixed(i64({1}, {-1000})), fixed(i64({1}, {1})), fixed(i64({1}, {-2}))})),
      {2, 2}, {3, 1, 7, 5}, 0);
  // Going down from before the axis: Slice-13 clamps the start to the first element.
  expect_near(
      one(run_node("Slice", 13,
                   {x, fixed(i64({1}, {-9})), fixed(i64({1}, {-100})), fixed(i64({1}, {-1})), fixed(i64({1}, {-1}))})),
      {2, 1}, {0, 4}, 0);
  EXPECT_THAT(node_error("Slice", 9, {x}), HasSubstr("'starts' and 'ends' are needed"));
  EXPECT_THAT(node_error("Slice", 11, {x, fixed(i64({1}, {0})), fixed(i64({2}, {1, 1}))}),
              HasSubstr("differ in number"));
  EXPECT_THAT(node_error("Slice", 11,
                         {x, fixed(i64({1}, {0})), fixed(i64({1}, {1})), fixed(i64({1}, {0})), fixed(i64({1}, {0}))}),
              HasSubstr("stride"));
}

TEST(ConvertIndex, GatherKnowsNegativeAndWrongIndices) {
  const NDArray x = f32({3}, {10, 20, 30});
  expect_near(one(run_node("Gather", 11, {x, fixed(i64({2}, {-1, 0}))})), {2}, {30, 10}, 0);
  expect_near(one(run_node("Gather", 11, {x, i64({2}, {-1, 0})})), {2}, {30, 10}, 0);
  for (const double wrong : {3.0, -4.0}) {
    EXPECT_THAT(kit::user_error_of([&] { run_node("Gather", 11, {x, i64({1}, {wrong})}); }),
                HasSubstr("is out of range for an axis of 3"));
  }
  EXPECT_THAT(node_error("Gather", 11, {x, fixed(i64({1}, {3}))}),
              HasSubstr("index 3 is out of range for an axis of 3"));
  EXPECT_THAT(node_error("Gather", 11, {x, x}), HasSubstr("an index of dtype float32"));
}

TEST(ConvertIndex, OneHotAlongAnyAxis) {
  const NDArray indices = i64({2}, {1, -1}), values = f32({2}, {-1, 5});
  expect_near(one(run_node("OneHot", 11, {indices, fixed(i64({}, {3})), values})), {2, 3}, {-1, 5, -1, -1, -1, 5}, 0);
  expect_near(one(run_node("OneHot", 11, {indices, fixed(i64({}, {3})), values}, {AttributeSpec("axis", 0)})), {3, 2},
              {-1, -1, 5, -1, -1, 5}, 0);
  EXPECT_THAT(node_error("OneHot", 11, {indices, fixed(i64({}, {0})), values}), HasSubstr("its depth is 0"));
}

TEST(ConvertIndex, Triangles) {
  const NDArray x = f32({2, 2}, {1, 2, 3, 4});
  expect_near(one(run_node("Trilu", 14, {x})), {2, 2}, {1, 2, 0, 4}, 0);
  expect_near(one(run_node("Trilu", 14, {x, fixed(i64({}, {-1}))}, {AttributeSpec("upper", 0)})), {2, 2}, {0, 0, 3, 0},
              0);
  EXPECT_THAT(node_error("Trilu", 14, {f32({2}, {1, 2})}), HasSubstr("needs 2 or more"));
}

TEST(ConvertIndex, ReverseSequenceTakesTheFirstTwoAxes) {
  const NDArray x = f32({3, 2}, {1, 2, 3, 4, 5, 6}), lengths = i64({2}, {3, 2});
  expect_near(one(run_node("ReverseSequence", 10, {x, lengths})), {3, 2}, {5, 4, 3, 2, 1, 6}, 0);
  // As many sequences as steps, with lengths that are known before the model runs.
  expect_near(one(run_node("ReverseSequence", 10, {f32({2, 2}, {1, 2, 3, 4}), fixed(i64({2}, {2, 1}))})), {2, 2},
              {3, 2, 1, 4}, 0);
  // A length past the axis counts as the axis, and a negative one as none, as in Relay.
  expect_near(one(run_node("ReverseSequence", 10, {x, i64({2}, {4, -1})})), {3, 2}, {5, 2, 3, 4, 1, 6}, 0);
  EXPECT_THAT(node_error("ReverseSequence", 10, {x, lengths}, {AttributeSpec("batch_axis", 2)}),
              HasSubstr("batch_axis and time_axis must be 0 and 1"));
}

// ---- the rest

TEST(ConvertConv, SamePaddingPutsTheOddElementAtEitherEnd) {
  const NDArray x = f32({1, 1, 1, 4}, {1, 2, 3, 4}), w = f32({1, 1, 1, 2}, {1, 1});
  const auto conv = [&](const char* pad) {
    return one(run_node("Conv", 11, {x, fixed(w)}, {AttributeSpec("auto_pad", pad)}));
  };
  expect_near(conv("SAME_UPPER"), {1, 1, 1, 4}, {3, 5, 7, 4}, 0);
  expect_near(conv("SAME_LOWER"), {1, 1, 1, 4}, {1, 3, 5, 7}, 0);
  expect_near(conv("VALID"), {1, 1, 1, 3}, {3, 5, 7}, 0);
  EXPECT_THAT(node_error("Conv", 11, {x, fixed(w)}, {AttributeSpec("auto_pad", "BOTH")}),
              HasSubstr("'auto_pad' is 'BOTH'"));
}

TEST(ConvertConv, OneAndThreeAxes) {
  const NDArray line = f32({1, 1, 4}, {1, 2, 3, 4}), w1 = f32({1, 1, 2}, {1, -1});
  expect_near(one(run_node("Conv", 11, {line, fixed(w1), f32({1}, {10})}, {AttributeSpec("strides", Ints{2})})),
              {1, 1, 2}, {9, 9}, 0);
  // Two groups over a 2x1x1 volume: each output is the difference of its channel's two depths.
  const NDArray volume = f32({1, 2, 2, 1, 1}, {1, 5, 2, 9}), w3 = f32({2, 1, 2, 1, 1}, {-1, 1, -1, 1});
  expect_near(one(run_node("Conv", 11, {volume, fixed(w3)}, {AttributeSpec("group", 2)})), {1, 2, 1, 1, 1}, {4, 7}, 0);
  expect_near(one(run_node("Conv", 11, {volume, fixed(w3)},
                           {AttributeSpec("group", 2), AttributeSpec("pads", Ints{1, 0, 0, 0, 0, 0})})),
              {1, 2, 2, 1, 1}, {1, 4, 2, 7}, 0);
}

TEST(ConvertConv, WrongWindows) {
  const NDArray x = f32({1, 1, 2, 2}, {1, 2, 3, 4}), w = f32({1, 1, 1, 1}, {1});
  EXPECT_THAT(node_error("Conv", 11, {f32({1, 1}, {1}), w}), HasSubstr("needs a batch, channels and one or more axes"));
  EXPECT_THAT(node_error("Conv", 11, {x, f32({1, 1, 1}, {1})}), HasSubstr("its weight has 3 dimensions, expected 4"));
  EXPECT_THAT(node_error("Conv", 11, {x, w}, {AttributeSpec("kernel_shape", Ints{2, 2})}),
              HasSubstr("'kernel_shape' is [2, 2], but the weight's kernel is [1, 1]"));
  EXPECT_THAT(node_error("Conv", 11, {x, w}, {AttributeSpec("strides", Ints{0, 1})}), HasSubstr("'strides' has 0"));
  EXPECT_THAT(node_error("Conv", 11, {x, w}, {AttributeSpec("strides", Ints{1})}),
              HasSubstr("'strides' has 1 values for 2 spatial axes"));
  EXPECT_THAT(node_error("Conv", 11, {x, w}, {AttributeSpec("pads", Ints{1})}), HasSubstr("'pads' has 1 values"));
  EXPECT_THAT(node_error("Conv", 11, {x, w}, {AttributeSpec("pads", Ints{-1, 0, 0, 0})}), HasSubstr("'pads' has -1"));
  EXPECT_THAT(node_error("MaxPool", 11, {x}), HasSubstr("'kernel_shape' is missing"));
  EXPECT_THAT(node_error("MaxPool", 11, {x}, {AttributeSpec("kernel_shape", Ints{1})}),
              HasSubstr("the kernel has 1 axes for 2"));
}

TEST(ConvertConv, TransposeFitsTheOutputShape) {
  const NDArray x = f32({1, 1, 2}, {1, 2}), w = f32({1, 1, 2}, {1, 1});
  expect_near(one(run_node("ConvTranspose", 11, {x, fixed(w)}, {AttributeSpec("strides", Ints{2})})), {1, 1, 4},
              {1, 1, 2, 2}, 0);
  expect_near(one(run_node("ConvTranspose", 11, {x, fixed(w)},
                           {AttributeSpec("strides", Ints{2}), AttributeSpec("output_shape", Ints{5})})),
              {1, 1, 5}, {1, 1, 2, 2, 0}, 0);
  EXPECT_THAT(node_error("ConvTranspose", 11, {x, fixed(w)}, {AttributeSpec("output_shape", Ints{-5})}),
              HasSubstr("'output_shape' has -5"));
  EXPECT_THAT(node_error("ConvTranspose", 11, {x, fixed(w)}, {AttributeSpec("output_padding", Ints{1})}),
              HasSubstr("output_padding (1) must be below the stride or the dilation"));
}

TEST(ConvertPool, PowersAndPadding) {
  const NDArray x = f32({1, 1, 1, 4}, {3, -4, 1, 2});
  const Attributes pairs = {AttributeSpec("kernel_shape", Ints{1, 2}), AttributeSpec("strides", Ints{1, 2})};
  expect_near(one(run_node("LpPool", 11, {x}, pairs)), {1, 1, 1, 2}, {5, std::sqrt(5.0)}, 1e-6);
  expect_near(one(run_node("GlobalLpPool", 11, {x}, {AttributeSpec("p", 1)})), {1, 1, 1, 1}, {10}, 1e-6);
  const Attributes padded = {AttributeSpec("kernel_shape", Ints{1, 2}), AttributeSpec("pads", Ints{0, 1, 0, 0}),
                             AttributeSpec("strides", Ints{1, 4})};
  expect_near(one(run_node("AveragePool", 7, {x}, padded)), {1, 1, 1, 1}, {3}, 0);
  Attributes counting = padded;
  counting.emplace_back("count_include_pad", 1);
  expect_near(one(run_node("AveragePool", 7, {x}, counting)), {1, 1, 1, 1}, {1.5}, 0);
}

TEST(ConvertPool, PowersArePositive) {
  const NDArray x = f32({1, 1, 2}, {1, 2});
  EXPECT_THAT(node_error("GlobalLpPool", 11, {x}, {AttributeSpec("p", 0)}), HasSubstr("attribute 'p' is 0"));
}

TEST(ConvertMatmul, RanksAndBroadcast) {
  const NDArray v = f32({2}, {1, 2}), m = f32({2, 2}, {1, 2, 3, 4});
  expect_near(one(run_node("MatMul", 9, {v, v})), {}, {5}, 0);
  expect_near(one(run_node("MatMul", 9, {v, m})), {2}, {7, 10}, 0);
  expect_near(one(run_node("MatMul", 9, {m, v})), {2}, {5, 11}, 0);
  expect_near(one(run_node("MatMul", 9, {m, fixed(m)})), {2, 2}, {7, 10, 15, 22}, 0);
  // [2,1,1,2] by [1,2,2,1]: batches broadcast to [2,2].
  expect_near(one(run_node("MatMul", 9, {f32({2, 1, 1, 2}, {1, 2, 3, 4}), f32({1, 2, 2, 1}, {1, 1, 2, 0})})),
              {2, 2, 1, 1}, {3, 2, 7, 6}, 0);
  EXPECT_THAT(node_error("MatMul", 9, {f32({}, {1}), v}), HasSubstr("a scalar has no matrix product"));
  EXPECT_THAT(node_error("MatMul", 9, {f32({2, 1, 1}, {1, 1}), f32({3, 1, 1}, {1, 1, 1})}),
              HasSubstr("do not broadcast"));
}

TEST(ConvertMatmul, GemmScalesTransposesAndAdds) {
  const NDArray a = f32({2, 1}, {1, 2}), b = f32({2, 2}, {1, 2, 3, 4});
  const Attributes all = {AttributeSpec("alpha", 2.0F), AttributeSpec("beta", 0.5F), AttributeSpec("transA", 1),
                          AttributeSpec("transB", 1)};
  // [1 2] by b' = [[1 3] [2 4]] is [5 11].
  expect_near(one(run_node("Gemm", 9, {a, b, f32({1}, {4})}, all)), {1, 2}, {12, 24}, 0);
  expect_near(one(run_node("Gemm", 6, {b, b, f32({2}, {1, 2})}, {AttributeSpec("broadcast", 1)})), {2, 2},
              {8, 12, 16, 24}, 0);
  expect_near(one(run_node("Gemm", 9, {b, b, f32({1}, {NAN})}, {AttributeSpec("beta", 0.0F)})), {2, 2}, {7, 10, 15, 22},
              0);
  EXPECT_THAT(node_error("Gemm", 9, {f32({1}, {1}), b}), HasSubstr("A and B must be matrices"));
  EXPECT_THAT(node_error("Gemm", 9, {i64({1, 1}, {1}), i64({1, 1}, {1})}, {AttributeSpec("alpha", 2.0F)}),
              HasSubstr("alpha and beta must be 1 for int64"));
}

TEST(ConvertNormalization, OldSoftmaxFlattens) {
  // At opset 11 the softmax normalizes over axes 1 and 2 together, so each of 4 equal elements becomes 1/4.
  const NDArray x = f32({1, 2, 2}, {1, 1, 1, 1});
  expect_near(one(run_node("Softmax", 11, {x})), {1, 2, 2}, {0.25, 0.25, 0.25, 0.25}, 1e-6);
  expect_near(one(run_node("Softmax", 13, {x})), {1, 2, 2}, {0.5, 0.5, 0.5, 0.5}, 1e-6);
  // The default axis is 1; a line has no such axis, which opset 11 forbids.
  expect_near(one(run_node("Softmax", 10, {f32({2}, {1, 2})})), {2}, {1, 1}, 1e-6);
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    EXPECT_THAT(node_error(op, 11, {f32({2}, {1, 2})}), HasSubstr("axis is 1, but the tensor has 1 dimensions"));
  expect_near(one(run_node("Hardmax", 11, {f32({1, 2, 2}, {1, 2, 4, 3})})), {1, 2, 2}, {0, 0, 1, 0}, 0);
  expect_near(one(run_node("Hardmax", 13, {f32({1, 2, 2}, {1, 2, 4, 3})})), {1, 2, 2}, {0, 1, 1, 0}, 0);
  // The first NaN counts as the greatest, as in onnx.reference.
  const NDArray with_nan = f32({3, 3}, {1, NAN, 3, NAN, NAN, NAN, 1, 2, NAN});
  expect_near(one(run_node("Hardmax", 13, {with_nan})), {3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 1}, 0);
}

TEST(ConvertNormalization, OldBatchNormalization) {
  const NDArray x = f32({1, 1, 2}, {1, 3}), v = f32({1}, {1}), four = f32({1}, {4});
  const std::vector<Operand> operands = {x, v, v, v, four};
  const Attributes old = {AttributeSpec("is_test", 1), AttributeSpec("spatial", 1), AttributeSpec("epsilon", 0.0F),
                          AttributeSpec("momentum", 0.9F)};
  expect_near(one(run_node("BatchNormalization", 6, operands, old)), {1, 1, 2}, {1, 2}, 1e-6);
  EXPECT_THAT(node_error("BatchNormalization", 7, operands, {AttributeSpec("spatial", 0)}), HasSubstr("spatial = 0"));
  EXPECT_THAT(node_error("BatchNormalization", 9, operands, {}, 5), HasSubstr("export the model for inference"));
}

TEST(ConvertNormalization, LpNormalization) {
  const NDArray x = f32({1, 2}, {3, -4});
  expect_near(one(run_node("LpNormalization", 6, {x})), {1, 2}, {0.6, -0.8}, 1e-6);
  expect_near(one(run_node("LpNormalization", 6, {x}, {AttributeSpec("p", 1)})), {1, 2}, {3.0 / 7, -4.0 / 7}, 1e-6);
  for (const int64_t p : {1, 2}) {
    expect_near(one(run_node("LpNormalization", 6, {f32({2, 2}, {0, 0, 0, 5})}, {AttributeSpec("p", p)})), {2, 2},
                {0, 0, 0, 1}, 0);
  }
  EXPECT_THAT(node_error("LpNormalization", 6, {x}, {AttributeSpec("p", 3)}), HasSubstr("'p' is 3"));
}

// The mean and the inverse deviation are of stash_type, by default float32.
TEST(ConvertNormalization, LayerNormalizationOfFloat64) {
  const NDArray x = NDArray::empty({1, 2}, DataType::float_(64)), scale = NDArray::empty({2}, DataType::float_(64));
  for (const int64_t i : {0, 1}) {
    set_element(x.tensor(), i, static_cast<double>(4 * i + 1));  // 1 and 5: mean 3, deviation 2
    set_element(scale.tensor(), i, 1);
  }
  const auto run = [&](int64_t stash) {
    return run_node("LayerNormalization", 17, {x, scale},
                    {AttributeSpec("stash_type", stash), AttributeSpec("epsilon", 0.0F)}, 3);
  };
  const std::vector<NDArray> results = run(1);
  EXPECT_EQ(results[0].dtype(), DataType::float_(64));
  EXPECT_EQ(results[1].dtype(), DataType::float_(32));
  EXPECT_EQ(results[2].dtype(), DataType::float_(32));
  expect_near(results[0], {1, 2}, {-1, 1}, 0);
  expect_near(results[1], {1, 1}, {3}, 0);
  expect_near(results[2], {1, 1}, {0.5}, 0);
  EXPECT_EQ(run(11)[1].dtype(), DataType::float_(64));
}

TEST(ConvertReduce, AxesByAttributeAndInput) {
  const NDArray x = f32({2, 2}, {1, 2, 3, 4});
  expect_near(one(run_node("ReduceSum", 11, {x}, {AttributeSpec("axes", Ints{-1}), AttributeSpec("keepdims", 0)})), {2},
              {3, 7}, 0);
  expect_near(one(run_node("ReduceSum", 13, {x, fixed(i64({1}, {0}))})), {1, 2}, {4, 6}, 0);
  expect_near(one(run_node("ReduceSum", 13, {x}, {AttributeSpec("noop_with_empty_axes", 1)})), {2, 2}, {1, 2, 3, 4}, 0);
  expect_near(one(run_node("ReduceLogSumExp", 11, {f32({2}, {1000, 1000})})), {1}, {1000 + std::log(2.0)}, 1e-6);
  EXPECT_THAT(node_error("ReduceSum", 11, {x, fixed(i64({1}, {0}))}), HasSubstr("axes are an attribute"));
}

TEST(ConvertImage, OldUpsample) {
  const NDArray x = f32({1, 1, 1, 2}, {1, 3});
  expect_near(one(run_node("Upsample", 7, {x}, {AttributeSpec("scales", std::vector<float>{1, 1, 1, 2})})),
              {1, 1, 1, 4}, {1, 1, 3, 3}, 0);
  // Asymmetric coordinates: 0, 0.5, 1, 1.5, the last cut to the edge.
  expect_near(one(run_node("Upsample", 9, {x, fixed(f32({4}, {1, 1, 1, 2}))}, {AttributeSpec("mode", "linear")})),
              {1, 1, 1, 4}, {1, 2, 3, 3}, 1e-6);
  expect_near(one(run_node("Resize", 10, {x, fixed(f32({4}, {1, 1, 1, 2}))})), {1, 1, 1, 4}, {1, 1, 3, 3}, 0);
  EXPECT_THAT(node_error("Upsample", 7, {x}), HasSubstr("'scales' is missing"));
  EXPECT_THAT(node_error("Upsample", 7, {x}, {AttributeSpec("scales", std::vector<float>{2})}),
              HasSubstr("it has 1 scales for 4 dimensions"));
  EXPECT_THAT(node_error("Upsample", 7, {x}, {AttributeSpec("scales", std::vector<float>{1, 1, 1, -2})}),
              HasSubstr("one of its scales is -2"));
}

// The example of the operator's page for opset 10, and onnxruntime's answer.
TEST(ConvertImage, OldNearestRoundsUpWhereItShrinks) {
  const NDArray x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_near(one(run_node("Resize", 10, {x, fixed(f32({4}, {1, 1, 0.6, 0.6}))})), {1, 1, 1, 2}, {1, 3}, 0);
  // 7 / 0.7 is 10 in float32, in which onnxruntime divides.
  expect_near(one(run_node("Resize", 10, {f32({12}, counted(12)), fixed(f32({1}, {0.7}))})), {8},
              {0, 2, 3, 5, 6, 8, 9, 10}, 0);
}

// The columns are read at 0, 2/3, 4/3 and 2: exact results of the formula, where roundings between would read 1 last.
TEST(ConvertImage, SymmetricPixelsAreExact) {
  const NDArray x = f32({1, 1, 1, 3}, {0, 1, 2});
  expect_near(one(run_node("Resize", 19, {x, Operand(), fixed(f32({4}, {1, 1, 1, 1.5}))},
                           {AttributeSpec("nearest_mode", "floor"),
                            AttributeSpec("coordinate_transformation_mode", "half_pixel_symmetric")})),
              {1, 1, 1, 4}, {0, 0, 1, 2}, 0);
}

// Columns are read at 0.25, 0.75, 1.25 and 1.75, the last two cut to the edge; rows keep their number and stay.
TEST(ConvertImage, AnAxisThatKeepsItsSizeStays) {
  const NDArray x = f32({1, 1, 2, 2}, {1, 3, 5, 9});
  expect_near(one(run_node("Resize", 11, {x, Operand(), Operand(), fixed(i64({4}, {1, 1, 2, 4}))},
                           {AttributeSpec("mode", "linear"),
                            AttributeSpec("coordinate_transformation_mode", "tf_half_pixel_for_nn")})),
              {1, 1, 2, 4}, {1.5, 2.5, 3, 3, 6, 8, 9, 9}, 1e-6);
}

TEST(ConvertImage, AnyAxisAndModes) {
  // Channels are resized too, which image.resize2d cannot.
  const NDArray x = f32({1, 2, 1}, {1, 3});
  expect_near(
      one(run_node("Resize", 13, {x, Operand(), fixed(f32({3}, {1, 2, 1}))}, {AttributeSpec("mode", "linear")})),
      {1, 4, 1}, {1, 1.5, 2.5, 3}, 1e-6);
  EXPECT_THAT(node_error("Resize", 13, {x, Operand(), fixed(f32({3}, {1, 0.3F, 1}))}), HasSubstr("to nothing"));
  EXPECT_THAT(node_error("Resize", 13, {x, Operand(), fixed(f32({3}, {1, 2, 1}))}, {AttributeSpec("mode", "area")}),
              HasSubstr("attribute 'mode' is 'area'"));
  EXPECT_THAT(node_error("Resize", 13, {x, Operand(), Operand(), fixed(i64({2}, {1, 2}))}),
              HasSubstr("it has 2 sizes for 3 dimensions"));
  EXPECT_THAT(node_error("Resize", 13, {i64({1, 2}, {1, 3}), Operand(), fixed(f32({2}, {1, 2}))},
                         {AttributeSpec("mode", "linear")}),
              HasSubstr("mode linear of int64"));
}

TEST(ConvertCreation, Constants) {
  expect_near(one(run_node("Constant", 12, {}, {AttributeSpec("value_floats", std::vector<float>{1, 2})})), {2}, {1, 2},
              0);
  expect_near(one(run_node("Constant", 12, {}, {AttributeSpec("value_int", 7)})), {}, {7}, 0);
  EXPECT_THAT(node_error("Constant", 12, {}), HasSubstr("it has 0 attributes"));
  EXPECT_THAT(node_error("Constant", 12, {}, {AttributeSpec("value_string", "text")}),
              HasSubstr("strings and sparse tensors"));
  EXPECT_THAT(node_error("ConstantOfShape", 9, {fixed(i64({1}, {-1}))}), HasSubstr("its shape has the size -1"));
  expect_near(one(run_node("EyeLike", 9, {f32({2, 3}, counted(6))}, {AttributeSpec("k", 1)})), {2, 3},
              {0, 1, 0, 0, 0, 1}, 0);
  EXPECT_THAT(node_error("EyeLike", 9, {f32({2}, {1, 2})}), HasSubstr("expected 2"));
}

TEST(ConvertLoss, IgnoredTargetsCountNothing) {
  const NDArray log_p = f32({3, 2}, {-1, -2, -3, -4, -5, -6}), target = i64({3}, {0, 1, -1});
  const auto loss = [&](const char* reduction) {
    return one(run_node("NegativeLogLikelihoodLoss", 13, {log_p, target},
                        {AttributeSpec("ignore_index", -1), AttributeSpec("reduction", reduction)}));
  };
  expect_near(loss("none"), {3}, {1, 4, 0}, 0);
  expect_near(loss("sum"), {}, {5}, 0);
  expect_near(loss("mean"), {}, {2.5}, 1e-6);
  EXPECT_THAT(node_error("NegativeLogLikelihoodLoss", 13, {log_p, target}, {AttributeSpec("reduction", "all")}),
              HasSubstr("'reduction' is 'all'"));
}

}  // namespace
}  // namespace headrace::onnx
