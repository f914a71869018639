#include "object/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kit/options.h"
#include "object/shape_tuple.h"
#include "object/string.h"
#include "object/structural_equal.h"
#include "object/tests/test_nodes.h"

namespace headrace {
namespace {

using namespace testing;

void register_test_types() {
  static_cast<void>(type_of<SymbolNode>()), static_cast<void>(type_of<TypeNode>()),
      static_cast<void>(type_of<testing::VarNode>()), static_cast<void>(type_of<IntNode>()),
      static_cast<void>(type_of<testing::CallNode>()), static_cast<void>(type_of<testing::TupleNode>()),
      static_cast<void>(type_of<testing::ConstantNode>());
}

Value round_trip(const Value& value) { return load_json(save_json(value)); }

TEST(Json, FormIsAsDocumented) {
  const auto call = make_call("add", {make_int(1), make_int(2)}, {{"axis", Value(3)}});
  EXPECT_EQ(save_json(Value(call)),
            R"({"headrace": "object graph", "version": 1, "root": [4], "nodes": [
  ["test.Int", {"value": 1}],
  ["test.Int", {"value": 2}],
  ["object.Array", [[0], [1]]],
  ["object.Map", [["axis", 3]]],
  ["test.Call", {"op": "add", "args": [2], "attrs": [3]}]
]}
)");
}

TEST(Json, NodesOfOneTypeAreLeftApart) {
  const auto one = make_int(1), two = make_int(2);
  std::vector<Value> apart;
  EXPECT_EQ(save_json_apart(Value(make_call("add", {one, two, one}, {})), "test.Int", apart),
            R"({"headrace": "object graph", "version": 1, "root": [3], "nodes": [
  ["test.Int", {"apart": 0}],
  ["test.Int", {"apart": 1}],
  ["object.Array", [[0], [1], [0]]],
  ["test.Call", {"op": "add", "args": [2], "attrs": {}}]
]}
)");
  ASSERT_EQ(apart.size(), 2u);
  EXPECT_EQ(apart[0].object(), Value(one).object());
  EXPECT_EQ(apart[1].object(), Value(two).object());
}

TEST(Json, EveryKindOfValueComesBack) {
  const double inf = std::numeric_limits<double>::infinity();
  RawValue dtype, device;
  dtype.type_index = type_index::kDataType;
  dtype.v.v_dtype = {2, 32, 1};
  device.type_index = type_index::kDevice;
  device.v.v_device = {1, 0};
  const std::vector<Value> values{Value(),
                                  Value(true),
                                  Value(std::numeric_limits<int64_t>::min()),
                                  Value(std::numeric_limits<int64_t>::max()),
                                  Value(1.0),
                                  Value(-0.0),
                                  Value(0.1),
                                  Value(1e300),
                                  Value(5e-324),
                                  Value(inf),
                                  Value(-inf),
                                  Value(std::nan("")),
                                  Value("quote \" line\n tab\t\x01 \xc3\xa4"),
                                  Value(std::string("no utf-8 \xff\x00 at all", 18)),
                                  Value(Bytes{std::string("\0\1\xff", 3)}),
                                  Value(Shape{2, -1, 0}),
                                  Value(Shape{}),
                                  Value::adopt(dtype),
                                  Value::adopt(device),
                                  Value(Array<Value>{Value(1), Value(), Value("x")}),
                                  Value(Array<Value>()),
                                  Value(Map<std::string, Value>{{"a", Value(1)}, {"b", Value(2.0)}}),
                                  Value(Map<std::string, Value>()),
                                  Value(make_adt(3, {Value(1), Value("x")}))};
  for (const Value& value : values) {
    const Value again = round_trip(value);
    EXPECT_EQ(again.type_index() >= 64, value.type_index() >= 64);
    EXPECT_EQ(kind_name(again.raw()), kind_name(value.raw()));
    EXPECT_TRUE(structural_equal(value, again)) << save_json(value);
  }
}

