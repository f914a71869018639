// Tests the text of types: each kind reads back as the same type, a type without a text is an error, messages show all
// types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/type_text.h"
#include "kit/errors.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;

class TypeText : public testing::Test {
 protected:
  void SetUp() override { ops::register_all_ops(); }
};

constexpr std::string_view kDefinitions = "type List[A] { Nil, }\ntype Nat { Z, }\n";

// As the annotation of a variable, under the definitions and within a function of parameters A and B.
Type read_type(const std::string& text) {
  const IRModule module =
      parse_module(fmt::format("#[version = \"0.0.5\"]\n{}def @main[A, B](%x: {}) {{ %x }}", kDefinitions, text));
  return module->lookup("main").as<FunctionNode>()->params[0]->type_annotation;
}

Type relation(std::string op, Array<Type> args, Attrs attrs = {}) {
  auto node = make_object<TypeRelationNode>();
  node->name = std::move(op);
  node->num_inputs = static_cast<int64_t>(args.size()) - 1;
  node->args = std::move(args);
  node->attrs = attrs;
  return node;
}

const TypeVar kA = make_type_var("A"), kB = make_type_var("B");

Attrs softmax_attrs() { return parse_expr("free_var %x; nn.softmax(%x, axis=0)").as<CallNode>()->attrs; }

// A type of each kind, and its text.
std::vector<std::pair<Type, std::string>> types_and_texts() {
  const PrimVar n = make_prim_var("n"), other_n = make_prim_var("n"), spaced = make_prim_var("batch size");
  const PrimVar narrow = make_prim_var("k", DataType::int_(32));
  const auto tensor = [](Array<PrimExpr> shape) { return make_tensor_type(std::move(shape)); };
  const Type list = make_global_type_var("List"), nat = make_global_type_var("Nat");
  const TypeVar c = make_type_var("C"), shape = make_type_var("S", TypeKind::shape_var), other_c = make_type_var("C");
  return {
      {make_scalar_type(DataType::int_(32)), "int32"},
      {make_prim_type(DataType::int_(32)), "prim[int32]"},
      {make_prim_type(DataType::handle()), "prim[handle]"},
      {make_tensor_type(Shape{2, 3}, DataType::float_(16)), "Tensor[(2, 3), float16]"},
      {tensor({n, make_any(), other_n}), "Tensor[(n, ?, n_1), float32]"},
      {tensor({spaced, narrow}), "Tensor[(\"batch size\", k), float32]"},
      {tensor({make_binary(BinaryOp::mul, make_binary(BinaryOp::add, n, make_int(1)), make_int(2))}),
       "Tensor[((n + 1) * 2), float32]"},
      {tensor({make_binary(BinaryOp::floor_div, n, make_int(2)), make_binary(BinaryOp::floor_mod, n, make_int(2)),
               make_binary(BinaryOp::min, n, make_int(2)), make_binary(BinaryOp::max, n, make_int(2))}),
       "Tensor[(floordiv(n, 2), floormod(n, 2), min(n, 2), max(n, 2)), float32]"},
      {tensor({make_cast(kIndexType, narrow)}), "Tensor[(int64(k:int32)), float32]"},
      {make_tuple_type({}), "()"},
      {make_tuple_type({kA}), "(A,)"},
      {make_tuple_type({kA, make_tuple_type({kB, kA})}), "(A, (B, A))"},
      {make_ref_type(kA), "ref(A)"},
      {make_incomplete_type(), "_"},
      {nat, "Nat"},
      {make_type_call(list, {kA}), "List[A]"},
      {make_type_call(list, {make_tuple_type({nat})}), "List[(Nat,)]"},
      {make_func_type({kA}, kB), "fn (A) -> B"},
      {make_func_type({make_func_type({}, kA)}, make_func_type({kB}, nat)), "fn (fn () -> A) -> fn (B) -> Nat"},
      {make_func_type({c}, kA, {c, shape}), "fn [C, S: shape_var](C) -> A"},
      {make_func_type({c, make_func_type({other_c}, other_c, {other_c})}, c, {c}),
       "fn [C](C, fn [C_1](C_1) -> C_1) -> C"},
      {make_func_type({c}, kA, {c}, {relation("add", {c, c, kA})}), "fn [C](C) -> A where [add(C, C) -> A]"},
      {make_func_type({c}, c, {c}, {relation("nn.relu", {c, c}), relation("nn.softmax", {c, c}, softmax_attrs())}),
       "fn [C](C) -> C where [nn.relu(C) -> C, nn.softmax(C, axis=0) -> C]"},
      {make_func_type({}, kA, {}, {relation("nn.softmax", {kB, kA})}),
       "fn () -> A where [nn.softmax(B, attrs=None) -> A]"},
  };
}

TEST_F(TypeText, EachKindReadsBack) {
  for (const auto& [type, text] : types_and_texts()) {
    EXPECT_TRUE(structural_equal(Value(read_type(type_text(type))), Value(type), {.map_free_vars = true})) << text;
  }
}

TEST_F(TypeText, EachKindHasItsText) {
  for (const auto& [type, text] : types_and_texts()) EXPECT_EQ(type_text(type), text);
}

