// Tests the changes of opsets 18 to 25 that the cases of the onnx package do not cover, with malformed models and with
// operator forms written by hand.
#include <cmath>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;

NDArray image() { return f32({1, 1, 2, 2}, {1, 2, 3, 4}); }

TEST(ConvertOpsets, AxesOfReductionsAreAnInputFrom18On) {
  const NDArray x = f32({2, 2}, {1, 2, 3, 4});
  expect_near(run_node("ReduceMax", 18, {x, fixed(i64({1}, {1}))}, {AttributeSpec("keepdims", 0)}).at(0), {2}, {2, 4},
              0);
  expect_near(run_node("ReduceSumSquare", 18, {x}, {AttributeSpec("noop_with_empty_axes", 1)}).at(0), {2, 2},
              {1, 4, 9, 16}, 0);
  EXPECT_THAT(node_error("ReduceMax", 17, {x, fixed(i64({1}, {1}))}),
              HasSubstr("up to opset 17 axes are an attribute"));
  EXPECT_THAT(node_error("ReduceMax", 18, {x}, {AttributeSpec("axes", Ints{1})}),
              HasSubstr("attribute 'axes' is not supported"));
}

TEST(ConvertOpsets, SplitsOfExtentsThatAreNoMultiple) {
  const NDArray x = f32({5}, {1, 2, 3, 4, 5});
  const auto parts = run_node("Split", 18, {x}, {AttributeSpec("num_outputs", 2)}, 2);
  expect_near(parts.at(0), {3}, {1, 2, 3}, 0);
  expect_near(parts.at(1), {2}, {4, 5}, 0);
  EXPECT_THAT(node_error("Split", 18, {x}, {AttributeSpec("num_outputs", 3)}, 2),
              HasSubstr("'num_outputs' is 3 for 2 outputs"));
  EXPECT_THAT(node_error("Split", 18, {f32({2}, {1, 2})}, {AttributeSpec("num_outputs", 5)}, 5),
              HasSubstr("axis 0 of 2 does not make 5 parts of 1"));
  EXPECT_THAT(node_error("Split", 18, {x}, {}, 0), HasSubstr("it has no outputs"));
}

TEST(ConvertOpsets, PadsOfSomeAxes) {
  const NDArray x = f32({1, 3}, {1, 2, 3});
  expect_near(run_node("Pad", 19, {x, fixed(i64({2}, {2, -1})), Operand(), fixed(i64({1}, {1}))},
                       {AttributeSpec("mode", "wrap")})
                  .at(0),
              {1, 4}, {1, 2, 1, 2}, 0);
  for (const auto& [mode, expected] : {std::pair("edge", std::vector<double>{2, 3, 3, 3}), {"reflect", {2, 3, 2}}}) {
    const auto wanted = static_cast<int64_t>(expected.size());
    expect_near(run_node("Pad", 18,
                         {x, fixed(i64({2}, {-1, static_cast<double>(wanted - 2)})), Operand(), fixed(i64({1}, {1}))},
                         {AttributeSpec("mode", mode)})
                    .at(0),
                {1, wanted}, expected, 0);
  }
  EXPECT_THAT(node_error("Pad", 18, {x, fixed(i64({4}, {0, 0, 1, 1})), Operand(), fixed(i64({1}, {1}))}),
              HasSubstr("it has 4 pads for 1 axes"));
  EXPECT_THAT(node_error("Pad", 18, {x, fixed(i64({4}, {0, 0, 1, 1}))}, {AttributeSpec("mode", "wrap")}),
              HasSubstr("attribute 'mode' is 'wrap'"));
  EXPECT_THAT(node_error("Pad", 19, {x, fixed(i64({4}, {0, -9, 0, 0}))}, {AttributeSpec("mode", "wrap")}),
              HasSubstr("its pads -9 and 0 do not fit axis 1 of 3"));
}

