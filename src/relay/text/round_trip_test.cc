// Tests that printed programs read back as equal: types that share parts, types to be inferred, extern types,
// constructors of one name, data types of several lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "ops/tensor/broadcast.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;

class RoundTrip : public testing::Test {
 protected:
  void SetUp() override { ops::register_all_ops(); }
};

constexpr const char* kVersionHead = "#[version = \"0.0.5\"]\n";

IRModule parsed(const std::string& text) { return parse_module(kVersionHead + text, "t.relay"); }

std::string error_in(const std::string& text) {
  return kit::user_error_of([&] { parsed(text); });
}

// Compares the module with what its text and its JSON give, hash included. Another text may give other names to shared
// parts.
void expect_reads_back(const IRModule& module) {
  const std::string text = print_module(module);
  SCOPED_TRACE(text);
  const IRModule back = parse_module(text);
  const auto mismatch = first_mismatch(Value(module), Value(back));
  EXPECT_FALSE(mismatch) << (mismatch ? mismatch->path + ": " + mismatch->reason : "");
  EXPECT_EQ(structural_hash(Value(module)), structural_hash(Value(back)));
  EXPECT_TRUE(structural_equal(Value(parse_module(print_module(back))), Value(module)));
  EXPECT_TRUE(structural_equal(load_json(save_json(Value(module))), Value(back)));
}

IRModule with_parameters(Array<Type> types) {
  Array<Var> params;
  for (const Type& type : types) params.push_back(make_var("x", type));
  return make_module(make_function(params, make_tuple({})));
}

TEST_F(RoundTrip, AFunctionTypeThatStandsTwice) {
  const TypeVar c = make_type_var("C"), other = make_type_var("C"), shape = make_type_var("S", TypeKind::shape_var);
  const PrimVar n = make_prim_var("n");
  const Type generic = make_func_type({c}, c, {c}), sized = make_func_type({make_tensor_type({n})}, c, {c, shape});
  const Type another = make_func_type({other}, other, {other});
  const Type over = make_func_type({generic, shape}, make_tuple_type({generic, another}), {shape});
  expect_reads_back(with_parameters({make_tuple_type({generic, generic})}));
  expect_reads_back(with_parameters({make_tuple_type({sized, generic, sized}), make_tensor_type({n})}));
  expect_reads_back(with_parameters({generic, another, make_ref_type(generic)}));
  expect_reads_back(with_parameters({over, generic, over}));
  // Within one that has its parameter, and in another function of the module.
  const Type nested = make_func_type({generic, c}, make_tuple_type({c, generic}), {c});
  IRModule module = with_parameters({nested, generic});
  module->add_function(make_global_var("other"), make_function({make_var("x", nested)}, make_tuple({})));
  expect_reads_back(module);
  const Var y = make_var("y", c);
  const Function identity = make_function({y}, y, c, {c});
  expect_reads_back(make_module(make_function({make_var("f", generic)}, make_tuple({identity}))));
}

TEST_F(RoundTrip, AnAttributeMentionsAParameter) {
  const Var x = make_var("x", make_tensor_type({make_int(2)})), y = make_var("1", x->type_annotation);
  const auto map = make_object<MapObj>();
  map->set(Value(x), Value(int64_t{1}));
  map->set(Value(std::string("list")), Value(Array<Value>{Value(y), Value(int64_t{2})}));
  const IRModule module = make_module(make_function({x, y}, y, {}, {}, DictAttrs{{"dict", Value(map)}}));
  EXPECT_THAT(print_module(module), testing::HasSubstr("dict={%x: 1, \"list\": [%\"1\", 2]})"));
  expect_reads_back(module);
  const IRModule in_list = parsed("def @main(%x, k=[%x]) { %x }");
  const auto* read = in_list->lookup("main").as<FunctionNode>();
  EXPECT_EQ(read->attrs.at("k").as<Array<Value>>()[0].object(), read->params[0].object());
  EXPECT_THAT(error_in("def @main(%x) { let %y = %x; fn (%z, k=%y) { %z } }"),
              testing::HasSubstr("%y is not a parameter of the function that has this attribute"));
  EXPECT_THAT(error_in("def @main(%x) { split(%x, axis=%x) }"), testing::HasSubstr("expected a dimension"));
  EXPECT_THAT(error_in("def @f(%z, k=[%z, %y]) { %z }\ndef @main(%x) { split(%x, axis=%x) }"),
              testing::AllOf(testing::HasSubstr("%y is not a parameter"), testing::HasSubstr("expected a dimension")));
}

