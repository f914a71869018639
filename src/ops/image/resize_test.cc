// Which element nearest_neighbor takes, as Relay has it; the values of all resizes are in op_cases.txt.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::ops {
namespace {

// Resizes [0, 1, .. in - 1]: the results are the indices that were read.
std::vector<float> read_indices(int64_t in, int64_t out, const std::string& how) {
  register_all_ops();
  const IRModule module = relay::parse_module(
      fmt::format("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 1, {}), float32]) {{ image.resize1d(%x, size=[{}], "
                  "layout=\"NCW\", method=\"nearest_neighbor\", {}) }}\n",
                  in, out, how));
  const NDArray x = NDArray::empty({1, 1, in}, DataType::float_(32));
  for (int64_t i = 0; i < in; ++i) x.data<float>()[i] = static_cast<float>(i);
  const NDArray y = interp::run_main(module, {x}).at(0);
  return {y.data<float>(), y.data<float>() + out};
}

using Indices = std::vector<float>;

TEST(Resize, NearestTakesTheFloorUnlessCornersAreAligned) {
  // Coordinates -0.25, 0.25, 0.75, 1.25.
  EXPECT_EQ(read_indices(2, 4, "rounding_method=\"\""), (Indices{0, 0, 0, 1}));
  // Coordinates 0, 1/3, 2/3, 1.
  EXPECT_EQ(read_indices(2, 4, "rounding_method=\"\", coordinate_transformation_mode=\"align_corners\""),
            (Indices{0, 0, 1, 1}));
  // Coordinates 0, 0.5, 1, 1.5.
  EXPECT_EQ(read_indices(2, 4, "rounding_method=\"\", coordinate_transformation_mode=\"asymmetric\""),
            (Indices{0, 0, 1, 1}));
  EXPECT_EQ(read_indices(2, 4, "rounding_method=\"round\""), (Indices{0, 0, 1, 1}));
  EXPECT_EQ(read_indices(2, 4, "rounding_method=\"round_prefer_floor\", coordinate_transformation_mode=\"asymmetric\""),
            (Indices{0, 0, 1, 1}));
}

// Relay's `round` is C's, which takes ties away from zero; ONNX's two ways of rounding have names of their own.
TEST(Resize, RoundTakesTheUpperOneOfATie) {
  const std::string corners = ", coordinate_transformation_mode=\"align_corners\"";
  // Coordinates 0, 0.5, 1, 1.5, 2.
  EXPECT_EQ(read_indices(3, 5, "rounding_method=\"round\"" + corners), (Indices{0, 1, 1, 2, 2}));
  EXPECT_EQ(read_indices(3, 5, "rounding_method=\"\"" + corners), (Indices{0, 1, 1, 2, 2}));
  EXPECT_EQ(read_indices(3, 5, "rounding_method=\"round_prefer_ceil\"" + corners), (Indices{0, 1, 1, 2, 2}));
  EXPECT_EQ(read_indices(3, 5, "rounding_method=\"round_prefer_floor\"" + corners), (Indices{0, 0, 1, 1, 2}));
  // Coordinates 0, 0.5, 1, 1.5.
  EXPECT_EQ(read_indices(2, 4, "rounding_method=\"round\", coordinate_transformation_mode=\"asymmetric\""),
            (Indices{0, 1, 1, 1}));
}

}  // namespace
}  // namespace headrace::ops
