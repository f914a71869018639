// The text form of patterns: what it looks like, that it reads back, its errors, and that any text is survived.
#include "relay/patterns/pattern_text.h"

#include <gtest/gtest.h>

#include "kit/errors.h"
#include "kit/mutate.h"
#include "kit/property.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/patterns/pattern_index.h"

namespace headrace::relay {
namespace {

DFPattern read_pattern(const std::string& text) {
  ops::register_all_ops();
  return parse_pattern(text);
}

class PatternTexts : public testing::TestWithParam<const char*> {};

TEST_P(PatternTexts, ReadBack) {
  const DFPattern pattern = read_pattern(GetParam());
  EXPECT_EQ(print_pattern(pattern), GetParam());
  EXPECT_TRUE(structural_equal(Value(pattern), Value(read_pattern(print_pattern(pattern)))));
}

INSTANTIATE_TEST_SUITE_P(Patterns, PatternTexts,
                         testing::Values("_", "const", "var", "var(\"a b\")", "nn.conv2d", "nn.conv2d(_, const)",
                                         "_(*)", "var(_)", "expr(\"1.5f\")(_)", "(exp(_) or tanh(_))(_)", "tuple(*)",
                                         "tuple()", "tuple(_, item(_))", "item(tuple(*), 3)", "if(_, _, _)",
                                         "let(var, _, _)", "fn(*) { _ }", "fn() { _ }", "fn(_, _) { exp(_) }",
                                         "dominates(exp(_), _, add(_, _))", "%0 = _;\nadd(%0, %0)",
                                         "%0 = nn.conv2d(_, _);\n(%0 or nn.relu(%0))",
                                         "_[dtype float32][shape (1, ?)][type \"Tensor[(?), int8]\"]", "_[shape ()]",
                                         "_[attrs]",
                                         "_[attrs a=1, \"b.c\"=\"x\", d=[1, [2.5, -3]], e=True, f=-1e+300, g=[]]"));

TEST(PatternText, ARepetitionReadsBack) {
  const std::string text = "rec %0 = (exp(%0) or const);\ntanh(%0)";
  const DFPattern one = read_pattern(text);
  EXPECT_EQ(print_pattern(one), text);
  const DFPattern two = read_pattern("rec %a = cast(%b) or const; rec %b = exp(%a) or var; %b");
  EXPECT_EQ(print_pattern(two), "rec %0 = (cast(%1) or const);\nrec %1 = (exp(%0) or var);\n%1");
  release_recursions(one);
  release_recursions(two);
}

TEST(PatternText, InfixCommentsAndGrouping) {
  EXPECT_EQ(print_pattern(read_pattern("_ + _ * const - _ / _ /* why */")),
            "subtract(add(_, multiply(_, const)), divide(_, _))");
  EXPECT_EQ(print_pattern(read_pattern("exp(_) or tanh(_) or abs(_)")), "((exp(_) or tanh(_)) or abs(_))");
  EXPECT_EQ(print_pattern(read_pattern("%unused = _; op(\"exp\")(_)")), "exp(_)");
}

TEST(PatternText, DeepPatternsReadBack) {
  ops::register_all_ops();
  DFPattern pattern = patterns::wildcard();
  for (int i = 0; i < 3000; ++i) pattern = patterns::call(patterns::is_op("exp"), Array<DFPattern>{pattern});
  EXPECT_TRUE(structural_equal(Value(pattern), Value(read_pattern(print_pattern(pattern)))));
  for (int i = 0; i < 3000; ++i) pattern = patterns::call(patterns::is_op("exp"), Array<DFPattern>{pattern});
  EXPECT_EQ(kit::user_error_of([&] { print_pattern(pattern); }), "the pattern has more than 10000 nodes");
}

struct WrongText {
  const char* text;
  const char* message;  // with the place
};

class PatternErrors : public testing::TestWithParam<WrongText> {};

TEST_P(PatternErrors, SayWhere) {
  const std::string message = kit::user_error_of([] { read_pattern(GetParam().text); });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, PatternErrors,
    testing::Values(WrongText{"", "1:1: expected a pattern, found the end of the text"},
                    WrongText{"exp(_", "1:6: expected ')' after a list of patterns, found the end of the text"},
                    WrongText{"exp(_) _", "1:8: expected ';', 'or' or the end of the pattern, found '_'"},
                    WrongText{"exq(_)", "1:1: there is no op 'exq'"},
                    WrongText{"or", "1:1: 'or' does not begin a pattern"},
                    WrongText{"add(%a, _)", "1:5: '%a' is not defined before"},
                    WrongText{"%a = _; %a = _; %a", "1:9: '%a' is defined twice"},
                    WrongText{"rec %a = _; rec %a = _; %a", "1:17: '%a' is defined twice"},
                    WrongText{"rec %a = _; %a = _; %a", "1:13: '%a' is defined twice"},
                    WrongText{"rec %a = %a; %a", "1:5: '%a' stands for nothing but itself"},
                    WrongText{"rec _ = _; _", "1:5: expected a name such as %0 after 'rec', found '_'"},
                    WrongText{"if(_, _)", "1:3: 'if' takes three patterns"},
                    WrongText{"let(*)", "1:4: 'let' takes three patterns"},
                    WrongText{"item(_, 5000000000)", "1:9: the index of an item is too large"},
                    WrongText{"item(_, -1)", "1:9: expected an integer of 64 bits"},
                    WrongText{"op(exp)", "1:4: expected a text in quotes for 'op', found 'exp'"},
                    WrongText{"expr(\"add(\")", "1:1: the expression is wrong: "},
                    WrongText{"_[kind 3]", "1:3: expected 'type', 'dtype', 'shape' or 'attrs'"},
                    WrongText{"_[type float32]", "1:8: expected a type in quotes"},
                    WrongText{"_[type \"Tensor[\"]", "1:8: the type is wrong: "}, WrongText{"_[dtype flat32]", "1:9: "},
                    WrongText{"_[shape (x)]", "1:10: expected an integer of 64 bits"},
                    WrongText{"_[attrs a]", "1:10: expected '=' after the name of an attribute, found ']'"},
                    WrongText{"_[attrs a=b]", "1:11: expected a number, a text in quotes, True, False or a list"},
                    WrongText{"_[attrs a=-\"b\"]", "1:12: expected a number after '-'"}));

TEST(PatternText, LimitsAreErrors) {
  std::string nested = "_";
  for (int i = 0; i < 300; ++i) nested = "exp(" + nested + ")";
  EXPECT_NE(kit::user_error_of([&] { read_pattern(nested); }).find("the pattern nests deeper than 200 levels"),
            std::string::npos);
  std::string list = "_[attrs a=";
  for (int i = 0; i < 100'000; ++i) list += "[";
  EXPECT_NE(kit::user_error_of([&] { read_pattern(list); }).find("the value nests too deeply"), std::string::npos);
  EXPECT_EQ(kit::user_error_of([&] { read_pattern(std::string(kMaxPatternText + 1, ' ')); }),
            "the text of a pattern has 1048577 bytes; at most 1048576 are read");
}

TEST(PatternText, PartsWithoutATextAreErrors) {
  ops::register_all_ops();
  const PrimExpr n = make_prim_var("n");
  EXPECT_NE(kit::user_error_of([&] { print_pattern(patterns::has_shape(patterns::wildcard(), {n})); }), "");
  const Map<std::string, Value> attrs{{"a", Value(Map<std::string, Value>{})}};
  EXPECT_NE(kit::user_error_of([&] { print_pattern(patterns::has_attr(patterns::wildcard(), attrs)); }), "");
}

TEST(PatternText, ATableHasNamesInOrder) {
  ops::register_all_ops();
  const auto table =
      parse_pattern_table("{ \"x.conv_relu\": { %0 = nn.conv2d(_, _); %0 or nn.relu(%0) },\n  x.add: add(_, _), }");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].name, "x.conv_relu");
  EXPECT_EQ(print_pattern(table[0].pattern), "%0 = nn.conv2d(_, _);\n(%0 or nn.relu(%0))");
  EXPECT_EQ(table[1].name, "x.add");
  const auto fault = [](const char* text) { return kit::user_error_of([&] { parse_pattern_table(text); }); };
  EXPECT_NE(fault("nn.relu(_)").find("1:1: expected '{' before a table of patterns"), std::string::npos);
  EXPECT_NE(fault("{ \"\": _ }").find("1:3: the name of a pattern is empty"), std::string::npos);
  EXPECT_NE(fault("{ a: _ } b").find("1:10: expected the end of the table"), std::string::npos);
  EXPECT_NE(fault("{ a: { %0 = _; %0 }, b: %0 }").find("'%0' is not defined before"), std::string::npos);
}

// Makes random patterns in which parts are shared and wildcards repeat.
class RandomPattern {
 public:
  explicit RandomPattern(uint64_t seed, int size) : random_(seed), left_(size) {}

