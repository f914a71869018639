// Print and parse: goldens of every node kind, exactness of constants, errors, size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "kit/errors.h"
#include "kit/options.h"
#include "object/function.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;

struct TextTestAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.TextTestAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<TextTestAttrs>& f) {
    f.field<&TextTestAttrs::padding>("padding", {.default_value = Value(Shape{0, 0}), .has_default = true})
        .field<&TextTestAttrs::shape>("shape", {.default_value = Value(Array<PrimExpr>()), .has_default = true})
        .field<&TextTestAttrs::scale>("scale", {.default_value = Value(1.0), .has_default = true})
        .field<&TextTestAttrs::layout>("layout", {.default_value = Value("NCHW"), .has_default = true})
        .field<&TextTestAttrs::out_dtype>("out_dtype", {.optional = true})
        .field<&TextTestAttrs::axis>("axis", {.optional = true})
        .field<&TextTestAttrs::flag>("flag", {.default_value = Value(false), .has_default = true});
  }
  Shape padding{0, 0};
  Array<PrimExpr> shape;
  double scale = 1.0;
  std::string layout = "NCHW";
  std::optional<DataType> out_dtype;
  std::optional<int64_t> axis;
  bool flag = false;
};

struct OtherTestAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.OtherTestAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<OtherTestAttrs>& f) { f.field<&OtherTestAttrs::n>("n"); }
  int64_t n = 0;
};

// An op of this test beside the real ones.
void register_test_ops() {
  static const bool once = [] {
    ops::register_all_ops();
    type_of<TextTestAttrs>();
    type_of<OtherTestAttrs>();
    register_op("test.conv")->attrs_type_key = "relay.attrs.TextTestAttrs";
    return true;
  }();
  static_cast<void>(once);
}

class Text : public testing::Test {
 protected:
  void SetUp() override { register_test_ops(); }
};

std::string reprinted(const std::string& text) { return print_module(parse_module(text, "test")); }

std::string error_of(const std::string& text) {
  try {
    parse_module(text, "bad.relay");
  } catch (const UserError& error) {
    return error.message();
  }
  return "no error";
}

std::string body_error(const std::string& body) {
  return error_of("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) {\n  " + body + "\n}\n");
}

TEST_F(Text, GoldensAreFixedPoints) {
  for (const char* name : {"nodes", "types", "constants", "attributes", "scopes"}) {
    const std::string path = fmt::format("{}/src/relay/text/tests/{}.relay", HEADRACE_SOURCE_DIR, name);
    std::ifstream file(path);
    ASSERT_TRUE(file.good()) << path;
    std::stringstream text;
    text << file.rdbuf();
    const std::string printed = reprinted(text.str());
    if (std::getenv("HEADRACE_BLESS") != nullptr) std::ofstream(path) << printed;
    EXPECT_EQ(printed, text.str()) << "update with: HEADRACE_BLESS=1 relay_text_test --gtest_filter=Text.Goldens*";
  }
}

TEST_F(Text, SugarReadsAsCalls) {
  const Expr e = parse_expr("free_var %a; free_var %b; %a + %b * 2f == -%a / (%b - 1f)");
  EXPECT_EQ(print_expr(e),
            "#[version = \"0.0.5\"]\nfree_var %a;\nfree_var %b;\n%0 = multiply(%b, 2f);\n%1 = add(%a, %0);\n"
            "%2 = negative(%a);\n%3 = subtract(%b, 1f);\n%4 = divide(%2, %3);\nequal(%1, %4)\n");
}

TEST_F(Text, TypeArguments) {
  const std::string text =
      "#[version = \"0.0.5\"]\ndef @id[A](%x: A) -> A {\n  %x\n}\n\n"
      "def @main() {\n  @id[(int32, Tensor[(2, ?), float32])](1)\n}\n";
  EXPECT_EQ(reprinted(text), text);
  const Expr expr = parse_expr("free_var %f; %f[int32, bool](1)");
  const auto* call = expr.as<CallNode>();
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(to_string(call->type_args[1]), "bool");
  EXPECT_THAT(body_error("%x[int32"), HasSubstr("after type arguments"));
  EXPECT_THAT(body_error("%x[int32] + 1"), HasSubstr("expected '('"));
}

