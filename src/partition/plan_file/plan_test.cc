// Plans as text: round trips, what a wrong file says and where, and comparison.
#include "partition/plan_file/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kGood = R"({
  "headrace": "plan",
  "version": 2,
  "model": {
    "hash": "0123456789abcdef0123456789abcdef",
    "inputs": ["x: Tensor[(4), float32]"]
  },
  "backends": [
    {"name": "one", "version": "1"},
    {"name": "two", "version": ""}
  ],
  "ops": [
    {"name": "a", "kind": "exp", "backend": "one", "reason": 63, "message": "it is the first"},
    {"name": "a", "kind": "cos", "backend": "native", "reason": 20, "message": "one: no \"cos\""},
    {"name": "b\u0001\\", "kind": "exp", "backend": "external", "reason": 0, "message": ""},
    {"name": "c#2", "kind": "one.pair", "backend": "one", "parts": [{"name": "c", "kind": "sin"}, {"name": "c#2", "kind": "cos"}], "reason": 63, "message": ""}
  ]
}
)";

TEST(Plan, ReadsWhatItPrints) {
  const Plan plan = parse_plan(kGood, "good.json");
  EXPECT_EQ(print_plan(plan), kGood);
  ASSERT_EQ(plan.ops.size(), 4u);
  EXPECT_EQ(plan.ops[1].kind, "cos");
  EXPECT_EQ(plan.ops[1].reason, 20);
  EXPECT_EQ(plan.ops[1].message, "one: no \"cos\"");
  EXPECT_EQ(plan.ops[2].name, "b\x01\\");
  EXPECT_EQ(plan.ops[2].backend, "external");
  EXPECT_THAT(plan.ops[2].parts, IsEmpty());
  ASSERT_EQ(plan.ops[3].parts.size(), 2u);
  EXPECT_EQ(plan.ops[3].parts[0].name, "c");
  EXPECT_EQ(plan.ops[3].parts[1].kind, "cos");
  EXPECT_EQ(plan.backends[1].name, "two");
  const Plan empty{.model_hash = std::string(32, '0'), .inputs = {}, .backends = {}, .ops = {}};
  EXPECT_EQ(print_plan(parse_plan(print_plan(empty), "empty")), print_plan(empty));
}

TEST(Plan, AByteOrderMarkMayGoBefore) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(print_plan(parse_plan(mark + kGood, "good.json")), kGood);
  EXPECT_THAT(kit::user_error_of([&] { parse_plan(mark, "mark.json"); }), HasSubstr("where a value should be"));
  EXPECT_THAT(kit::user_error_of([&] { parse_plan(mark + mark + kGood, "two.json"); }), HasSubstr("two.json:1:"));
}

std::string with_costs(const std::string& value) {
  std::string text = kGood;
  return text.insert(text.find("  \"backends\""), "  \"costs\": " + value + ",\n");
}

TEST(Plan, TheHashOfItsCostsIsKept) {
  const std::string hash(32, 'c'), text = with_costs("\"" + hash + "\"");
  const Plan plan = parse_plan(text, "costs.json");
  EXPECT_EQ(plan.costs_hash, hash);
  EXPECT_EQ(print_plan(plan), text);
  EXPECT_EQ(parse_plan(kGood, "good.json").costs_hash, "");
  EXPECT_THAT(kit::user_error_of([] { parse_plan(with_costs("\"c.json\""), "costs.json"); }),
              HasSubstr("costs.json:8:12: the costs' hash has 32 hexadecimal digits"));
  EXPECT_THAT(kit::user_error_of([] { parse_plan(with_costs("1"), "costs.json"); }),
              HasSubstr("costs.json:8:12: \"costs\" must be a string"));
}

TEST(Plan, SaysItsCost) {
  Plan plan = parse_plan(kGood, "good.json");
  plan.cost = PlannedCost{.seconds = 2e-6, .lower_bound = 1.5e-6, .source = "estimated"};
  const std::string line =
      ",\n  \"cost\": {\"seconds\": 2e-06, \"lower_bound\": 1.5e-06, \"gap\": 5e-07, \"source\": \"estimated\"}";
  std::string text = kGood;
  text.insert(text.rfind("\n}"), line);
  EXPECT_EQ(print_plan(plan), text);
  EXPECT_EQ(print_plan(parse_plan(text, "priced.json")), kGood);
  const auto error = [&](const std::string& cost) {
    std::string wrong = kGood;
    wrong.insert(wrong.find("  \"backends\""), "  \"cost\": " + cost + ",\n");
    return kit::user_error_of([&] { parse_plan(wrong, "cost.json"); });
  };
  EXPECT_THAT(error("1"), HasSubstr("cost.json:8:11: \"cost\" must be an object"));
  EXPECT_THAT(
      error("{\"price\": 1}"),
      HasSubstr("the key \"price\" is not a key of a plan; the keys here are seconds, lower_bound, gap, source"));
}