// But for the attributes of constraints, which only relay/text knows.
TEST_F(TypeText, MessagesWriteTheSame) {
  for (const auto& [type, text] : types_and_texts()) {
    if (text.find("softmax") != std::string::npos) continue;
    EXPECT_EQ(to_string(type), text);
  }
  const Type constraint = relation("nn.softmax", {kA, kA}, softmax_attrs());
  EXPECT_EQ(to_string(make_func_type({}, kA, {}, {constraint})), "fn () -> A where [nn.softmax(A, ...) -> A]");
}

TEST_F(TypeText, ADataTypeIsItsDefinition) {
  const TypeData box = make_object<TypeDataNode>();
  box->header = make_global_type_var("Box");
  box->type_vars = {kA};
  for (const auto& [name, inputs] : {std::pair{"Put", Array<Type>{kA, make_ref_type(kA)}}, {"Empty", {}}}) {
    const Constructor constructor = make_object<ConstructorNode>();
    constructor->name_hint = name;
    constructor->inputs = inputs;
    box->constructors.push_back(constructor);
  }
  EXPECT_EQ(type_text(box), "type Box[A] {\n  Put(A, ref(A)),\n  Empty,\n}\n");
}

TEST_F(TypeText, DeepTypesReadBack) {
  Type type = make_scalar_type(DataType::int_(32));
  for (int i = 0; i < 100000; ++i) type = make_tuple_type({type});
  const std::string text = type_text(type);
  EXPECT_EQ(text.size(), 100000U * 3 + 5);
  EXPECT_EQ(to_string(type), text);
  EXPECT_EQ(type_text(read_type(text)), text);
}

TEST_F(TypeText, TypesWithoutTextAreErrors) {
  Type wide = kA;
  for (int i = 0; i < 100; ++i) wide = make_tuple_type({wide, wide});
  const auto two_results = make_object<TypeRelationNode>(*relation("add", {kA, kA, kA}).as<TypeRelationNode>());
  two_results->num_inputs = 1;
  const std::tuple<Type, std::string, std::string> cases[] = {
      {make_tuple_type({Type()}), "a part of a type is missing", "(<unknown>,)"},
      {make_tensor_type(Array<PrimExpr>{PrimExpr()}), "a dimension is missing", "Tensor[(<null>), float32]"},
      {make_global_type_var("a b"), "the name \"a b\" of a type or constructor cannot be written as text; rename it",
       "a b"},
      {make_type_var("fn"), "the name \"fn\" of a type or constructor cannot be written as text; rename it", "fn"},
      {make_tensor_type(Array<PrimExpr>{make_load(make_buffer("b", kIndexType, {make_int(1)}), {make_int(0)})}),
       "a dimension cannot hold a tir.BufferLoad in the text form", "Tensor[(b[0]), float32]"},
      {two_results, "a constraint has one result; add relates 3 types and has 1 inputs", "add(...)"},
      {wide, "a type of more than 2^22 parts has no text form", "(((("},
  };
  for (const auto& [type, error, message] : cases) {
    EXPECT_EQ(kit::user_error_of([&] { type_text(type); }), error);
    EXPECT_THAT(to_string(type).substr(0, 100), HasSubstr(message));
  }
  TypeNames names;
  std::string out;
  EXPECT_EQ(kit::user_error_of([&] { print_type(out, relation("nn.softmax", {kA, kA}, softmax_attrs()), names); }),
            "a constraint with attributes, nn.softmax, has no text form here");
}

TEST_F(TypeText, MalformedConstraintsSayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"fn (A) -> A where add(A)", "expected '[' after where"},
      {"fn (A) -> A where [3(A) -> A]", "expected an op's name, found '3'"},
      {"fn (A) -> A where [addd(A, A) -> A]", "there is no op 'addd'; did you mean add?"},
      {"fn (A) -> A where [add A]", "expected '(' after the op of a constraint, found 'A'"},
      {"fn (A) -> A where [add(A, A]", "expected ')' after the types of a constraint, found ']'"},
      {"fn (A) -> A where [add(A, A)]", "expected '->' before what the op of a constraint gives, found ']'"},
      {"fn (A) -> A where [add(A, A) -> A", "expected ']' after constraints"},
      {"fn (A) -> A where [nn.softmax(axis=0, A) -> A]", "types come before attributes"},
      {"fn (A) -> A where [nn.softmax(A, axes=0) -> A]", "'nn.softmax' has no attribute 'axes'; did you mean axis?"},
  };
  for (const auto& [text, error] : cases) EXPECT_THAT(kit::user_error_of([&] { read_type(text); }), HasSubstr(error));
}

// Function types with a constraint are equal up to the names of their parameters if the constraints are.
TEST_F(TypeText, ConstraintsCountInEqualityHashAndJson) {
  const auto function = [](const std::string& op, Attrs attrs) {
    const TypeVar c = make_type_var("C");
    return Type(make_func_type({c}, c, {c}, {relation(op, {c, c}, attrs)}));
  };
  const Type one = function("nn.softmax", softmax_attrs());
  for (const auto& [other, is_same] :
       {std::pair{function("nn.softmax", softmax_attrs()), true},
        std::pair{function("nn.log_softmax", softmax_attrs()), false}, std::pair{function("nn.softmax", {}), false}}) {
    EXPECT_EQ(structural_equal(Value(one), Value(other)), is_same);
    EXPECT_EQ(structural_hash(Value(one)) == structural_hash(Value(other)), is_same);
  }
  EXPECT_TRUE(structural_equal(load_json(save_json(Value(one))), Value(one)));
}

}  // namespace
}  // namespace headrace::relay