TEST(ConvertOpsets, ResizeOfSomeAxes) {
  const Operand scales = fixed(f32({1}, {2}));
  EXPECT_THAT(node_error("Resize", 18, {image(), Operand(), scales}, {AttributeSpec("axes", Ints{2, 3})}),
              HasSubstr("it has 1 scales for 2 dimensions"));
  EXPECT_THAT(node_error("Resize", 18, {image(), Operand(), Operand(), fixed(i64({1}, {4}))},
                         {AttributeSpec("axes", Ints{2}), AttributeSpec("keep_aspect_ratio_policy", "both")}),
              HasSubstr("attribute 'keep_aspect_ratio_policy' is 'both'"));
  const NDArray line = f32({1, 1, 1, 1024}, std::vector<double>(1024, 1));
  EXPECT_THAT(node_error("Resize", 18, {line, Operand(), fixed(f32({4}, {1, 1, 1, 1.0 / 512}))},
                         {AttributeSpec("antialias", 1), AttributeSpec("mode", "linear")}),
              HasSubstr("antialias with a scale"));
  EXPECT_THAT(
      node_error("Resize", 18, {image(), Operand(), fixed(f32({2}, {2, 2}))}, {AttributeSpec("axes", Ints{2, -2})}),
      HasSubstr("attribute 'axes' names axis 2 twice"));
  EXPECT_THAT(
      node_error("Resize", 13, {image(), Operand(), fixed(f32({4}, {1, 1, 2, 2})), fixed(i64({4}, {1, 1, 4, 4}))}),
      HasSubstr("it has scales and sizes"));
}

// In the data's dtype again, cut to an integer.
TEST(ConvertOpsets, ReductionsOfIntegers) {
  const NDArray x = i64({2, 3}, {1, 2, 5, 3, 4, 0});
  const auto reduced = [&](const char* op) { return run_node(op, 13, {x}, {AttributeSpec("axes", Ints{1})}).at(0); };
  for (const char* op : {"ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
    EXPECT_EQ(reduced(op).dtype(), DataType::int_(64)) << op;
  expect_near(reduced("ReduceMean"), {2, 1}, {2, 2}, 0);       // 8 / 3, 7 / 3
  expect_near(reduced("ReduceL2"), {2, 1}, {5, 5}, 0);         // sqrt(30), sqrt(25)
  expect_near(reduced("ReduceLogSum"), {2, 1}, {2, 1}, 0);     // log(8), log(7)
  expect_near(reduced("ReduceLogSumExp"), {2, 1}, {5, 4}, 0);  // 5.07, 4.33
}

TEST(ConvertOpsets, Einsum) {
  const NDArray a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 1}, {5, 6});
  expect_near(run_node("Einsum", 12, {a, b}, {AttributeSpec("equation", "ij, jk -> ki")}).at(0), {1, 2}, {17, 39}, 0);
  expect_near(run_node("Einsum", 12, {a}, {AttributeSpec("equation", "ii")}).at(0), {}, {5}, 0);
  EXPECT_THAT(node_error("Einsum", 12, {a, b}, {AttributeSpec("equation", "ij,jk->l")}),
              HasSubstr("no operand has the axis 'l'"));
  EXPECT_THAT(node_error("Einsum", 12, {a}), HasSubstr("names 0"));
}

TEST(ConvertOpsets, Unique) {
  const auto outputs = run_node("Unique", 11, {f32({2, 2}, {3, 1, 3, 2})}, {AttributeSpec("sorted", 0)});
  expect_near(outputs.at(0), {3}, {3, 1, 2}, 0);
  EXPECT_THAT(node_error("Unique", 11, {image()}, {AttributeSpec("axis", 0)}), HasSubstr("slices along an axis"));
}

TEST(ConvertOpsets, InputsOfOneNumber) {
  const NDArray x = f32({2}, {1, 2}), two = f32({2}, {0, 0});
  EXPECT_THAT(node_error("Pad", 13, {x, fixed(i64({2}, {1, 1})), two}),
              HasSubstr("its constant_value has the shape (2), expected one number"));
  EXPECT_THAT(node_error("NonMaxSuppression", 11,
                         {f32({1, 1, 4}, {0, 0, 1, 1}), f32({1, 1, 1}, {1}), fixed(i64({1}, {1})), two}),
              HasSubstr("its iou_threshold has the shape (2), expected one number"));
  EXPECT_THAT(node_error("RoiAlign", 16, {image(), f32({1, 4}, {0, 0, 1, 1}), i64({2}, {0, 0})}),
              HasSubstr("its batch_indices have the shape (2), expected one for each of its rois (1, 4)"));
}

TEST(ConvertOpsets, GroupNormalization) {
  const NDArray x = f32({1, 2, 1, 2}, {1, 3, 10, 30}), two = f32({2}, {2, 2}), one = f32({2}, {1, 1});
  const double a = 1 / std::sqrt(1 + 1e-5), b = 10 / std::sqrt(100 + 1e-5);
  const std::vector<double> wanted{1 - 2 * a, 1 + 2 * a, 1 - 2 * b, 1 + 2 * b};
  for (const int64_t opset : {18, 21})
    expect_near(run_node("GroupNormalization", opset, {x, two, one}, {AttributeSpec("num_groups", 2)}).at(0),
                {1, 2, 1, 2}, wanted, 1e-5);
  EXPECT_THAT(node_error("GroupNormalization", 21, {x, two, one}, {AttributeSpec("num_groups", 3)}),
              HasSubstr("2 channels do not make 3 groups"));
}

