// Groups where a match is refused: further ways to match the same place.
#include "relay/patterns/groups.h"

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/patterns/pattern_text.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::relay::group_ways {
namespace {

using Texts = std::vector<std::string>;

// The ops of an expression, operands first, with variables as their names.
std::string words_of(const Expr& expr) {
  std::string words;
  post_order(expr, [&](const Expr& node) {
    const auto* call = node.as<CallNode>();
    const auto* var = node.as<VarNode>();
    if (call != nullptr) words += call->as_op()->name + " ";
    if (var != nullptr) words += "%" + var->name_hint + " ";
  });
  return words.substr(0, words.size() - 1);
}

struct Found {
  Texts groups;  // the ops of each
  Texts asked;   // the roots that the check was asked about
};

// Finds the groups in the body of a function of %x and %y; `refuses` has the texts that the check refuses.
Found find(const std::string& pattern_text, const std::string& body, const Texts& refuses = {}) {
  ops::register_all_ops();
  const IRModule module = infer_type(parse_module(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { " + body + " }"));
  const Expr root = module->lookup("main").cast<FunctionNode>()->body;
  const DFPattern pattern = parse_pattern(pattern_text);
  const PatternIndex index(pattern);
  const ExprIndex graph(root);
  Found found;
  const auto accepts = [&](const PatternGroup&, const Expr& asked) {
    EXPECT_TRUE(asked->has_checked_type());
    found.asked.push_back(words_of(asked));
    return std::find(refuses.begin(), refuses.end(), found.asked.back()) == refuses.end();
  };
  for (const PatternGroup& group : find_groups(index, graph, {.accepts = accepts})) {
    std::string words;
    for (const Expr& part : group.parts) {
      if (const auto* call = part.as<CallNode>()) words += call->as_op()->name + " ";
    }
    found.groups.push_back(words.substr(0, words.size() - 1));
  }
  release_recursions(pattern);
  return found;
}

TEST(FurtherWays, ACheckThatRefusesLeavesTheOtherAlternative) {
  const Found found = find("nn.relu(add(_, _)) or nn.relu(_)", "nn.relu(add(%x, %y))", {"%x %y add nn.relu"});
  EXPECT_EQ(found.groups, Texts{"nn.relu"});
  EXPECT_EQ(found.asked, (Texts{"%x %y add nn.relu", "%input_0 nn.relu"}));
}

TEST(FurtherWays, AValueThatIsUsedOutsideLeavesTheOtherAlternative) {
  EXPECT_EQ(find("add(exp(_) or _, _)", "%0 = exp(%x); (add(%0, %y), %0)").groups, Texts{"add"});
  EXPECT_EQ(find("add(exp(_) or _, _)", "add(exp(%x), %y)").groups, Texts{"exp add"});
}

TEST(FurtherWays, APartOfAnEarlierGroupLeavesTheOtherAlternative) {
  EXPECT_EQ(find("tanh(exp(_)) or tanh(_) or exp(_)", "%0 = exp(%x); tanh(tanh(%0))").groups,
            (Texts{"tanh", "exp tanh"}));
}

// exp, tanh and their optional negatives: the latest choice is turned around first.
TEST(FurtherWays, NestedAlternativesAreTriedFromTheLatest) {
  const std::string pattern = "add(negative(exp(_)) or negative(_) or _, negative(tanh(_)) or negative(_) or _)";
  const std::string body = "add(negative(exp(%x)), negative(tanh(%y)))";
  const std::string whole = "%x exp negative %y tanh negative add";
  const Found found = find(pattern, body, {whole, "%x exp negative %input_1 negative add"});
  EXPECT_EQ(found.asked, (Texts{whole, "%x exp negative %input_1 negative add", "%x exp negative %input_1 add"}));
  EXPECT_EQ(found.groups, Texts{"exp negative add"});
}

TEST(FurtherWays, OptionalPartsAreLeftOut) {
  // The way of `optional`: the call with the part, or else without.
  const std::string pattern = "%0 = add(_, exp(_) or _);\n%1 = tanh(%0) or %0;\nnn.relu(%1) or nn.relu(_)";
  const Found found = find(pattern, "nn.relu(tanh(add(%x, exp(%y))))", {"%x %y exp add tanh nn.relu"});
  EXPECT_EQ(found.asked, (Texts{"%x %y exp add tanh nn.relu", "%x %input_1 add tanh nn.relu"}));
  EXPECT_EQ(found.groups, Texts{"add tanh nn.relu"});
}

// Constants and variables stay visible to the check of a further way.
TEST(FurtherWays, ThePieceKeepsConstants) {
  const Found found = find("multiply(exp(_), _) or multiply(_, _)", "multiply(exp(%x), 2f)", {"%x exp multiply"});
  EXPECT_EQ(found.asked, (Texts{"%x exp multiply", "%input_0 multiply"}));
}

TEST(FurtherWays, PlacesThatAreRefusedAtAllAreTriedABoundedNumberOfTimes) {
  // 2^12 ways at one place.
  std::string pattern = "_", body = "%x";
  for (int i = 0; i < 12; ++i) {
    pattern = "add(exp(_) or _, " + pattern + ")";
    body = "add(exp(%y), " + body + ")";
  }
  ops::register_all_ops();
  const Expr root = infer_type(parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32], %y: "
                                            "Tensor[(2), float32]) { " +
                                            body + " }"))
                        ->lookup("main")
                        .cast<FunctionNode>()
                        ->body;
  const PatternIndex index(parse_pattern(pattern));
  int asked = 0;
  const auto refuse = [&](const PatternGroup&, const Expr&) { return ++asked < 0; };
  EXPECT_TRUE(find_groups(index, ExprIndex(root), {.accepts = refuse}).empty());
  EXPECT_EQ(asked, 33);
}

TEST(FurtherWays, LongProgramsTakeLinearTime) {
  ops::register_all_ops();
  Expr at = make_var("x", make_tensor_type({make_int(2)}, DataType::float_(32)));
  for (int i = 0; i < 20'000; ++i) at = make_call(i % 2 == 0 ? "exp" : "tanh", {at});
  const PatternIndex index(parse_pattern("tanh(exp(tanh(_) or _) or _) or exp(tanh(_) or _)"));
  const ExprIndex graph(at);
  int asked = 0;
  const auto refuse = [&](const PatternGroup&, const Expr&) { return ++asked < 0; };
  EXPECT_TRUE(find_groups(index, graph, {.accepts = refuse}).empty());
  EXPECT_GT(asked, 20'000);
  EXPECT_LT(asked, 200'000);
}

}  // namespace
}  // namespace headrace::relay::group_ways