TEST_F(Text, EveryNodeHasASpan) {
  const IRModule module = parse_module(
      "#[version = \"0.0.5\"]\ndef @main(%x: float32) {\n  let %y = (%x,);\n  if (%x) { %y } else { (1f,) }\n}\n",
      "m.relay");
  int nodes = 0;
  post_order(module->lookup("main"), [&](const Expr& e) {
    ++nodes;
    EXPECT_THAT(to_string(e->span), HasSubstr("m.relay:")) << e->key();
  });
  EXPECT_EQ(nodes, 8);
  EXPECT_EQ(to_string(module->lookup("main").as<FunctionNode>()->body->span), "m.relay:3:3");
}

TEST_F(Text, ScalarsAreExact) {
  const auto check = [](uint64_t bits, DataType dtype) {
    const NDArray data = NDArray::empty({}, dtype);
    std::memcpy(data.data<char>(), &bits, dtype.bytes());
    const std::string text = print_expr(make_constant(data));
    const Expr back = parse_expr(text);
    EXPECT_TRUE(back.as<ConstantNode>()->data.content_equal(data)) << text;
    EXPECT_EQ(print_expr(back), text);
  };
  std::mt19937_64 random(7);
  for (const DataType dtype :
       {DataType::float_(16), DataType::bfloat16(), DataType::float_(32), DataType::float_(64), DataType::int_(8),
        DataType::int_(16), DataType::int_(32), DataType::int_(64), DataType::uint(8), DataType::uint(16),
        DataType::uint(32), DataType::uint(64), DataType::int_(4), DataType::uint(4), DataType::int_(2),
        DataType::uint(2), DataType::bool_(), DataType(DataType::kFloat8E4M3Fn, 8)}) {
    // An element smaller than a byte takes one byte, which holds a number of its dtype.
    const auto element = [&](uint64_t bits) {
      if (!dtype.is_narrow_int()) return bits;
      const uint64_t past = uint64_t{1} << dtype.bits(), low = bits & (past - 1);
      return dtype.is_uint() ? low : (low ^ past / 2) - past / 2;
    };
    for (int i = 0; i < 2000; ++i) check(element(random()), dtype);
    check(0, dtype);
    check(element(~uint64_t{0}), dtype);
    check(element(uint64_t{1} << (dtype.bytes() * 8 - 1)), dtype);
  }
  for (uint64_t half = 0; half < 65536; half += 3) check(half, DataType::float_(16));
  for (const uint64_t bits :
       {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x00000001u, 0x80000000u})
    check(bits, DataType::float_(32));
}

TEST_F(Text, BigConstantsAreSharedByContent) {
  const std::vector<float> values(17, 0.5f);
  const Expr a = make_constant(NDArray::from_vector({17}, DataType::float_(32), values));
  const Expr b = make_constant(NDArray::from_vector({17}, DataType::float_(32), values));
  const Expr e = make_tuple({a, b, make_constant(NDArray::zeros({0, 40}, DataType::int_(8)))});
  const std::string text = print_expr(e);
  EXPECT_THAT(text, HasSubstr("(meta[relay.Constant][0], meta[relay.Constant][0], const(Tensor[(0, 40), int8], []))"));
  EXPECT_EQ(print_expr(parse_expr(text)), text);
  const Expr back = parse_expr(text);
  EXPECT_TRUE(back.as<TupleNode>()->items[1].as<ConstantNode>()->data.content_equal(b.as<ConstantNode>()->data));
}

