#include "ir/target.h"

#include <gtest/gtest.h>

#include "kit/errors.h"
#include "object/structural_equal.h"

namespace headrace {
namespace {

TEST(Target, ReadsWhatUsersType) {
  const Target target = parse_target("llvm -mcpu=znver4  --mattr=+avx2,-avx512f -num-cores=4");
  EXPECT_EQ(target->kind, "llvm");
  EXPECT_EQ(target->text("mcpu"), "znver4");
  EXPECT_EQ(target->text("mtriple"), "");
  EXPECT_EQ(target->list("mattr").size(), 2U);
  EXPECT_EQ(target->list("mattr")[1], "-avx512f");
  EXPECT_EQ(target->count("num-cores"), 4);
  EXPECT_EQ(parse_target("llvm")->count("num-cores"), 0);
}

TEST(Target, TextIsCanonical) {
  const char* text = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -mattr=+f16c,-fma -num-cores=2";
  EXPECT_EQ(to_string(parse_target(text)), text);
  const Target other_order =
      parse_target("llvm -num-cores=2 -mattr=+f16c,-fma -mcpu=x86-64-v3 -mtriple=x86_64-linux-gnu");
  EXPECT_EQ(to_string(other_order), text);
  EXPECT_TRUE(structural_equal(other_order, parse_target(text)));
  EXPECT_FALSE(structural_equal(other_order, parse_target("llvm")));
  EXPECT_EQ(to_string(make_target("llvm")), "llvm");
}

TEST(Target, ErrorsSayWhatThereIs) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the target is empty"},
      {"  ", "the target is empty"},
      {"lvm -mcpu=x", "no kind of target 'lvm'; the kinds are llvm"},
      {"llvm mcpu=x", "'mcpu=x' is no option of a target; write -NAME=VALUE"},
      {"llvm -mcpu", "'-mcpu' is no option of a target"},
      {"llvm -", "'-' is no option of a target"},
      {"llvm --=x", "'--=x' is no option of a target"},
      {"llvm -cpu=x", "no option 'cpu'; its options are -mtriple=, -mcpu=, -mattr=, -num-cores="},
      {"llvm -mcpu=", "the target's option -mcpu= has no value"},
      {"llvm -mcpu=a -mcpu=b", "-mcpu= is given twice"},
      {"llvm -num-cores=two", "-num-cores=two is no whole number"},
      {"llvm -num-cores=0", "num-cores is 0; it is at least 1"},
  };
  for (const auto& [text, message] : cases) {
    const std::string error = kit::user_error_of([&] { parse_target(text); });
    EXPECT_NE(error.find(message), std::string::npos) << text << ": " << error;
  }
  const std::string error = kit::user_error_of([] { make_target("llvm", {{"mcpu", Value(int64_t{3})}}); });
  EXPECT_NE(error.find("mcpu is a text, got"), std::string::npos) << error;
  const std::string spaced = kit::user_error_of([] { make_target("llvm", {{"mattr", Value("+avx2, -fma")}}); });
  EXPECT_NE(spaced.find("mattr has ' -fma', which is no single word"), std::string::npos) << spaced;
}

}  // namespace
}  // namespace headrace