  DFPattern make() {
    const DFPattern whole = pattern(0);
    for (const WildcardPattern& wildcard : wildcards_) {
      if (random_.chance(0.5F) && wildcard.object() != whole.object()) redirect_if_it_goes_on(wildcard, whole);
    }
    return whole;
  }

 private:
  // Leaves a wildcard alone that would lead back to itself for one expression, which is not a pattern.
  static void redirect_if_it_goes_on(const WildcardPattern& wildcard, const DFPattern& whole) {
    patterns::redirect(*wildcard, whole);
    try {
      PatternIndex{whole};
    } catch (const UserError&) {
      patterns::redirect(*wildcard, {});
    }
  }

  DFPattern pattern(int depth) {
    if (!made_.empty() && random_.chance(0.2F)) return made_[random_.index(made_.size())];
    DFPattern made = --left_ <= 0 || depth > 60 ? leaf() : inner(depth + 1);
    made_.push_back(made);
    return made;
  }

  DFPattern leaf() {
    switch (random_.integer(0, 4)) {
      case 0:
        return patterns::is_constant();
      case 1:
        return patterns::is_var(random_.chance(0.5F) ? "" : "a\"b");
      case 2:
        return patterns::is_op(random_.chance(0.5F) ? "exp" : "nn.conv2d");
      case 3:
        return patterns::is_expr(make_scalar(2));
      default:
        wildcards_.push_back(patterns::wildcard().cast<WildcardPatternNode>());
        return wildcards_.back();
    }
  }