TEST(Plan, ReasonsMayBeLeftOut) {
  const Plan plan = parse_plan(
      R"({"ops": [{"backend": "native", "kind": "k", "name": "\u00e9\ud83d\ude00"}], "backends": [],
          "model": {"inputs": [], "hash": "0123456789abcdef0123456789abcdef"}, "version": 1, "headrace": "plan"})",
      "short.json");
  ASSERT_EQ(plan.ops.size(), 1u);
  EXPECT_EQ(plan.ops[0].name, "\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(plan.ops[0].reason, HR_REASON_PLACE_BY_PLAN);
  EXPECT_EQ(plan.ops[0].message, "the plan says so");
}

struct Wrong {
  const char* before;   // a part of kGood
  const char* after;    // in its place
  const char* place;    // "line:column"
  const char* message;  // a part
};

// Files with one mistake each.
constexpr Wrong kWrong[] = {
    // texts that are not JSON
    {"\"headrace\"", "headrace", "2:3", "a key in quotes should be here"},
    {"\"headrace\":", "\"headrace\"", "2:14", "':' should be here, after a key"},
    {"\"plan\",", "\"plan\"", "3:3", "'}' should be here, or ',' after a value of an object"},
    {"\"version\": 2", "\"version\": 01", "3:14", "this is not a value of JSON"},
    {"\"version\": 2", "\"version\": one", "3:14", "this is not a value of JSON"},
    {"\"version\": 2", "\"version\":", "3:13", "this is not a value of JSON"},
    {"\"version\": 2", "\"version\": 99999999999999999999", "3:14", "this integer has more than 64 bits"},
    {"\"version\": \"1\"", "\"version\": \"1", "9:32", "this string has no closing quote"},
    {"it is the first\"}", "it is the first}", "13:77", "this string has no closing quote"},
    {"it is the first", "it\tis", "13:80", "a control character in a string"},
    {"it is the first", "it \\q", "13:81", "JSON has no such escape"},
    {"it is the first", "it \\u12g4", "13:81", "four hexadecimal digits should follow"},
    {"it is the first", "\\ud800 ", "13:78", "this is the first half of a character alone"},
    {"it is the first", "\\udc00", "13:78", "this is the second half of a character alone"},
    {"it is the first", "\\ud800\\u0041", "13:78", "these two escapes are not a character"},
    {"float32]\"]", "float32]\"", "7:3", "']' should be here, or ',' after a value of a list"},
    {"  ]\n}\n", "  ]\n}\n]\n", "19:1", "something follows the end of the JSON"},
    {"  ]\n}\n", "  ]\n", "18:1", "the text ends where '}' should be"},
    {"\"ops\": [", "\"ops\": [[[[[[[[[[[[[[[[[[", "12:26", "nested deeper than 16 levels"},
    {"\"version\": 2,", "\"version\": 1, \"version\": 1,", "3:17", "the key \"version\" is there twice"},
    {"\"kind\": \"exp\", \"backend\": \"one\"", "\"kind\": \"exp\", \"kind\": \"exp\", \"backend\": \"one\"", "13:34",
     "the key \"kind\" is there twice"},
    // JSON that is not a plan
    {"\"plan\"", "\"object graph\"", "2:15", "this file of Headrace is of the format 'object graph', expected 'plan'"},
    {"\"headrace\": \"plan\",\n", "", "1:1", "this is not a plan; headrace explain --save-plan writes one"},
    {"\"version\": 2", "\"version\": 3", "3:14",
     "this is a plan of version 3, and this Headrace reads versions 1 to 2; make the plan again"},
    {"\"version\": 2", "\"version\": 0", "3:14", "this is a plan of version 0"},
    {"\"version\": 2", "\"version\": \"1\"", "3:14", "\"version\" must be an integer"},
    {"\"version\": 2", "\"version\": 1.0", "3:14", "\"version\" must be an integer"},
    {"\"version\": 2", "\"version\": null", "3:14", "\"version\" must be an integer"},
    {"\"version\": 2,\n", "", "1:1", "the key \"version\" is missing"},
    {"\"model\": {", "\"models\": {", "4:3",
     "the key \"models\" is not a key of a plan; the keys here are headrace, version"},
    {"\"hash\": \"0123", "\"hash\": \"", "5:13", "a model's hash has 32 hexadecimal digits"},
    {"\"hash\": \"0123", "\"hash\": \"XYZW", "5:13", "a model's hash has 32 hexadecimal digits"},
    {"[\"x: Tensor[(4), float32]\"]", "{}", "6:15", "\"inputs\" must be a list"},
    {"[\"x: Tensor[(4), float32]\"]", "[1]", "6:16", "an input must be a string"},
    // backends
    {"{\"name\": \"two\", \"version\": \"\"}", "\"two\"", "10:5", "a backend must be an object"},
    {"{\"name\": \"two\", \"version\": \"\"}", "{\"name\": \"two\"}", "10:5", "the key \"version\" is missing"},
    {"\"name\": \"two\"", "\"name\": \"one\"", "10:14", "the backend 'one' is there twice"},
    {"\"name\": \"two\"", "\"name\": \"native\"", "10:14", "'native' is there without being listed"},
    // ops
    {"\"kind\": \"cos\", ", "", "14:5", "the key \"kind\" is missing"},
    {"\"backend\": \"native\", ", "", "14:5", "the key \"backend\" is missing"},
    {"\"kind\": \"cos\"", "\"kind\": [\"cos\"]", "14:27", "\"kind\" must be a string"},
    {"\"backend\": \"native\"", "\"backend\": \"three\"", "14:45",
     "there is no backend 'three' in this plan, which has one, two, native; to use another, list it"},
    {"\"backend\": \"native\"", "\"backend\": \"\"", "14:45", "there is no backend '' in this plan"},
    {"\"kind\": \"cos\"", "\"kind\": \"exp\"", "14:14", "the op 'a' of kind exp is there twice"},
    {"\"reason\": 20", "\"reason\": -1", "14:65", "a reason is a number from 0 to 999"},
    {"\"reason\": 20", "\"because\": 20", "14:55",
     "the key \"because\" is not a key of a plan; the keys here are name, kind"},
    // parts
    {"\"parts\": [{\"name\": \"c\", \"kind\": \"sin\"}, {\"name\": \"c#2\", \"kind\": \"cos\"}]", "\"parts\": {}",
     "16:68", "\"parts\" must be a list"},
    {"\"parts\": [{\"name\": \"c\", \"kind\": \"sin\"}, {\"name\": \"c#2\", \"kind\": \"cos\"}]", "\"parts\": []",
     "16:68", "a pattern has one part at least; leave \"parts\" out for an op"},
    {"{\"name\": \"c#2\", \"kind\": \"cos\"}", "\"c#2\"", "16:99", "a part must be an object"},
    {"{\"name\": \"c#2\", \"kind\": \"cos\"}", "{\"name\": \"c#2\"}", "16:99", "the key \"kind\" is missing"},
    {"{\"name\": \"c#2\", \"kind\": \"cos\"}", "{\"name\": 2, \"kind\": \"cos\"}", "16:108",
     "\"name\" must be a string"},
    {"{\"name\": \"c#2\", \"kind\": \"cos\"}", "{\"name\": \"c\", \"kind\": \"sin\"}", "16:99",
     "the part 'c' of kind sin is there twice; remove one of the two"},
    {"{\"name\": \"c#2\", \"kind\": \"cos\"}", "{\"name\": \"c\", \"kind\": \"cos\", \"backend\": \"one\"}", "16:128",
     "the key \"backend\" is not a key of a plan; the keys here are name, kind"},
};

