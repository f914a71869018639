// CumSum, TopK and the scatters; what is computed of them, and what is refused.
#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

std::vector<double> numbers(const NDArray& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.num_elements(); ++i) result.push_back(element_as_double(array.tensor(), i));
  return result;
}

TEST(ConvertSort, CumSum) {
  const NDArray x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(numbers(run_node("CumSum", 14, {x, fixed(i64({}, {1}))})[0]), ElementsAre(1, 3, 6, 4, 9, 15));
  const auto backwards =
      run_node("CumSum", 11, {x, fixed(i64({1}, {-1}))}, {AttributeSpec("reverse", 1), AttributeSpec("exclusive", 1)});
  EXPECT_THAT(numbers(backwards[0]), ElementsAre(5, 3, 0, 11, 6, 0));
  EXPECT_THAT(node_error("CumSum", 14, {x, fixed(i64({}, {2}))}), HasSubstr("axis"));
  EXPECT_THAT(node_error("CumSum", 14, {x, fixed(i64({2}, {0, 1}))}), HasSubstr("its axis has 2 elements"));
}

TEST(ConvertSort, TopK) {
  const NDArray x = f32({2, 3}, {1, 3, 2, 6, 4, 6});
  const auto top = run_node("TopK", 11, {x, fixed(i64({1}, {2}))}, {}, 2);
  EXPECT_THAT(numbers(top[0]), ElementsAre(3, 2, 6, 6));
  EXPECT_THAT(numbers(top[1]), ElementsAre(1, 2, 0, 2));
  const auto least = run_node("TopK", 11, {x, fixed(i64({1}, {1}))},
                              {AttributeSpec("largest", 0), AttributeSpec("axis", 0), AttributeSpec("sorted", 0)}, 2);
  EXPECT_THAT(numbers(least[1]), ElementsAre(0, 0, 0));
  EXPECT_THAT(numbers(run_node("TopK", 9, {x}, {AttributeSpec("k", 1)}, 2)[0]), ElementsAre(3, 6));
  EXPECT_THAT(node_error("TopK", 11, {x, fixed(i64({1}, {4}))}, {}, 2), HasSubstr("its k is 4"));
  EXPECT_THAT(node_error("TopK", 11, {x, fixed(i64({1}, {-1}))}, {}, 2), HasSubstr("not negative"));
}

TEST(ConvertSort, Scatters) {
  const NDArray x = f32({3}, {1, 2, 3}), updates = f32({2}, {5, 7});
  for (const auto& [name, opset] : {std::pair("Scatter", 9), {"ScatterElements", 13}}) {
    EXPECT_THAT(numbers(run_node(name, opset, {x, i64({2}, {2, 0}), updates})[0]), ElementsAre(7, 2, 5));
  }
  const auto added =
      run_node("ScatterElements", 16, {x, i64({2}, {-1, -1}), updates}, {AttributeSpec("reduction", "add")});
  EXPECT_THAT(numbers(added[0]), ElementsAre(1, 2, 15));
  const NDArray table = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(numbers(run_node("ScatterND", 13, {table, i64({1, 1}, {1}), f32({1, 2}, {8, 9})})[0]),
              ElementsAre(1, 2, 8, 9));
  EXPECT_THAT(numbers(run_node("ScatterND", 13, {table, i64({2, 2}, {0, 1, 1, 0}), updates})[0]),
              ElementsAre(1, 5, 7, 4));
  EXPECT_THAT(node_error("ScatterElements", 16, {x, i64({2}, {0, 0}), updates}, {AttributeSpec("reduction", "sum")}),
              HasSubstr("'reduction' is 'sum'"));
  EXPECT_THAT(node_error("ScatterND", 13, {table, i64({}, {1}), updates}), HasSubstr("its indices are a scalar"));
}

}  // namespace
}  // namespace headrace::onnx