TEST_F(Text, WeightsGoBesideTheText) {
  const NDArray data = NDArray::zeros({30}, DataType::float_(32));
  std::vector<NDArray> weights;
  const std::string text = print_expr(make_constant(data), {.weights = &weights});
  EXPECT_EQ(text, "#[version = \"0.0.5\"]\nmeta[relay.Constant][0]\n");
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_TRUE(parse_expr(text, "t", {.weights = &weights}).as<ConstantNode>()->data.content_equal(data));
  EXPECT_EQ(print_expr(make_constant(data), {.show_meta_data = false}), text);
  EXPECT_THROW(parse_expr(text), UserError);
  const std::string whole = print_expr(make_constant(data));
  EXPECT_THAT(kit::user_error_of([&] { parse_expr(whole, "t", {.weights = &weights}); }),
              HasSubstr("the text holds the data of its constants itself"));
}

TEST_F(Text, WeightsOfAnEarlierTextKeepTheirNumbers) {
  const Expr a = make_constant(NDArray::zeros({30}, DataType::float_(32)));
  const Expr b = make_constant(NDArray::zeros({40}, DataType::float_(32)));
  const Expr c = make_constant(NDArray::zeros({50}, DataType::float_(32)));
  std::vector<NDArray> weights;
  print_expr(make_tuple({a, b}), {.weights = &weights});
  EXPECT_THAT(print_expr(make_tuple({c, b}), {.weights = &weights}),
              HasSubstr("(meta[relay.Constant][2], meta[relay.Constant][1])"));
  EXPECT_EQ(weights.size(), 3u);
  IRModule module = make_module(make_function({}, b));
  EXPECT_THAT(print_module(module, {.weights = &weights}), HasSubstr("  meta[relay.Constant][1]\n"));
}

TEST_F(Text, SymbolsKeepTheirIdentity) {
  const IRModule module = parse_module(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(n, 3), float32], %y: Tensor[((n + 1) * 2), float32]) { %x }\n");
  const auto* function = module->lookup("main").as<FunctionNode>();
  const auto* x = function->params[0]->type_annotation.as<TensorTypeNode>();
  const auto* y = function->params[1]->type_annotation.as<TensorTypeNode>();
  const auto* product = y->shape[0].as<BinaryNode>();
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->a.as<BinaryNode>()->a, x->shape[0]);
  const PrimVar n = make_prim_var("n"), other = make_prim_var("n");
  const Var p = make_var("p", make_tensor_type({n, other})), q = make_var("p", make_tensor_type({other, n}));
  EXPECT_THAT(print_expr(make_function({p, q}, p)),
              HasSubstr("fn (%p: Tensor[(n, n_1), float32], %p_1: Tensor[(n_1, n), float32])"));
}

TEST_F(Text, ASharedNodeIsDefinedWhereAllItsUsesSeeIt) {
  const Var c = make_var("c"), x = make_var("x");
  const Expr shared = make_call("nn.relu", {x});
  const Expr e = make_if(c, make_tuple({shared}), make_tuple({shared, shared}));
  EXPECT_EQ(print_expr(e),
            "#[version = \"0.0.5\"]\nfree_var %c;\nfree_var %x;\n%0 = nn.relu(%x);\nif (%c) {\n  (%0,)\n} else {\n"
            "  (%0, %0)\n}\n");
  const Expr back = parse_expr(print_expr(e));
  const auto* second = back.as<IfNode>()->false_branch.as<TupleNode>();
  EXPECT_EQ(second->items[0], second->items[1]);
}