// Inference writes the types of functions, which have the functions' own type parameters, where none are written.
TEST_F(RoundTrip, TypesThatInferenceWrote) {
  for (const char* text : {
           "def @main() { (fn (%f) { %f })(fn [A](%y: A) -> A { %y }) }",
           "def @main() { (fn (%f) { %f })(@id) }\ndef @id[A](%y: A) -> A { %y }",
           "def @main() { let %g = fn [A](%y: A) -> A { %y }; (fn (%f) { (%f, %f) })(%g) }",
           "def @main() { let %r = ref(fn [A](%y: A) -> A { %y }); (fn (%s) { ref_read(%s) })(%r) }",
       })
    expect_reads_back(infer_type(parsed(text)));
}

TEST_F(RoundTrip, TypeParametersAreToldApart) {
  const auto type_of = [](const std::string& text) {
    return Value(
        parsed("def @main(%x: " + text + ") { () }")->lookup("main").as<FunctionNode>()->params[0]->type_annotation);
  };
  // One type under two names, and a different type.
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"fn [A, B](A, B) -> A", "fn [C, D](C, D) -> C", "fn [A, B](A, B) -> B"},
      {"fn [A](fn [B](A, B) -> B) -> A", "fn [B](fn [A](B, A) -> A) -> B", "fn [A](fn [B](B, A) -> B) -> A"},
      {"fn [A](fn [A](A) -> A, A) -> A", "fn [A](fn [B](B) -> B, A) -> A", "fn [A](fn [B](A) -> A, A) -> A"},
      {"(fn [A](A) -> A, fn [A](A) -> A)", "(fn [A](A) -> A, fn [B](B) -> B)", "(fn [A](A) -> A, fn [A](A) -> ())"},
  };
  for (const auto& [text, same, other] : cases) {
    const Value one = type_of(text);
    EXPECT_TRUE(structural_equal(one, type_of(same))) << text;
    EXPECT_EQ(structural_hash(one), structural_hash(type_of(same))) << text;
    EXPECT_FALSE(structural_equal(one, type_of(other))) << text;
    EXPECT_FALSE(structural_equal(type_of(other), one)) << text;
  }
  // One parameter corresponds to itself behind the type that binds it, and another does not.
  const TypeVar a = make_type_var("A"), b = make_type_var("B");
  const auto pair_of = [](const TypeVar& param, const Type& last) {
    return Value(make_tuple_type({make_func_type({param}, param, {param}), last}));
  };
  EXPECT_FALSE(structural_equal(pair_of(a, b), pair_of(b, a)));
  EXPECT_FALSE(structural_equal(Value(make_tuple_type({a, make_func_type({a}, a, {a})})),
                                Value(make_tuple_type({a, make_func_type({b}, b, {b})}))));
}

// Shared types are compared once where the same parameters correspond, whatever others are bound in between: as trees
// these types have 2^60 parts. One side has one parameter everywhere, the other one for each type.
TEST_F(RoundTrip, SharedTypesAreComparedOnce) {
  for (const bool is_open : {false, true}) {
    const TypeVar c = make_type_var("C"), z = make_type_var("Z"), y = make_type_var("Y");
    Type left = is_open ? z : c, right = is_open ? y : c;
    if (!is_open) left = right = make_scalar_type(DataType::bool_());
    Type other_right = right;
    for (int i = 0; i < 60; ++i) {
      const TypeVar d = make_type_var("D"), e = make_type_var("E");
      const Type wrapped = make_func_type({left, c}, c, {c});
      left = make_func_type({left, wrapped, c}, left, {c});
      const Type next = make_func_type({right, make_func_type({other_right, d}, d, {d}), e}, other_right, {e});
      other_right = make_func_type({other_right, make_func_type({right, e}, e, {e}), d}, right, {d});
      right = next;
    }
    const Value one(make_func_type({z}, left, {z})), two(make_func_type({y}, right, {y}));
    EXPECT_TRUE(structural_equal(one, two));
    EXPECT_TRUE(structural_equal(two, one));
    EXPECT_EQ(structural_hash(one), structural_hash(two));
  }
}

