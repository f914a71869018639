// The text forms that Relay's parser takes, beside those that the printer writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text_names.h"
#include "kit/errors.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;

std::string forms_error(const std::string& body) {
  return kit::user_error_of([&] { parse_expr("free_var %x: float32; " + body); });
}

Expr relay_int(double value, DataType dtype) { return make_scalar(value, dtype); }

bool reads_as(const std::string& text, const Expr& expected) {
  const Expr read = parse_expr(text);
  const Expr again = parse_expr(print_expr(read));
  const StructuralOptions options{.map_free_vars = true};
  return structural_equal(Value(read), Value(expected), options) &&
         structural_equal(Value(again), Value(read), options);
}

// Forms that Relay's parser accepts, and the programs that they mean.
TEST(FormsOfRelay, AnExpressionBeforeASemicolonIsALetOfNoUse) {
  const Expr unit = make_tuple({}), one = relay_int(1, DataType::int_(32));
  const auto sequence = [](Expr first, Expr rest) { return Expr(make_let(make_var("_"), first, rest)); };
  EXPECT_TRUE(reads_as("(); ()", sequence(unit, unit)));
  EXPECT_TRUE(reads_as("1; (); 1", sequence(one, sequence(unit, one))));
  EXPECT_TRUE(reads_as("let %x = 1; (); %x", [&] {
    const Var x = make_var("x");
    return Expr(make_let(x, one, sequence(unit, x)));
  }()));
  EXPECT_TRUE(reads_as("if (True) { (); 1 } else { 1 }", make_if(parse_expr("True"), sequence(unit, one), one)));
  const IRModule module =
      parse_module("#[version = \"0.0.5\"]\ndef @main(%x: float32) { %0 = ref(%x); ref_write(%0, 1f); ref_read(%0) }");
  const auto* let = module->lookup("main").as<FunctionNode>()->body.as<LetNode>();
  ASSERT_NE(let, nullptr);
  EXPECT_TRUE(let->value.is<RefWriteNode>());
  EXPECT_THAT(forms_error("%x; "), HasSubstr("expected an expression"));
  EXPECT_THAT(forms_error("%x; %nope"), HasSubstr("%nope is not defined here"));
}

TEST(FormsOfRelay, TuplesAndSharedEmptyTuples) {
  const Expr unit = make_tuple({}), one = relay_int(1, DataType::int_(32));
  EXPECT_TRUE(reads_as("()", unit));
  EXPECT_TRUE(reads_as("(1,)", make_tuple({one})));
  EXPECT_TRUE(reads_as("(1)", one));
  EXPECT_TRUE(reads_as("%0 = (); %1 = 1; (%0, %0, %1)", make_tuple({unit, unit, one})));
  EXPECT_TRUE(reads_as("%1 = (); %1", unit));
}

TEST(FormsOfRelay, IntegersAsRelayReadsThem) {
  const DataType i32 = DataType::int_(32), i64 = DataType::int_(64);
  EXPECT_TRUE(reads_as("2147483647", relay_int(2147483647, i32)));
  EXPECT_TRUE(reads_as("2147483648", relay_int(2147483648, i64)));
  EXPECT_TRUE(reads_as("-2147483648", relay_int(-2147483648, i32)));
  EXPECT_TRUE(reads_as("-2147483649", relay_int(-2147483649, i64)));
  EXPECT_TRUE(reads_as("-05", relay_int(-5, i32)));
  EXPECT_TRUE(reads_as("-42i", relay_int(-42, i32)));
  EXPECT_TRUE(reads_as("--10", relay_int(10, i32)));
  EXPECT_TRUE(reads_as("---10", relay_int(-10, i32)));
  EXPECT_TRUE(reads_as("1u1", parse_expr("True")));
  EXPECT_TRUE(reads_as("const(Tensor[(2), uint1], [0, 1])", parse_expr("const(Tensor[(2), bool], [False, True])")));
  EXPECT_THAT(forms_error("2147483648i32"), HasSubstr("2147483648 does not fit int32"));
  EXPECT_THAT(forms_error("32768i16"), HasSubstr("32768 does not fit int16"));
  EXPECT_THAT(forms_error("9223372036854775808"), HasSubstr("9223372036854775808 does not fit int64"));
  EXPECT_THAT(forms_error("2u1"), HasSubstr("2 does not fit bool (0 to 1)"));
  EXPECT_THAT(forms_error("const(Tensor[(1), bool], [3])"), HasSubstr("3 does not fit bool"));
  EXPECT_THAT(forms_error("3.40283e+38f32"), HasSubstr("does not fit float32"));
}