TEST_F(Text, TypesStandBehindWhatComputes) {
  const std::string text = R"(#[version = "0.0.5"]
type Box[A] {
  Put(A),
}

def @main(%x: Tensor[("n*/", 3), float32], %c: bool) {
  let %f = fn (%y) {
    %0 = nn.relu(%y);
    (%0, %0)
  };
  let %t = %f(%x);
  %1 = if (%c) {
    %t.0
  } else {
    %x
  };
  %2 = Put(%1);
  match (%2) {
    Put(%z) => {
      add(%z, 1f)
    },
  }
}
)";
  const IRModule typed = infer_type(parse_module(text));
  const std::string shown = print_module(typed, {.show_types = true});
  EXPECT_EQ(shown, R"(#[version = "0.0.5"]
type Box[A] {
  Put(A),
}

def @main(%x: Tensor[("n*/", 3), float32], %c: bool) {
  let %f = fn (%y: Tensor[("n*/", 3), float32]) {
    %0 = nn.relu(%y) /* ty=Tensor[("n*\x2f", 3), float32] */;
    (%0, %0) /* ty=(Tensor[("n*\x2f", 3), float32], Tensor[("n*\x2f", 3), float32]) */
  } /* ty=fn (Tensor[("n*\x2f", 3), float32]) -> (Tensor[("n*\x2f", 3), float32], Tensor[("n*\x2f", 3), float32]) */;
  let %t = %f(%x) /* ty=(Tensor[("n*\x2f", 3), float32], Tensor[("n*\x2f", 3), float32]) */;
  %1 = if (%c) {
    %t.0 /* ty=Tensor[("n*\x2f", 3), float32] */
  } else {
    %x
  } /* ty=Tensor[("n*\x2f", 3), float32] */;
  %2 = Put(%1) /* ty=Box[Tensor[("n*\x2f", 3), float32]] */;
  match (%2) {
    Put(%z) => {
      add(%z, 1f /* ty=float32 */) /* ty=Tensor[("n*\x2f", 3), float32] */
    },
  } /* ty=Tensor[("n*\x2f", 3), float32] */
}
)");
  EXPECT_TRUE(structural_equal(Value(parse_module(shown)), Value(typed)));
  // Without inference there is nothing to show.
  EXPECT_EQ(print_module(parse_module(text), {.show_types = true}), text);
  const auto* function = typed->lookup("main").as<FunctionNode>();
  EXPECT_THAT(print_expr(function->body, {.show_types = true}), HasSubstr("let %t = %f(%x) /* ty=("));
}

