#include "ops/loops/index.h"

#include <gtest/gtest.h>

#include "tensor/ndarray.h"

namespace headrace::ops {
namespace {

// Index by index, the offset added up from all axes.
std::vector<int64_t> offsets_by_hand(const Shape& shape, const Shape& strides) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    int64_t rest = i, offset = 0;
    for (size_t a = shape.size(); a-- > 0;) {
      offset += rest % shape[a] * strides[a];
      rest /= shape[a];
    }
    result.push_back(offset);
  }
  return result;
}

struct Walked {
  Shape shape, first, second;  // strides of two operands
};

TEST(OffsetWalk, VisitsEveryIndexInOrder) {
  const std::vector<Walked> cases = {
      {{}, {}, {}},
      {{5}, {1}, {0}},
      {{1, 1}, {7, 3}, {0, 0}},
      {{2, 3, 4}, {12, 4, 1}, {12, 4, 1}},                    // one axis for both
      {{2, 3, 4}, {12, 4, 1}, {0, 4, 1}},                     // the first is apart
      {{4, 2, 3, 3}, {18, 9, 3, 1}, {1, 0, 0, 0}},            // a weight and its scale
      {{2, 3, 4}, {1, 2, 6}, {12, 4, 1}},                     // turned round
      {{2, 1, 3, 1, 4}, {12, 0, 4, 99, 1}, {0, 5, 0, 1, 1}},  // axes of size 1
      {{3, 2}, {0, 0}, {-2, -1}},
      {{2, 0, 3}, {0, 3, 1}, {0, 3, 1}},
  };
  for (const Walked& c : cases) {
    std::vector<int64_t> first, second;
    const OffsetWalk<2> walk(c.shape, {c.first, c.second});
    for (int run = 0; run < 2; ++run) {
      first.clear();
      second.clear();
      walk.run([&](const auto& at) {
        first.push_back(at[0]);
        second.push_back(at[1]);
      });
      EXPECT_EQ(first, offsets_by_hand(c.shape, c.first)) << fmt::format("{}", fmt::join(c.shape, ", "));
      EXPECT_EQ(second, offsets_by_hand(c.shape, c.second)) << fmt::format("{}", fmt::join(c.shape, ", "));
    }
  }
}

TEST(OffsetWalk, JoinsAxesThatAreContiguousInAllTensors) {
  Shape shape{4, 2, 1, 3};
  std::array<Shape, 2> strides{Shape{6, 3, 3, 1}, Shape{1, 0, 0, 0}};
  join_axes(shape, strides);
  EXPECT_EQ(shape, (Shape{4, 6}));
  EXPECT_EQ(strides[0], (Shape{6, 1}));
  EXPECT_EQ(strides[1], (Shape{1, 0}));
}

}  // namespace
}  // namespace headrace::ops