TEST(ConvertOpsets, WordsOfModes) {
  const NDArray grid = f32({1, 1, 1, 2}, {0, 0});
  EXPECT_THAT(node_error("Gelu", 20, {image()}, {AttributeSpec("approximate", "sigmoid")}),
              HasSubstr("attribute 'approximate' is 'sigmoid'"));
  EXPECT_THAT(node_error("GridSample", 20, {image(), grid}, {AttributeSpec("mode", "box")}),
              HasSubstr("attribute 'mode' is 'box'"));
  EXPECT_THAT(node_error("GridSample", 20, {image(), grid}, {AttributeSpec("padding_mode", "wrap")}),
              HasSubstr("attribute 'padding_mode' is 'wrap'"));
  const NDArray volume = f32({1, 1, 1, 1, 1}, {1}), places = f32({1, 1, 1, 1, 3}, {0, 0, 0});
  EXPECT_THAT(node_error("GridSample", 20, {volume, places}, {AttributeSpec("mode", "cubic")}),
              HasSubstr("mode cubic of volumes is not supported"));
  EXPECT_THAT(node_error("GridSample", 20, {image(), places}), HasSubstr("its grid has 5 dimensions, expected 4"));
}

TEST(ConvertOpsets, Regions) {
  const NDArray rois = f32({1, 4}, {0, 0, 1, 1}), batch = i64({1}, {0});
  EXPECT_THAT(node_error("RoiAlign", 16, {image(), rois, batch}, {AttributeSpec("mode", "max")}),
              HasSubstr("mode max"));
  EXPECT_THAT(node_error("RoiAlign", 16, {image(), rois, batch}, {AttributeSpec("output_width", 0)}),
              HasSubstr("attribute 'output_width' is 0"));
  EXPECT_THAT(
      node_error("RoiAlign", 16, {image(), rois, batch}, {AttributeSpec("coordinate_transformation_mode", "pixel")}),
      HasSubstr("'coordinate_transformation_mode' is 'pixel'"));
  const NDArray regions = f32({1, 5}, {0, 0, 0, 1, 1});
  expect_near(run_node("MaxRoiPool", 1 + 21, {image(), regions}, {AttributeSpec("pooled_shape", Ints{1, 2})}).at(0),
              {1, 1, 1, 2}, {3, 4}, 0);
  EXPECT_THAT(node_error("MaxRoiPool", 22, {image(), regions}, {AttributeSpec("pooled_shape", Ints{1})}),
              HasSubstr("'pooled_shape' must have 2 values"));
  EXPECT_THAT(node_error("NonMaxSuppression", 11, {f32({1, 1, 4}, {0, 0, 1, 1}), f32({1, 1, 1}, {1})},
                         {AttributeSpec("center_point_box", 2)}),
              HasSubstr("'center_point_box' is 2"));
  EXPECT_THAT(node_error("AffineGrid", 20, {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), fixed(i64({3}, {1, 1, 2}))}),
              HasSubstr("its size has 3 values"));
  EXPECT_THAT(node_error("AffineGrid", 20, {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), fixed(i64({4}, {2, 1, 2, 2}))}),
              HasSubstr("its theta has the shape"));
}