// The text written must be valid for nlohmann's reader.
TEST(Json, StringsOfAllBytesComeBack) {
  for (const char* text : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\x80", "\xe2\x82", "\xff", "a\xc3"})
    EXPECT_EQ(round_trip(Value(text)).as<std::string>(), text);
  for (int c = 0; c < 256; ++c) {
    const std::string text(1, static_cast<char>(c));
    EXPECT_EQ(round_trip(Value(text)).as<std::string>(), text) << c;
  }
}

TEST(Json, SharingIsKept) {
  const auto shared = make_call("f", {});
  const Value again = round_trip(Value(testing::make_tuple({shared, shared, make_call("f", {})})));
  const auto tuple = again.as<Ref<testing::TupleNode>>();
  EXPECT_EQ(tuple->items[0], tuple->items[1]);
  EXPECT_NE(tuple->items[0], tuple->items[2]);
}

TEST(Json, OptionalNoneIsLeftOut) {
  const std::string text = save_json(Value(testing::make_var("x")));
  EXPECT_EQ(text.find("type\":"), std::string::npos) << text;
  EXPECT_FALSE(load_json(text).as<testing::Var>()->type);
}

TEST(Json, LongChainsNeedNoStack) {
  register_test_types();
  testing::Expr chain = make_int(0);
  const int length = kit::by_depth(30'000);
  for (int i = 0; i < length; ++i) chain = make_call("f", {chain});
  const std::string text = save_json(Value(chain));
  const Value again = load_json(text);
  EXPECT_EQ(save_json(again), text);
}

// In the square of the length this would take minutes.
TEST(Json, LongListsOfObjectsTakeTimeInProportion) {
  Array<Value> items;
  for (int i = 0; i < 500'000; ++i) items.push_back(Value(Map<std::string, Value>()));
  const Value again = load_json(save_json(Value(items)));
  EXPECT_EQ(again.as<Array<Value>>().size(), items.size());
}

TEST(Json, BracketsInTextsNestNothing) {
  const std::string text = "[[[[[[[[[[{{{{{{{{{{\"[[[[[\\\"[[[[[\\";
  EXPECT_EQ(round_trip(Value(text)).as<std::string>(), text);
}

TEST(Json, ObjectsWithoutJsonAreNamed) {
  int x = 0;
  for (const auto& [value, kind] :
       {std::pair{Value(static_cast<void*>(&x)), "pointer"}, std::pair{Value(make_object<testing::OpNode>()), ""}}) {
    try {
      round_trip(value);
      EXPECT_STREQ(kind, "") << "no error";
    } catch (const UserError& e) {
      EXPECT_NE(e.message().find(fmt::format("a {} cannot be saved", kind)), std::string::npos) << e.what();
    }
  }
}

struct BadText {
  const char* name;
  const char* text;
  const char* message;
};
class JsonErrors : public ::testing::TestWithParam<BadText> {};

TEST_P(JsonErrors, SayWhatAndWhere) {
  register_test_types();
  try {
    load_json(GetParam().text, "file.json");
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.message().starts_with("file.json: ")) << e.what();
    EXPECT_NE(e.message().find(GetParam().message), std::string::npos) << e.what();
  }
}

#define HEAD "{\"headrace\": \"object graph\", \"version\": 1, "
INSTANTIATE_TEST_SUITE_P(
    All, JsonErrors,
    ::testing::Values(
        BadText{"syntax", "{\"headrace\": ", "file.json: parse error at line 1, column 14"},
        BadText{"nesting", "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", "it nests deeper than 8 levels"},
        BadText{"other_json", "{\"nodes\": []}", "it does not say \"headrace\": \"object graph\""},
        BadText{"no_json_object", "7", "it does not say"},
        BadText{"version", R"({"headrace": "object graph", "version": 2, "root": 1, "nodes": []})",
                "it has version 2; this program reads versions 1 to 1"},
        BadText{"no_root", HEAD "\"nodes\": []}", "it has no \"root\""},
        BadText{"other_keys", HEAD "\"root\": 1, \"nodes\": [], \"more\": 1}",
                "it has keys beside headrace, version, root and nodes"},
        BadText{"nodes", HEAD "\"root\": 1, \"nodes\": 3}", "\"nodes\" is not a list"},
        BadText{"later_node", HEAD "\"root\": [0], \"nodes\": [[\"object.Array\", [[0]]]]}",
                "node 0: reference [0] is to none of the 0 nodes before it"},
        BadText{"root_reference", HEAD "\"root\": [-1], \"nodes\": []}", "reference [-1] is to none"},
        BadText{"type", HEAD "\"root\": [0], \"nodes\": [[\"no.Such\", {}]]}", "node 0: there is no type 'no.Such'"},
        BadText{"abstract_type", HEAD "\"root\": [0], \"nodes\": [[\"test.Expr\", {}]]}",
                "cannot be made from its fields"},
        BadText{"field", HEAD "\"root\": [0], \"nodes\": [[\"test.Int\", {\"value\": 1, \"v\": 2}]]}",
                "has no field 'v'"},
        BadText{"missing_field", HEAD "\"root\": [0], \"nodes\": [[\"test.Int\", {}]]}", "needs its field 'value'"},
        BadText{"kind", HEAD "\"root\": [0], \"nodes\": [[\"test.Int\", {\"value\": \"1\"}]]}",
                "expected int, got str"},
        BadText{"null_item",
                HEAD "\"root\": [1], \"nodes\": [[\"object.Array\", [null]], [\"test.Tuple\", {\"items\": [0]}]]}",
                "field 'items' of test.Tuple"},
        BadText{"node_form", HEAD "\"root\": 1, \"nodes\": [7]}", "node 0: expected [type, parts], got 7"},
        BadText{"fields_form", HEAD "\"root\": 1, \"nodes\": [[\"test.Int\", 7]]}", "the fields of test.Int"},
        BadText{"array_form", HEAD "\"root\": 1, \"nodes\": [[\"object.Array\", 7]]}", "the items of an Array"},
        BadText{"map_form", HEAD "\"root\": 1, \"nodes\": [[\"object.Map\", [7]]]}", "expected [key, value], got 7"},
        BadText{"map_keys", HEAD "\"root\": 1, \"nodes\": [[\"object.Map\", [[\"a\", 1], [\"a\", 2]]]]}",
                "has the key \"a\" twice"},
        BadText{"special", HEAD "\"root\": {\"what\": 1}, \"nodes\": []}", "expected a value, got {\"what\":1}"},
        BadText{"float", HEAD "\"root\": {\"float\": \"big\"}, \"nodes\": []}", "expected nan, inf or -inf"},
        BadText{"dtype", HEAD "\"root\": {\"dtype\": [2, 300, 1]}, \"nodes\": []}", "300 is out of range"},
        BadText{"dtype_parts", HEAD "\"root\": {\"dtype\": [2]}, \"nodes\": []}", "expected a list of 3 integers"},
        BadText{"base64", HEAD "\"root\": {\"bytes\": \"?\"}, \"nodes\": []}", "base64"},
        BadText{"large_int", HEAD "\"root\": 9223372036854775808, \"nodes\": []}", "expected an integer of 64 bits"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headrace
