// A user's library in the forms of Relay, loaded and used from here.
#include "object/porting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "kit/load_library.h"
#include "object/json.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

class Porting : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { told(); }
  static const std::string& told() {
    static const std::string text = kit::told_by_loading(HEADRACE_PORTED);
    return text;
  }
};

TEST_F(Porting, TypedFunctions) {
  const Value pair = get_global("mine.Pair")(3, 4);
  EXPECT_EQ(get_global("mine.sum")(pair).as<int64_t>(), 7);
  EXPECT_THAT(kit::user_error_of([] { get_global("mine.Pair")(3); }), HasSubstr("expected 2 arguments, got 1"));
  EXPECT_THAT(kit::user_error_of([] { get_global("mine.sum")(3); }), HasSubstr("argument 0: expected mine.Pair"));
}

TEST_F(Porting, PackedFunctions) {
  EXPECT_EQ(get_global("mine.describe")(5, "apples").as<std::string>(), "5 apples of 2");
  EXPECT_THAT(kit::user_error_of([] { get_global("mine.describe")("5", "apples"); }), HasSubstr("argument 0:"));
  EXPECT_THAT(kit::user_error_of([] { get_global("mine.describe")(5); }), HasSubstr("argument 1 is missing"));
  EXPECT_TRUE(get_global("mine.nothing")().is_none());
}

TEST_F(Porting, NodesHaveTheirFields) {
  const Value pair = get_global("mine.Pair")(3, 4);
  EXPECT_EQ(pair.object()->key(), "mine.Pair");
  EXPECT_EQ(get_field(*pair.object(), "second").as<int64_t>(), 4);
  const ObjectRef made = make_node("mine.Pair", {{"first", 1}, {"second", 2}});
  EXPECT_EQ(get_global("mine.sum")(made).as<int64_t>(), 3);
  EXPECT_EQ(kit::user_error_of([] { make_node("mine.Plain", {}); }), "type mine.Plain cannot be made from its fields");
}

TEST_F(Porting, ATakenNameIsToldAndKept) {
  EXPECT_EQ(get_global("mine.packed")(5).as<int64_t>(), -5);
  EXPECT_THAT(told(), HasSubstr("headrace: not registered: global function 'mine.packed' is registered already"));
}

}  // namespace
}  // namespace headrace