TEST(Plan, EachWrongFileSaysWhere) {
  EXPECT_GE(std::size(kWrong), 40u);
  for (const Wrong& wrong : kWrong) {
    std::string text = kGood;
    const size_t at = text.find(wrong.before);
    ASSERT_NE(at, std::string::npos) << wrong.before;
    text.replace(at, std::string_view(wrong.before).size(), wrong.after);
    const std::string error = kit::user_error_of([&] { parse_plan(text, "wrong.json"); });
    EXPECT_THAT(error, HasSubstr(std::string("wrong.json:") + wrong.place + ":")) << wrong.after;
    EXPECT_THAT(error, HasSubstr(wrong.message)) << wrong.after;
  }
}

// A file that was cut off at any byte is an error, but for the newline at its end.
TEST(Plan, EachPrefixIsRefused) {
  const std::string text = kGood;
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_THAT(kit::user_error_of([&] { parse_plan(text.substr(0, size), "cut.json"); }), HasSubstr("cut.json:"))
        << size;
}

TEST(Plan, Compares) {
  const Plan before = parse_plan(kGood, "before");
  EXPECT_THAT(compare_plans(before, before), IsEmpty());
  Plan after = before;
  after.ops[0].backend = "two";
  after.ops[0].message = "another";
  after.ops[1].message = "only the words differ";
  after.ops.erase(after.ops.begin() + 2);
  after.ops[2].parts.pop_back();
  after.ops.push_back({.name = "c", .kind = "exp", .backend = "one"});
  std::vector<std::string> rows;
  for (const PlanChange& change : compare_plans(before, after))
    rows.push_back(fmt::format("{} {}: {} > {}", change.name, change.kind, change.before, change.after));
  EXPECT_THAT(rows, ElementsAre("a exp: one > two", "b\x01\\ exp: external > ", "c#2 one.pair: one > ",
                                "c#2 one.pair:  > one", "c exp:  > one"));
  after = before;
  std::swap(after.ops[3].parts[0], after.ops[3].parts[1]);
  EXPECT_THAT(compare_plans(before, after), IsEmpty());
}

}  // namespace
}  // namespace headrace::partition
