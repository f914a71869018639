#include "ir/type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "kit/errors.h"
#include "kit/options.h"
#include "object/json.h"
#include "object/structural_equal.h"

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

TEST(Type, ASymbolHasNoShape) {
  const Type type = make_tensor_type(Array<PrimExpr>{make_prim_var("n"), make_int(2)});
  EXPECT_EQ(kit::user_error_of([&] { type.as<TensorTypeNode>()->concrete_shape(); }),
            "Tensor[(n, 2), float32] has a symbolic dimension where a number is needed; fix the shapes of the inputs");
}

// In the square of the depth this would take minutes.
TEST(Type, DeeplyNestedTypesComeBackFromJson) {
  Type type = kA;
  for (int i = 0; i < kit::by_depth(100000); ++i)
    type = i % 2 == 0 ? Type(make_tuple_type({type})) : make_func_type({type}, kB);
  const std::string text = save_json(Value(type));
  EXPECT_EQ(save_json(load_json(text)), text);
}

// A number that names no enumerator would be looked up behind the end of a table.
TEST(Type, EnumeratorsOfJsonExist) {
  const auto error = [](const Value& node, std::string_view field, int number) {
    std::string text = save_json(node);
    const std::regex found(fmt::format("(\"{}\": ?)[0-9]+", field));
    EXPECT_TRUE(std::regex_search(text, found)) << text;
    text = std::regex_replace(text, found, fmt::format("$01{}", number));
    return kit::user_error_of([&] { load_json(text); });
  };
  const Value variable(make_type_var("A", TypeKind::shape));
  EXPECT_EQ(error(variable, "kind", 6), "");
  for (const int number : {7, 33, 255}) EXPECT_THAT(error(variable, "kind", number), testing::HasSubstr("'kind'"));
  const Value sum(make_binary(BinaryOp::add, make_prim_var("n"), make_int(1)));
  EXPECT_EQ(error(sum, "op", 16), "");
  EXPECT_THAT(error(sum, "op", 17), testing::HasSubstr("'op'"));
}

// Relay's programs have dimensions of int32, and of other integer dtypes.
TEST(TensorTypes, DimensionsAreOfOneDtype) {
  const auto type = [](PrimExpr dim) { return make_tensor_type(Array<PrimExpr>{std::move(dim)}); };
  for (const DataType dtype : {DataType::int_(16), DataType::int_(32), DataType::uint(8)}) {
    const PrimVar n = make_prim_var("n", dtype);
    EXPECT_TRUE(structural_equal(Value(type(make_int(3, dtype))), Value(type(make_int(3)))));
    const TensorType symbolic = type(n);
    EXPECT_EQ(symbolic->shape[0]->dtype, kIndexType);
    EXPECT_EQ(to_string(symbolic), "Tensor[(n), float32]");
    EXPECT_EQ(symbolic->shape[0], type(n)->shape[0]) << "one symbol each time";
    EXPECT_NE(symbolic->shape[0], type(make_prim_var("n", dtype))->shape[0]);
    EXPECT_EQ(to_string(Type(type(n * make_int(2, dtype) + make_int(1, dtype)))), "Tensor[((n * 2) + 1), float32]");
    const PrimExpr negative = make_select(make_binary(BinaryOp::lt, n, make_int(1, dtype)), n, n);
    EXPECT_EQ(type(negative)->shape[0]->dtype, kIndexType);
  }
  const PrimExpr real = make_float(2);
  EXPECT_EQ(type(real)->shape[0], real);
  const ObjectRef made =
      make_node("relay.TensorType",
                {{"shape", Value(Array<PrimExpr>{make_int(2, DataType::int_(32))})}, {"dtype", Value("int8")}});
  EXPECT_EQ(made.cast<TensorTypeNode>()->concrete_shape(), (Shape{2}));
  EXPECT_TRUE(structural_equal(Value(made), Value(make_tensor_type(Shape{2}, DataType::int_(8)))));
}

}  // namespace
}  // namespace headrace
