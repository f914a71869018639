// DFT and STFT; ONNX's own cases hold their results in every executor.
#include <cmath>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

std::vector<double> spectrum(const NDArray& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.num_elements(); ++i)
    result.push_back(std::round(element_as_double(array.tensor(), i) * 1e4) / 1e4 + 0.0);
  return result;
}

// The transform of 1, 2, 3, 4 is 10, -2 + 2i, -2, -2 - 2i.
TEST(ConvertFourier, Dft) {
  const NDArray x = f32({1, 4, 1}, {1, 2, 3, 4});
  EXPECT_THAT(spectrum(run_node("DFT", 17, {x})[0]), ElementsAre(10, 0, -2, 2, -2, 0, -2, -2));
  EXPECT_THAT(spectrum(run_node("DFT", 20, {x}, {AttributeSpec("onesided", 1)})[0]), ElementsAre(10, 0, -2, 2, -2, 0));
  EXPECT_THAT(spectrum(run_node("DFT", 20, {x, fixed(i64({}, {2}))})[0]), ElementsAre(3, 0, -1, 0)) << "cut";
  const NDArray two = f32({1, 2, 1}, {1, 2});
  EXPECT_THAT(spectrum(run_node("DFT", 20, {two, fixed(i64({}, {4}))})[0]), ElementsAre(3, 0, 1, -2, -1, 0, 1, 2));
  const NDArray z = f32({4, 2}, {10, 0, -2, 2, -2, 0, -2, -2});
  const auto back = run_node("DFT", 20, {z, NDArray(), fixed(i64({}, {0}))}, {AttributeSpec("inverse", 1)});
  EXPECT_THAT(spectrum(back[0]), ElementsAre(1, 0, 2, 0, 3, 0, 4, 0));
}

TEST(ConvertFourier, Stft) {
  const NDArray x = f32({1, 6, 1}, {1, 2, 3, 4, 5, 6}), window = f32({4}, {1, 1, 1, 1});
  const Operand step = fixed(i64({}, {2}));
  EXPECT_THAT(spectrum(run_node("STFT", 17, {x, step, window})[0]),
              ElementsAre(10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0));
  EXPECT_THAT(node_error("STFT", 17, {x, step}), HasSubstr("neither a window nor a frame_length"));
  EXPECT_THAT(node_error("STFT", 17, {f32({1, 2, 2}, {1, 2, 3, 4}), step, window}), HasSubstr("complex numbers"));
}

TEST(ConvertFourier, RefusedAttributesAndShapes) {
  const NDArray x = f32({1, 4, 1}, {1, 2, 3, 4});
  EXPECT_THAT(node_error("DFT", 17, {x}, {AttributeSpec("axis", 2)}), HasSubstr("real and imaginary parts"));
  EXPECT_THAT(node_error("DFT", 17, {f32({1, 3}, {1, 2, 3})}), HasSubstr("must have 1 or 2 elements"));
  EXPECT_THAT(node_error("DFT", 20, {x}, {AttributeSpec("inverse", 1), AttributeSpec("onesided", 1)}),
              HasSubstr("of one side"));
  EXPECT_THAT(node_error("DFT", 20, {x, fixed(i64({}, {0}))}), HasSubstr("its dft_length is 0"));
}

}  // namespace
}  // namespace headrace::onnx