  std::optional<Array<DFPattern>> list(int depth) {
    if (random_.chance(0.2F)) return std::nullopt;
    Array<DFPattern> items;
    for (int64_t i = random_.integer(0, 3); i > 0; --i) items.push_back(pattern(depth));
    return items;
  }

  DFPattern constrained(int depth) {
    const DFPattern inner = pattern(depth);
    switch (random_.integer(0, 3)) {
      case 0:
        return patterns::has_dtype(inner, DataType::float_(16));
      case 1:
        return patterns::has_shape(inner, {make_int(random_.integer(0, 9)), make_any()});
      case 2:
        return patterns::has_type(inner, make_tensor_type(Shape{2, 3}, DataType::int_(8)));
      default:
        return patterns::has_attr(inner,
                                  {{"a", Value(random_.integer(-5, 5))}, {"b c", Value(0.5)}, {"d", Value("x")}});
    }
  }

  DFPattern inner(int depth) {
    switch (random_.integer(0, 8)) {
      case 0: {
        const DFPattern callee = pattern(depth);
        return patterns::call(callee, list(depth));
      }
      case 1: {
        const auto params = list(depth);
        return patterns::function(params, pattern(depth));
      }
      case 2:
        return patterns::is_tuple(list(depth));
      case 3:
        return patterns::is_tuple_get_item(pattern(depth), random_.integer(-1, 3));
      case 4:
        return patterns::is_if(pattern(depth), pattern(depth), pattern(depth));
      case 5:
        return patterns::is_let(pattern(depth), pattern(depth), pattern(depth));
      case 6:
        return patterns::dominates(pattern(depth), pattern(depth), pattern(depth));
      case 7:
        return constrained(depth);
      default:
        return patterns::alt(pattern(depth), pattern(depth));
    }
  }

  kit::Random random_;
  int left_;
  std::vector<DFPattern> made_;
  std::vector<WildcardPattern> wildcards_;
};

// Returns a redirected wildcard's target as a part of a description that equality can follow.
std::string shape_of(const DFPattern& pattern) {
  const PatternIndex index(pattern);
  std::string shape;
  for (const PatternIndex::Node& node : index.nodes)
    shape += fmt::format("{}{};", node.pattern->key(), fmt::join(node.children, ","));
  return shape;
}

struct PatternSeed {
  uint64_t seed;
  int size;
};

TEST(PatternTextProperty, RandomPatternsReadBack) {
  ops::register_all_ops();
  kit::Property<PatternSeed> property;
  property.runs_ci = 300;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    return PatternSeed{random.next(), static_cast<int>(random.integer(1, 60))};
  };
  property.show = [](const PatternSeed& p) { return fmt::format("seed {} size {}", p.seed, p.size); };
  property.check = [](const PatternSeed& p) -> std::optional<std::string> {
    RandomPattern random(p.seed, p.size);
    const DFPattern pattern = random.make();
    const std::string text = print_pattern(pattern);
    const DFPattern again = parse_pattern(text);
    const std::string text_again = print_pattern(again);
    const bool is_same = shape_of(pattern) == shape_of(again);
    release_recursions(pattern);
    release_recursions(again);
    if (text != text_again) return "it prints differently after parsing:\n" + text + "\n" + text_again;
    if (!is_same) return "another pattern was read:\n" + text;
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

TEST(PatternTextProperty, DamagedTextsAreErrorsOrPatterns) {
  ops::register_all_ops();
  kit::Property<uint64_t> property;
  property.runs_ci = 2000;
  property.runs_full = 200000;
  property.generate = [](kit::Random& random) { return random.next(); };
  property.show = [](uint64_t seed) { return fmt::format("seed {}", seed); };
  property.check = [](uint64_t seed) -> std::optional<std::string> {
    kit::Random random(seed);
    const std::string text =
        "%0 = nn.conv2d(_, const)[attrs data_layout=\"NCHW\", kernel_size=[3, -3], f=1.5];\n"
        "%2 = (%0 or dominates(%0, _[shape (1, ?)], tuple(*)));\n"
        "(if(%2, fn(_) { var(\"x\") }, let(_, item(_, 2), expr(\"1f\")))[dtype float32] + _[type \"int8\"] or abs(*))";
    try {
      release_recursions(parse_pattern(kit::mutate(text, random)));
    } catch (const UserError&) {
    }
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
}

}  // namespace
}  // namespace headrace::relay
