#include "ir/type.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

std::vector<std::string> texts(const std::vector<Type>& types) {
  std::vector<std::string> all;
  for (const Type& type : types) all.push_back(to_string(type));
  return all;
}

const Type kA = make_tensor_type(Shape{1}), kB = make_tensor_type(Shape{2}), kC = make_tensor_type(Shape{3});

TEST(Type, LeavesComeInTheOrderOfTheText) {
  const Type nested = make_tuple_type({make_tuple_type({kA, kB}), make_tuple_type({}), kC});
  EXPECT_EQ(texts(leaves_of(nested)), texts({kA, kB, kC}));
  EXPECT_EQ(texts(leaves_of(kA)), texts({kA}));
  EXPECT_TRUE(leaves_of(make_tuple_type({})).empty());
}

TEST(Type, AFieldHasItsOwnLeaves) {
  const TupleType nested = make_tuple_type({make_tuple_type({kA, kB}), make_tuple_type({}), kC});
  const auto range = [&](int64_t i) {
    const LeafRange found = leaves_of_field(*nested.get(), i);
    return std::pair(found.begin, found.count);
  };
  EXPECT_EQ(range(0), std::pair(size_t{0}, size_t{2}));
  EXPECT_EQ(range(1), std::pair(size_t{2}, size_t{0}));
  EXPECT_EQ(range(2), std::pair(size_t{2}, size_t{1}));
}

TEST(Type, DeeplyNestedTuplesHaveLeaves) {
  Type type = kA;
  for (int i = 0; i < 100000; ++i) type = make_tuple_type({type});
  EXPECT_EQ(leaves_of(type).size(), 1U);
}

}  // namespace
}  // namespace headrace
