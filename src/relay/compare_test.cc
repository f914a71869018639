// Structural equality and hash of programs, as in Relay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "relay/expr.h"
#include "relay/function_attrs.h"

namespace headrace::relay {
namespace {

bool are_equal(const Expr& a, const Expr& b) {
  const bool equal = structural_equal(Value(a), Value(b), {.map_free_vars = true});
  EXPECT_EQ(structural_equal(Value(b), Value(a), {.map_free_vars = true}), equal);
  if (equal) {
    EXPECT_EQ(structural_hash(Value(a), {.map_free_vars = true}), structural_hash(Value(b), {.map_free_vars = true}));
  }
  return equal;
}

// A node of a graph is a value that is computed once: using one twice is another program than computing it twice.
TEST(ProgramEquality, ASharedNodeIsNotTwoEqualNodes) {
  const Var x = make_var("x");
  const auto pair_of = [&](auto make) {
    const Expr once = make();
    return std::pair(make_tuple({once, once}), make_tuple({make(), make()}));
  };
  const std::vector<std::function<Expr()>> nodes = {
      [&] { return Expr(make_tuple({x})); }, [&] { return Expr(make_tuple_get_item(x, 0)); },
      [&] { return make_ref_create(x); },    [&] { return make_if(x, x, x); },
      [&] { return make_function({}, x); },  [&] { return make_call(Expr(x), Array<Expr>{}); }};
  for (const auto& make : nodes) {
    const auto [shared, apart] = pair_of(make);
    EXPECT_FALSE(are_equal(shared, apart)) << make()->key();
    EXPECT_TRUE(are_equal(shared, pair_of(make).first)) << make()->key();
    EXPECT_TRUE(are_equal(apart, pair_of(make).second)) << make()->key();
  }
  const auto mismatch =
      first_mismatch(Value(pair_of(nodes[0]).first), Value(pair_of(nodes[0]).second), {.map_free_vars = true});
  ASSERT_TRUE(mismatch);
  EXPECT_THAT(mismatch->reason, testing::HasSubstr("sharing differs"));
}

// Constants, names and the empty tuple are not computed.
TEST(ProgramEquality, ConstantsMayBeSharedOrNot) {
  const std::vector<std::function<Expr()>> nodes = {[] { return make_tuple({}); }, [] { return Expr(make_scalar(2)); },
                                                    [] { return Expr(make_global_var("f")); }};
  for (const auto& make : nodes) {
    const Expr once = make();
    EXPECT_TRUE(are_equal(make_tuple({once, once}), make_tuple({make(), make()}))) << once->key();
  }
  EXPECT_FALSE(are_equal(make_tuple({}), make_tuple({make_tuple({})})));
}

TEST(ProgramEquality, ATypeThatIsNotWrittenIsOneToBeInferred) {
  const Var plain = make_var("x"), open = make_var("x", make_incomplete_type()),
            kind = make_var("x", make_incomplete_type(TypeKind::shape)),
            known = make_var("x", make_scalar_type(DataType::float_(32)));
  EXPECT_TRUE(are_equal(plain, open));
  EXPECT_FALSE(are_equal(plain, known));
  EXPECT_FALSE(are_equal(plain, kind));
  EXPECT_TRUE(are_equal(make_function({plain}, plain), make_function({open}, open)));
  EXPECT_TRUE(are_equal(make_function({plain}, plain), make_function({plain}, plain, make_incomplete_type())));
  EXPECT_FALSE(are_equal(make_function({plain}, plain), make_function({plain}, plain, known->type_annotation)));
  EXPECT_TRUE(are_equal(make_let(plain, make_tuple({}), plain), make_let(open, make_tuple({}), open)));
}

TEST(ProgramEquality, IntImmIsTheIntegerAsAnAttribute) {
  const auto with = [](Value value) {
    return make_function({}, make_tuple({}), {}, {}, DictAttrs{{kPrimitive, std::move(value)}});
  };
  for (const DataType dtype : {DataType::int_(32), DataType::int_(64)}) {
    EXPECT_TRUE(are_equal(with(Value(make_int(1, dtype))), with(Value(int64_t{1}))));
    EXPECT_FALSE(are_equal(with(Value(make_int(2, dtype))), with(Value(int64_t{1}))));
    EXPECT_TRUE(is_primitive(with(Value(make_int(1, dtype)))));
    EXPECT_FALSE(is_primitive(with(Value(make_int(0, dtype)))));
  }
  EXPECT_TRUE(are_equal(with(Value(make_bool(true))), with(Value(true))));
  EXPECT_TRUE(are_equal(with(Value(Array<Value>{Value(make_int(3)), Value(Array<Value>{Value(make_float(0.5))})})),
                        with(Value(Array<Value>{Value(int64_t{3}), Value(Array<Value>{Value(0.5)})}))));
  const ObjectRef made = make_node("relay.Function", {{"params", Value(Array<Var>{})},
                                                      {"body", Value(make_tuple({}))},
                                                      {"type_params", Value(Array<TypeVar>{})},
                                                      {"attrs", Value(DictAttrs{{kPrimitive, Value(make_int(1))}})}});
  EXPECT_TRUE(is_primitive(made.cast<FunctionNode>()));
}

// Attributes are listed before the parameters, which they may mention.
TEST(ProgramEquality, AnAttributeMayMentionAParameter) {
  const auto with = [](size_t mentioned, int64_t number) {
    const Array<Var> params{make_var("x"), make_var("y")};
    const auto map = make_object<MapObj>();
    map->set(Value(params[mentioned]), Value(number));
    return make_function(params, params[0], {}, {}, DictAttrs{{"dict", Value(map)}});
  };
  const auto equal = [](const Expr& a, const Expr& b) { return structural_equal(Value(a), Value(b)); };
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(equal(with(i, 1), with(i, 1)));
    EXPECT_TRUE(are_equal(with(i, 1), with(i, 1)));
    EXPECT_EQ(structural_hash(Value(with(i, 1))), structural_hash(Value(with(i, 1))));
    EXPECT_FALSE(equal(with(i, 1), with(i, 2)));
    EXPECT_FALSE(equal(with(i, 1), with(1 - i, 1)));
    EXPECT_NE(structural_hash(Value(with(i, 1))), structural_hash(Value(with(1 - i, 1))));
  }
}

}  // namespace
}  // namespace headrace::relay
