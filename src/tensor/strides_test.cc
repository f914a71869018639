#include "tensor/strides.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Strides, AreRowMajor) {
  EXPECT_EQ(dense_strides(Shape{2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(dense_strides(Shape{}), Shape{});
  EXPECT_EQ(dense_strides(Shape{2, 0, 4}), (Shape{4, 4, 1}));
  const int64_t large = int64_t{1} << 40;
  EXPECT_EQ(dense_strides(Shape{0, large, large, 2}).back(), 1);  // wraps, which does no harm
}

TEST(Strides, DenseOnesAreKnown) {
  const Shape shape = {2, 3, 4};
  EXPECT_TRUE(is_dense(shape, Shape{12, 4, 1}));
  EXPECT_FALSE(is_dense(shape, Shape{12, 1, 4}));
  EXPECT_FALSE(is_dense(shape, Shape{24, 4, 1}));
  EXPECT_TRUE(is_dense(Shape{1, 4}, Shape{99, 1}));
  EXPECT_TRUE(is_dense(Shape{3, 0}, Shape{7, 5}));
  EXPECT_TRUE(is_dense(Shape{}, Shape{}));
}

}  // namespace
}  // namespace headrace
