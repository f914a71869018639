// PackDense: which products it packs, and that their results stay.
#include "passes/layout/pack_dense.h"

#include "kit/property.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

constexpr cost::Machine kMachine{.vector_bits = 256};  // 8 lanes of float32

int num_packed(const std::string& params, const std::string& body) {
  const IRModule before = read(fmt::format("def @main({}) {{ {} }}", params, body));
  const IRModule after = relay::infer_type(pack_dense(before, kMachine));
  return count_calls(after, "nn.contrib_dense_pack");
}

std::string ones(const std::string& shape, const std::string& dtype = "float32") {
  return fmt::format("ones(shape=[{}], dtype=\"{}\")", shape, dtype);
}

TEST(PackDense, PacksFloatsWithRowsEnoughAndWholeParts) {
  const std::string x = "%x: Tensor[(4, 3), float32]";
  EXPECT_EQ(num_packed(x, "nn.dense(%x, " + ones("8, 3") + ")"), 1);
  EXPECT_EQ(num_packed("%x: Tensor[(2, 2, 3), float32]", "nn.dense(%x, " + ones("16, 3") + ")"), 1);
  EXPECT_EQ(num_packed("%x: Tensor[(4, 3), float64]", "nn.dense(%x, " + ones("4, 3", "float64") + ")"), 1);
  EXPECT_EQ(num_packed(x, "nn.dense(%x, " + ones("8, 3") + ", out_dtype=\"float32\")"), 1);
}

TEST(PackDense, LeavesTheOthers) {
  const std::string x = "%x: Tensor[(4, 3), float32]";
  EXPECT_EQ(num_packed(x, "nn.dense(%x, " + ones("12, 3") + ")"), 0) << "12 columns are not whole parts of 8";
  EXPECT_EQ(num_packed("%x: Tensor[(3, 3), float32]", "nn.dense(%x, " + ones("8, 3") + ")"), 0) << "three rows";
  EXPECT_EQ(num_packed("%x: Tensor[(?, 3), float32]", "nn.dense(%x, " + ones("8, 3") + ")"), 0) << "unknown rows";
  EXPECT_EQ(num_packed(x + ", %w: Tensor[(8, 3), float32]", "nn.dense(%x, %w)"), 0) << "a matrix of a run";
  EXPECT_EQ(num_packed(x, "nn.dense(" + ones("4, 3") + ", " + ones("8, 3") + ")"), 0) << "a product of constants";
  EXPECT_EQ(num_packed("%x: Tensor[(4, 3), float16]", "nn.dense(%x, " + ones("8, 3", "float16") + ")"), 0);
  EXPECT_EQ(num_packed("%x: Tensor[(4, 3), int32]", "nn.dense(%x, " + ones("8, 3", "int32") + ")"), 0);
  EXPECT_EQ(num_packed("%x: Tensor[(4, 0), float32]", "nn.dense(%x, " + ones("8, 0") + ")"), 0) << "no terms";
  EXPECT_EQ(num_packed("%x: Tensor[(4, 3), int8]", "nn.dense(%x, " + ones("8, 3", "int8") + ", out_dtype=\"int32\")"),
            0);
}

struct RandomProduct {
  std::string program;
  std::vector<NDArray> args;
};

// Sizes by chance, some of whole parts; a matrix that is made of constants, and perhaps a bias and a second reader.
RandomProduct random_product(kit::Random& random) {
  const int64_t rows = random.integer(1, 9), depth = random.integer(1, 40);
  const int64_t columns = random.chance(0.7F) ? 8 * random.integer(1, 6) : random.integer(1, 40);
  const char* const dtype = random.chance(0.8F) ? "float32" : "float64";
  RandomProduct product;
  const bool has_batch = random.chance(0.4F);
  const Shape shape = has_batch ? Shape{2, rows, depth} : Shape{rows, depth};
  const NDArray data = NDArray::empty(shape, DataType::parse(dtype));
  for (int64_t i = 0; i < data.num_elements(); ++i)
    set_element(data.tensor(), i, static_cast<double>(random.uniform(-1, 1)));
  product.args = {data};
  const std::string matrix = fmt::format(
      "reshape(sin(arange(const(Tensor[(), {0}], [0]), const(Tensor[(), {0}], [{1}]), const(Tensor[(), {0}], [1]), "
      "dtype=\"{0}\")), newshape=[{2}, {3}])",
      dtype, columns * depth, columns, depth);
  const char* const after = random.chance(0.5F) ? "nn.relu(%2)" : "(%2, exp(%1))";
  product.program = fmt::format(
      "def @main(%x: Tensor[({}), {}]) {{\n  %0 = {};\n  %1 = nn.dense(%x, %0);\n  %2 = add(%1, ones(shape=[{}], "
      "dtype=\"{}\"));\n  {}\n}}",
      fmt::join(shape, ", "), dtype, matrix, columns, dtype, after);
  return product;
}

TEST(PackDense, RandomProductsKeepTheResults) {
  int packed = 0;
  kit::Property<RandomProduct> property;
  property.runs_ci = 80;
  property.runs_full = 20000;
  property.generate = random_product;
  property.show = [](const RandomProduct& product) { return product.program; };
  property.check = [&](const RandomProduct& product) {
    const IRModule before = read(product.program), after = relay::infer_type(pack_dense(before, kMachine));
    packed += count_calls(after, "nn.contrib_dense_pack");
    return difference_of_results(before, after, product.args);
  };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  EXPECT_GE(packed, kit::options().size == kit::TestSize::kFew ? 2 : 25);
}

}  // namespace
}  // namespace headrace::passes