TEST(ConvertOpsets, Places) {
  // A known tensor gives a constant, an unknown one as many places as there are.
  expect_near(run_node("NonZero", 13, {fixed(f32({2, 2}, {0, 5, 7, 0}))}).at(0), {2, 2}, {0, 1, 1, 0}, 0);
  expect_near(run_node("NonZero", 13, {f32({2, 2}, {0, 5, 7, 0})}).at(0), {2, 2}, {0, 1, 1, 0}, 0);
  const NDArray index = i64({1, 1, 2, 2}, {0, 2, 8, 10});
  EXPECT_THAT(node_error("MaxUnpool", 22, {image(), index, fixed(i64({4}, {1, 1, 3, 4}))},
                         {AttributeSpec("kernel_shape", Ints{2, 2}), AttributeSpec("strides", Ints{2, 2})}),
              HasSubstr("an output_shape with 3 in place of 4"));
  EXPECT_THAT(node_error("MaxUnpool", 22, {image(), index, fixed(i64({1}, {4}))},
                         {AttributeSpec("kernel_shape", Ints{2, 2}), AttributeSpec("strides", Ints{2, 2})}),
              HasSubstr("its output_shape has 1 sizes"));
  EXPECT_THAT(node_error("CenterCropPad", 18, {image(), fixed(i64({1}, {4}))}), HasSubstr("it has 1 sizes for 4 axes"));
  EXPECT_THAT(node_error("CenterCropPad", 18, {image(), fixed(i64({1}, {-4}))}, {AttributeSpec("axes", Ints{2})}),
              HasSubstr("one of its sizes is -4"));
  const NDArray columns = f32({1, 4, 1}, {1, 2, 3, 4});
  expect_near(run_node("Col2Im", 18, {columns, fixed(i64({2}, {2, 2})), fixed(i64({2}, {2, 2}))}).at(0), {1, 1, 2, 2},
              {1, 2, 3, 4}, 0);
  EXPECT_THAT(node_error("Col2Im", 18, {columns, fixed(i64({2}, {3, 2})), fixed(i64({2}, {2, 2}))}),
              HasSubstr("does not have the blocks of (2, 2) over (3, 2)"));
  EXPECT_THAT(node_error("Col2Im", 18, {columns, fixed(i64({2}, {1, 2})), fixed(i64({2}, {2, 2}))}),
              HasSubstr("a block is larger than the image"));
  EXPECT_THAT(node_error("Col2Im", 18, {columns, fixed(i64({1}, {2})), fixed(i64({2}, {2, 2}))}),
              HasSubstr("image_shape and block_shape do not agree"));
}

TEST(ConvertOpsets, TensorScatter) {
  const NDArray cache = f32({2, 3}, {1, 2, 3, 4, 5, 6}), row = f32({2, 2}, {7, 8, 9, 0});
  const AttributeSpec last("axis", 1);
  const auto scattered = [&](const std::vector<Operand>& operands, const Attributes& attributes) {
    return run_node("TensorScatter", 24, operands, attributes).at(0);
  };
  expect_near(scattered({cache, row}, {last}), {2, 3}, {7, 8, 3, 9, 0, 6}, 0);
  expect_near(scattered({cache, row, i64({2}, {1, 0})}, {last}), {2, 3}, {1, 7, 8, 9, 0, 6}, 0);
  expect_near(scattered({cache, row, i64({2}, {2, 4})}, {last, AttributeSpec("mode", "circular")}), {2, 3},
              {8, 2, 7, 4, 9, 0}, 0);
  const auto error = [&](const std::vector<Operand>& operands, const Attributes& attributes) {
    return node_error("TensorScatter", 24, operands, attributes);
  };
  EXPECT_THAT(error({cache, row}, {}), HasSubstr("its update of (2, 2) does not fit a cache of (2, 3) along axis 0"));
  EXPECT_THAT(error({row, cache}, {last}),
              HasSubstr("its update of (2, 3) does not fit a cache of (2, 2) along axis 1"));
  EXPECT_THAT(error({cache, row}, {last, AttributeSpec("mode", "ring")}),
              HasSubstr("attribute 'mode' is 'ring', expected linear or circular"));
  EXPECT_THAT(error({cache, row, i64({1}, {1})}, {last}),
              HasSubstr("its write_indices are not 2, one for each sample"));
}

TEST(ConvertOpsets, Swish) {
  const double e = std::exp(-1.0);
  expect_near(run_node("Swish", 24, {f32({2}, {0, 0.5})}, {AttributeSpec("alpha", 2.0F)}).at(0), {2},
              {0, 0.5 / (1 + e)}, 1e-6);
}

TEST(ConvertOpsets, ScalesThatWouldEnlarge) {
  const NDArray x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), scale = f32({2, 2, 3}, std::vector<double>(12, 1));
  EXPECT_THAT(node_error("LayerNormalization", 17, {x, scale}),
              HasSubstr("its scale Tensor[(2, 2, 3), float32] does not broadcast to Tensor[(2, 3), float32]"));
  EXPECT_THAT(node_error("RMSNormalization", 23, {x, scale}), HasSubstr("its scale Tensor[(2, 2, 3), float32]"));
  const NDArray image = f32({1, 4, 1}, {1, 2, 3, 4}), each = f32({4}, {1, 1, 1, 1});
  EXPECT_THAT(node_error("GroupNormalization", 18, {image, each, each}, {AttributeSpec("num_groups", 2)}),
              HasSubstr("its scale has 4 elements, expected 2: one a group before opset 21"));
  EXPECT_THAT(node_error("Cast", 18, {x}, {AttributeSpec("to", int64_t{4294967297})}),
              HasSubstr("attribute 'to' is 4294967297, which is not an element type"));
}

}  // namespace
}  // namespace headrace::onnx