TEST(FormsOfRelay, MetaOfOtherNodes) {
  const PrimVar n = make_prim_var("n");
  const Expr x = make_var("x");
  const ParseOptions options{.meta_nodes = {{"tir.SizeVar", Array<ObjectRef>{n}}, {"relay.Tuple", {make_tuple({x})}}}};
  const Expr read = parse_expr(
      "fn (%a: Tensor[(meta[tir.SizeVar][0], 2), int8], note=meta[relay.Tuple][0]) "
      "{ meta[relay.Tuple][0] }",
      "meta", options);
  const auto* function = read.as<FunctionNode>();
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->params[0]->type_annotation.as<TensorTypeNode>()->shape[0], n);
  EXPECT_TRUE(function->body.is<TupleNode>());
  EXPECT_EQ(function->attrs.at("note").as<Expr>(), function->body);
  const std::string text = print_expr(make_function({}, make_tuple({}), {}, {}, {{"note", Value(make_tuple({}))}}));
  EXPECT_EQ(text,
            "#[version = \"0.0.5\"]\nfn (note=meta[relay.Tuple][0]) {\n  ()\n}\n\n#[metadata]\n{\n  \"version\": 1,\n"
            "  \"relay.Tuple\": [\n    " +
                in_quotes(save_json(Value(make_tuple({})))) + "\n  ]\n}\n");
  const Expr again = parse_expr(text);
  EXPECT_TRUE(again.as<FunctionNode>()->attrs.at("note").as<Expr>().is<TupleNode>());
  EXPECT_EQ(print_expr(again), text);
  EXPECT_THAT(forms_error("meta[relay.Tuple][1]"), HasSubstr("there is no relay.Tuple 1: the text has 0"));
  const std::string head = "#[metadata]\n{\"version\": 1, \"relay.Tuple\": ";
  EXPECT_THAT(kit::user_error_of([&] { parse_expr("meta[relay.Tuple][0] " + head + "[1]}"); }),
              HasSubstr("\"relay.Tuple\" of the metadata is a list of JSON texts"));
  EXPECT_THAT(kit::user_error_of([&] { parse_expr("meta[relay.Tuple][0] " + head + "[\"{\"]}"); }),
              HasSubstr("\"relay.Tuple\" of the metadata: "));
  EXPECT_THAT(kit::user_error_of([&] { parse_expr("meta[tir.SizeVar][0]", "meta", options); }),
              HasSubstr("a tir.Var is not an expression"));
  EXPECT_THAT(
      kit::user_error_of([&] { parse_expr("fn (%a: Tensor[(meta[relay.Tuple][0]), int8]) { 1 }", "meta", options); }),
      HasSubstr("the node is not a dimension"));
}

TEST(FormsOfRelay, TypesOfConstants) {
  const Expr one = relay_int(1, DataType::int_(32));
  const Expr typed = infer_type(Expr(make_tuple({one, one})));
  EXPECT_EQ(print_expr(typed, {.show_types = true}),
            "#[version = \"0.0.5\"]\n(1 /* ty=int32 */, 1 /* ty=int32 */) /* ty=(int32, int32) */\n");
}

}  // namespace
}  // namespace headrace::relay