// Under a parameter of its name, a function's type has another one.
TEST_F(RoundTrip, AnInnerTypeParameterHidesTheOuter) {
  const IRModule module =
      parsed("def @main[A](%f: fn [A](A) -> A, %g: fn [B](fn [B](B) -> B, B) -> B, %h: fn [B](B) -> A) { () }");
  const std::string text = print_module(module);
  EXPECT_THAT(text, HasSubstr("def @main[A](%f: fn [A_1](A_1) -> A_1, "
                              "%g: fn [B](fn [B_1](B_1) -> B_1, B) -> B, %h: fn [B_2](B_2) -> A)"));
  expect_reads_back(module);
}

TEST_F(RoundTrip, TwoReadingsOfUnknownTypesAreEqual) {
  const std::string text =
      "type Box[A] {\n  Put(A),\n}\n\n"
      "def @main(%x: _, %y: (_, Box[_])) -> _ {\n"
      "  let %z: _ = @id[_](%x);\n"
      "  let %f = fn (%a) -> (_, fn (_) -> _) {\n    (%a, nn.relu)\n  };\n"
      "  let %b: ref(_) = ref(%z);\n"
      "  %f(%y)\n"
      "}\n\n"
      "def @id[A](%x: A) -> _ {\n  %x\n}\n";
  const Value one(parsed(text)), two(parsed(text));
  EXPECT_TRUE(structural_equal(one, two));
  EXPECT_EQ(structural_hash(one), structural_hash(two));
  expect_reads_back(parsed(text));
  const Type unknown = make_incomplete_type();
  EXPECT_TRUE(structural_equal(Value(unknown), Value(make_incomplete_type())));
  EXPECT_FALSE(structural_equal(Value(unknown), Value(make_incomplete_type(TypeKind::shape_var))));
  EXPECT_FALSE(structural_equal(Value(unknown), Value(make_scalar_type(DataType::bool_()))));
  EXPECT_FALSE(structural_equal(one, Value(parsed("def @main(%x: _, %y: _) { %y }"))));
}

constexpr const char* kStorage =
    "extern type Storage\n\n"
    "extern type Table[A, B]\n\n"
    "type Either {\n  One(Storage),\n  Two(Table[int32, Storage]),\n}\n\n"
    "def @main(%s: Storage, %t: Table[int32, Storage]) -> (Either, Storage) {\n"
    "  %0 = One(%s);\n"
    "  (%0, %s)\n"
    "}\n";

TEST_F(RoundTrip, ExternTypes) {
  const IRModule module = parsed(kStorage);
  EXPECT_EQ(print_module(module), std::string(kVersionHead) + kStorage);
  expect_reads_back(module);
  expect_reads_back(infer_type(module));
  EXPECT_EQ(to_string(infer_type(module)->lookup("main")->checked_type()),
            "fn (Storage, Table[int32, Storage]) -> (Either, Storage)");
  // One without constructors is the same, however it is written.
  EXPECT_EQ(print_module(parsed("type Never { }\nextern type Other;\ndef @f() { () }")),
            std::string(kVersionHead) + "extern type Never\n\nextern type Other\n\ndef @f() {\n  ()\n}\n");
  EXPECT_EQ(print_module(parsed("extern type A")), std::string(kVersionHead) + "extern type A\n\n");
}

TEST_F(RoundTrip, AnExternTypeIsNotMatched) {
  for (const std::string clauses : {"match (%s) { _ => { 1 }, }", "match? (%s) { %y => { 1 }, }"}) {
    const IRModule module = parsed(fmt::format("extern type Storage\ndef @main(%s: Storage) {{ {} }}", clauses));
    EXPECT_EQ(kit::user_error_of([&] { infer_type(module); }),
              "a value of Storage cannot be matched: the type is extern, it has no constructors\n"
              "  at: match\n  in: t.relay:3:26\n    def @main(%s: Storage) { " +
                  clauses + " }\n" + std::string(29, ' ') + std::string(clauses.size(), '^'));
  }
  const IRModule module = parsed("extern type T[A]\ndef @main(%t: T[int32]) { match (%t) { _ => { 1 }, } }");
  EXPECT_THAT(kit::user_error_of([&] { infer_type(module); }), HasSubstr("a value of T[int32] cannot be matched"));
  // A type that holds an extern type is not matched either.
  infer_type(parsed("extern type T\ndef @main(%t: (T, int32)) { match (%t) { (_, %n) => { %n }, } }"));
}

