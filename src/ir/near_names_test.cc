#include "ir/near_names.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

using Names = std::vector<std::string>;

TEST(NearNames, AreTwoChangesAwayOrEndInTheName) {
  const Names known{"add", "nn.conv2d", "nn.conv3d", "nn.dense", "odd.conv2d"};
  EXPECT_EQ(near_names("nn.conv2", known, '.'), (Names{"nn.conv2d", "nn.conv3d"}));
  EXPECT_EQ(near_names("conv2d", known, '.'), (Names{"nn.conv2d", "odd.conv2d"}));
  EXPECT_EQ(near_names("conv2d", known, '/'), Names{});
  EXPECT_EQ(near_names("NN.CONV2D", known, '.'), Names{"nn.conv2d"});
  EXPECT_EQ(near_names("softmax", known, '.'), Names{});
  EXPECT_EQ(near_names(std::string(100, 'a'), {std::string(101, 'a')}, '.'), Names{});
  EXPECT_EQ(near_names(std::string(99, 'a'), {std::string(101, 'a')}, '.'), Names{std::string(101, 'a')});
}

}  // namespace
}  // namespace headrace