TEST_F(Text, LongAndDeepProgramsNeedNoStack) {
  const Var x = make_var("x");
  Expr chain = x, lets = x, nested = x, functions = x;
  for (int i = 0; i < kit::by_depth(100000); ++i) chain = make_call("nn.relu", {chain});
  for (int i = 0; i < kit::by_depth(10000); ++i) lets = make_let(make_var("v"), make_call("nn.relu", {x}), lets);
  for (int i = 0; i < kit::by_depth(10000); ++i) nested = make_if(x, nested, x);
  for (int i = 0; i < kit::by_depth(10000); ++i) functions = make_function({}, functions);
  for (const Expr& e : {chain, lets, nested, functions}) {
    const std::string text = print_expr(e);
    EXPECT_EQ(print_expr(parse_expr(text)), text);
  }
  std::string minus;
  for (int i = 0; i < kit::by_depth(100000); ++i) minus += "- ";
  EXPECT_TRUE(parse_expr("fn (%x: float32) { " + minus + "%x }").is<FunctionNode>());
  std::string parens = "1f";
  for (int i = 0; i < kit::by_depth(20000); ++i) parens = "(" + parens + ",)";
  EXPECT_TRUE(parse_expr(parens).is<TupleNode>());
  // AddressSanitizer takes 0.1 ms for each frame that an error passes: with it the text ends before the limit.
  const bool ends = kit::options().size == kit::TestSize::kFew;
  EXPECT_THAT(kit::user_error_of([&] { parse_expr(std::string(ends ? 10'000 : 2'000'000, '(')); }),
              testing::HasSubstr(ends ? "found the end of the text" : "the text nests too deeply"));
}

// The name keeps its old meaning until the new definition is complete.
TEST_F(Text, ADefinitionMayReadTheOneItReplaces) {
  EXPECT_EQ(print_expr(parse_expr("fn (%x: float32) { %0 = nn.relu(%x); %0 = (%x, %0); %0 = (%0, %0); %0 }")),
            print_expr(parse_expr("fn (%x: float32) { %0 = nn.relu(%x); %1 = (%x, %0); (%1, %1) }")));
  EXPECT_EQ(kit::user_error_of([] { parse_expr("fn (%x: float32) { %0 = (%0, 1); %0 }"); }),
            "<text>:1:26: %0 is not defined here\n"
            "  fn (%x: float32) { %0 = (%0, 1); %0 }\n"
            "                           ^^");
}

TEST_F(Text, NodesWithoutTextAreErrors) {
  EXPECT_THROW(print_expr(make_function({}, make_tuple({}), {}, {}, {{"f", Value(make_packed([] {}))}})), UserError);
  const Type relation = make_object<TypeRelationNode>();
  EXPECT_THROW(print_expr(make_var("x", relation)), UserError);
  EXPECT_THROW(print_expr(make_var("x", make_global_type_var("a b"))), UserError);
}

TEST_F(Text, AllErrorsComeAtOnce) {
  EXPECT_EQ(body_error("%0 = test.convo(%x);\n  %1 = (%y;\n  %0"),
            "bad.relay:3:8: there is no op 'test.convo'; did you mean test.conv?\n"
            "    %0 = test.convo(%x);\n"
            "         ^^^^^^^^^^\n"
            "bad.relay:4:9: %y is not defined here\n"
            "    %1 = (%y;\n"
            "          ^^\n"
            "bad.relay:4:11: expected ')' after a tuple or an expression in parentheses, found ';'\n"
            "    %1 = (%y;\n"
            "            ^");
}

TEST_F(Text, MalformedTextsSayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"%y", "%y is not defined here"},
      {"%0", "%0 is not defined here"},
      {"@f(%x)", "the module has no function '@f'"},
      {"test.con(%x)", "there is no op 'test.con'; did you mean test.conv?"},
      {"", "expected an expression, found '}'"},
      {"(%x", "expected ')' after a tuple"},
      {"(%x, ", "expected an expression, found '}'"},
      {"{ %x", "expected '}' after a block, found the end of the text"},
      {"%x %x", "expected '}' after a block, found '%x'"},
      {"%0 = %x", "expected ';' after a definition"},
      {"let x = 1; %x", "expected a variable after let, found 'x'"},
      {"let %y 1f; %x", "expected '=' after a let variable"},
      {"let %y = 1f %x", "expected ';' after a let"},
      {"if %x { %x } else { %x }", "expected '(' before a condition"},
      {"if (%x) { %x }", "expected 'else' after the true branch"},
      {"if (%x) %x else %x", "expected '{' before the true branch"},
      {"%x.y", "%x.y is not defined here"},
      {"fn (%a, %a) { %a }", "the parameter %a is declared twice"},
      {"fn [A, A](%a: A) { %a }", "the type variable A is declared twice"},
      {"match ((%x, %x)) { (%a, %a) => { %a } }", "the pattern binds %a twice"},
      {"match (((%x, %x), %x)) { ((%a, _), %a) => { %a } }", "the pattern binds %a twice"},
      {"fn (%a { %a }", "expected ')' after parameters"},
      {"fn (%a: ) { %a }", "expected a type, found ')'"},
      {"fn (%a: Foo) { %a }", "there is no type 'Foo'"},
      {"fn (%a: Tensor) { %a }", "expected '[' after Tensor"},
      {"fn (%a: Tensor[3, float32]) { %a }", "expected '(' before a tensor's dimensions"},
      {"fn (%a: Tensor[(3)]) { %a }", "expected ',' before a tensor's dtype"},
      {"fn (%a: Tensor[(3), float33]) { %a }", "'float33' is not a dtype"},
      {"fn (%a: Tensor[(-3), float32]) { %a }", "the dimension -3 is negative"},
      {"fn (%a: Tensor[(1, 9223372036854775807), float32]) { %a }",
       "the dimension 9223372036854775807 is more than any machine holds"},
      {"fn (%a: Tensor[(n / 0), float32]) { %a }", "a dimension is divided by zero"},
      {"fn (%a: Tensor[(f(n)), float32]) { %a }", "a dimension has no function 'f'"},
      {"fn (%a: Tensor[(n, n:int32), float32]) { %a }", "the symbol n has dtype int64"},
      {"fn (%a: Tensor[(n:int32 + m), float32]) { %a }", "'+' of dtypes int32 and int64"},
      {"fn (%a: Tensor[(99999999999999999999), float32]) { %a }", "does not fit int64 (-9223372036854775808 to "},
      {"fn (%a: Tensor[(min(n)), float32]) { %a }", "'min' takes 2 arguments, not 1"},
      {"fn (k=1, %a) { %a }", "parameters come before attributes"},
      {"fn (k=1, k=2) { %x }", "the attribute 'k' is given twice"},
      {"fn (k=[1, 2) { %x }", "expected ']' after a list"},
      {"fn (k={\"a\" 1}) { %x }", "expected ':' after a key"},
      {"fn (k=device(1)) { %x }", "device takes a type and an index"},
      {"nn.relu(%x, axis=1)", "'nn.relu' takes no attributes, but 'axis' is given"},
      {"test.conv(%x, paddin=[1, 1])", "'test.conv' has no attribute 'paddin'; did you mean padding?"},
      {"test.conv(%x, nothing=[1, 1])", "'test.conv' has no attribute 'nothing'; it has "},
      {"test.conv(%x, padding=\"a\")", "field 'padding'"},
      {"test.conv(%x, padding=3)", "expected shape, got int 3; write a list, such as [3, 3]"},
      {"test.conv(%x, scale=1f, scale=2f)", "the attribute 'scale' is given twice"},
      {"test.conv(scale=2f, %x)", "arguments come before attributes"},
      {"test.conv(%x, out_dtype=\"float31\")", "'float31' is not a dtype"},
      {"nn.relu(%x, attrs_type_key=\"no.such\")", "there are no attributes of kind 'no.such'"},
      {"1f7", "'f7' is not a suffix of a number"},
      {"300u8", "300 does not fit uint8"},
      {"9i4", "9 does not fit int4 (-8 to 7)"},
      {"16u4", "16 does not fit uint4 (0 to 15)"},
      {"const(Tensor[(1), int4], [-9])", "-9 does not fit int4"},
      {"-3i2", "-3 does not fit int2 (-2 to 1)"},
      {"const(Tensor[(1), float8_e5m2], [1])", "elements of float8_e5m2 have no literals"},
      {"-1u8", "-1 does not fit uint8"},
      {"1e40f", "1e40 does not fit float32"},
      {"70000f16", "70000 does not fit float16"},
      {"0.5e60f", "0.5e60 does not fit float32"},
      {"0.0005e400f64", "0.0005e400 does not fit float64"},
      {"0.5e60bf16", "0.5e60 does not fit bfloat16"},
      {"nan(0x1)f", "does not fit float32"},
      {"const(Tensor[(2), float32], [1])", "the type has 2 elements, but 1 are given"},
      {"const(Tensor[(n), float32], [1])", "a constant has a tensor type with integer dimensions"},
      {"const(Tensor[(1), int32], [1.5])", "1.5 is not of int32"},
      {"const(Tensor[(1), bool], [a])", "expected True or False"},
      {"const(Tensor[(140737488355328, 140737488355328), int8], [1])",
       "bad.relay:3:3: shape (140737488355328, 140737488355328) has too many elements"},
      {"meta[relay.Constant][0]", "there is no data for constant 0"},
      {"(meta[relay.Constant][4], meta[relay.Constant][1], meta[relay.Constant][4])",
       "there is no data for constant 4 and 2 more: the text has 0 (its"},
      {"meta[tir.Buffer][0]",
       "there is no tir.Buffer 0: the text has 0 (its #[metadata] block holds them, or init_meta_table"},
      {"match (%x) { Cons(%a) => %a }", "there is no constructor 'Cons'"},
      {"match (%x) { _ %x }", "expected '=>' after a pattern"},
      {"match (%x) { + => %x }", "expected a pattern"},
      {"&Nope", "there is no constructor 'Nope'"},
      {"ref_write(%x)", "expected ',' between the cell and the value"},
      {"\"text\"", "expected an expression, found '\"text\"'"},
      {"%x $ %x", "unexpected character"},
      {"nn.relu(x)", "there is no op 'x'; the variable is written %x"},
      {"if (true) { %x } else { %x }", "there is no op 'true'; write True"},
      {"if (false) { %x } else { %x }", "there is no op 'false'; write False"},
      {"test.conv(%x, out_dtype=int32)", "'int32' is not a value; a dtype is written as a text, \"int32\""},
      {"/* open", "this comment does not end"},
      {"fn (k=\"open) { %x }", "this string does not end on its line"},
  };
  for (const auto& [body, message] : cases) EXPECT_THAT(body_error(body), HasSubstr(message)) << body;
}

TEST_F(Text, MalformedModulesSayWhatIsWrong) {
  const std::string head = "#[version = \"0.0.5\"]\n";
  const std::pair<std::string, const char*> cases[] = {
      {"def @main() { () }", "the text must start with #[version"},
      {"#[version = \"9\"]\ndef @main() { () }", "version \"9\" is not known"},
      {head + "def main() { () }", "expected a function's name such as @main"},
      {head + "def @f() { () }\ndef @f() { () }", "the function '@f' is defined twice"},
      {head + "type A { X }\ntype A { Y }", "the type 'A' is defined twice"},
      {head + "type A { X, X }", "the constructor 'X' is defined twice; the first is at bad.relay:2:10"},
      {head + "import \"prelude.rly\"\ndef @id() { () }",
       "the function '@id' is defined twice; the first is at prelude.rly:20:1"},
      {head + "import \"prelude.rly\"\ntype List { X }",
       "the type 'List' is defined twice; the first is at prelude.rly:5:1"},
      {head + "import \"prelude.rly\"\ntype A { Cons }\ndef @f() { Cons }",
       "'Cons' is a constructor of List and of A; write List::Cons or A::Cons"},
      {head + "type Tensor { X }", "'Tensor' cannot name a type"},
      {head + "type A { 3 }", "expected a constructor's name"},
      {head + "nonsense", "expected def, type, import, attributes or #[metadata]"},
      {head + "attributes { 1 }", "expected an attribute such as"},
      {head + "#[metadata]\n[]", "the metadata is a map"},
      {head + "#[metadata]\n{\"version\": 2}", "the metadata has no \"version\": 1"},
      {head + "#[metadata]\n{\"version\": 1}", "has no list \"relay.Constant\""},
      {head + "#[metadata]\n{\"version\": 1, \"relay.Constant\": [1]}", "a constant of the metadata is a map"},
      {head + "#[metadata]\n{\"version\": 1, \"relay.Constant\": [{}]}", "has no 'dtype'"},
      {head + "#[metadata]\n{\"version\": 1, \"relay.Constant\": [{\"dtype\": \"int8\", \"shape\": [3], \"data\": "
              "\"AAA\"}]}",
       "not a multiple of 4"},
      {head + "#[metadata]\n{\"version\": 1, \"relay.Constant\": [{\"dtype\": \"int8\", \"shape\": [4], \"data\": "
              "\"AAAA\"}]}",
       "constant 0 of the metadata"},
      {head + "#[metadata]\n{\"version\": 1, \"relay.Constant\": []} x", "expected the end of the text"},
  };
  for (const auto& [text, message] : cases) EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
}

// Damaged programs are read or refused; a sanitizer reports anything else.
TEST_F(Text, MutationsAreReadOrRefused) {
  std::string text;
  for (const char* name : {"nodes", "types", "constants", "attributes", "scopes"}) {
    std::ifstream file(fmt::format("{}/src/relay/text/tests/{}.relay", HEADRACE_SOURCE_DIR, name));
    std::stringstream content;
    content << file.rdbuf();
    std::mt19937 random(11);
    int refused = 0;
    for (int i = 0; i < 150; ++i) {
      text = content.str();
      const size_t at = random() % text.size();
      const int kind = static_cast<int>(random() % 3);
      if (kind == 0) text.erase(at, 1 + random() % 8);
      if (kind == 1) text[at] = "(){}[]%@,;=.0n\"-"[random() % 16];
      if (kind == 2) text.resize(at);
      try {
        reprinted(text);
      } catch (const UserError& error) {
        ++refused;
        EXPECT_FALSE(error.message().empty());
      }
    }
    EXPECT_GT(refused, 50);
  }
}

}  // namespace
}  // namespace headrace::relay