TEST_F(RoundTrip, ExternTypesThatAreNone) {
  EXPECT_THAT(error_in("extern type A { X }"), HasSubstr("an extern type has no constructors"));
  EXPECT_THAT(error_in("extern def @f() { () }"), HasSubstr("expected type and its name after extern"));
  EXPECT_THAT(error_in("extern type"), HasSubstr("expected type and its name after extern"));
  EXPECT_THAT(error_in("extern type A\ntype A { X }"), HasSubstr("the type 'A' is defined twice"));
  EXPECT_EQ(error_in("extern type A[3]"),
            "t.relay:2:15: expected a type variable, found '3'\n  extern type A[3]\n                ^");
  EXPECT_THAT(error_in("extern type A\ndef @f(%x: A[) { () }\nextern type B\ndef @g() { %q }"),
              AllOf(HasSubstr("expected a type, found ')'"), HasSubstr("%q is not defined here")));
}

constexpr const char* kConstructors =
    "type A {\n  X(int32),\n  Y,\n  Z,\n}\n\n"
    "type B {\n  X(A),\n  Y,\n}\n\n"
    "type Sum {\n  add(A),\n}\n\n"
    "def @main(%a: A) -> (B, A, A, Sum, int32, fn (A) -> B, fn () -> A) {\n"
    "  %0 = B::X(%a);\n"
    "  %1 = A::Y;\n"
    "  %2 = Z;\n"
    "  %3 = Sum::add(%a);\n"
    "  %4 = match (%3) {\n"
    "    Sum::add(A::X(_)) => {\n      add(1, 2)\n    },\n"
    "    Sum::add(A::Y) => {\n      1\n    },\n"
    "    Sum::add(Z) => {\n      2\n    },\n"
    "  };\n"
    "  (%0, %1, %2, %3, %4, B::X, &A::Y)\n"
    "}\n";

TEST_F(RoundTrip, ConstructorsOfOneNameSayTheirType) {
  const IRModule module = parsed(kConstructors);
  EXPECT_EQ(print_module(module), std::string(kVersionHead) + kConstructors);
  expect_reads_back(module);
  expect_reads_back(infer_type(module));
  // A type may always be said.
  EXPECT_EQ(print_module(parsed("type A { X, }\ndef @f() { A::X }")),
            print_module(parsed("type A { X, }\ndef @f() { X }")));
}

TEST_F(RoundTrip, ConstructorsThatAreNotTold) {
  const std::string types = "type A { X }\ntype B { X }\n";
  EXPECT_THAT(error_in(types + "def @f() { X }"), HasSubstr("'X' is a constructor of A and of B; write A::X or B::X"));
  EXPECT_THAT(error_in(types + "def @f() { &X }"), HasSubstr("write A::X or B::X"));
  EXPECT_THAT(error_in(types + "def @f(%a: A) { match (%a) { X => { 1 } } }"), HasSubstr("write A::X or B::X"));
  EXPECT_THAT(error_in(types + "def @f() { A::Y }"), HasSubstr("the type 'A' has no constructor 'Y'"));
  EXPECT_THAT(error_in(types + "def @f() { C::X }"), HasSubstr("the type 'C' has no constructor 'X'"));
  EXPECT_THAT(error_in(types + "def @f() { A:: }"), HasSubstr("the type 'A' has no constructor '}'"));
}

// As the types of scalars, which have them anyway.
TEST_F(RoundTrip, DataTypesOfSeveralLanes) {
  const NDArray data = NDArray::from_bytes({2}, DataType::int_(8).with_lanes(4), std::vector<std::byte>(8));
  const Var x = make_var("x", make_tensor_type(Shape{2}, DataType::int_(32).with_lanes(4)));
  const Expr body = make_tuple({x, make_constant(data), make_var("free")});
  const Function function = make_function({x, body.as<TupleNode>()->items[2].cast<VarNode>()}, body);
  expect_reads_back(make_module(function));
  EXPECT_THAT(print_module(make_module(function)), HasSubstr("%x: Tensor[(2), int32x4]"));
  EXPECT_EQ(to_string(parsed("def @main(%x: Tensor[(2), int32x4]) { %x }")
                          ->lookup("main")
                          .as<FunctionNode>()
                          ->params[0]
                          ->type_annotation),
            "Tensor[(2), int32x4]");
  EXPECT_THAT(error_in("def @main() { const(Tensor[(1), int32x2], [1]) }"),
              HasSubstr("a constant has a tensor type with integer dimensions and a dtype of numbers"));
}

}  // namespace
}  // namespace headrace::relay
