// Programs from JSON that somebody changed: each is compiled or refused, and what is refused is the program's fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "driver/all_passes.h"
#include "driver/compile.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "kit/random.h"
#include "object/json.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kMutated =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3), float32], %m: Tensor[(2, 3), bool]) {\n"
    "  %0 = add(nn.relu(%x), cast(%m, dtype=\"float32\"));\n"
    "  %1 = greater(%0, %x);\n"
    "  (cast(%1, dtype=\"int32\"), where(%1, %0, %x), sum(%0, axis=[1]))\n"
    "}\n";

// With its ops in functions that are marked Primitive.
std::string fused_json() {
  register_all();
  pass::PassContext context;
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  const IRModule typed = relay::infer_type(relay::parse_module(kMutated));
  return save_json(Value(pass::run_passes(parse_pass_list("canonical,native").passes, typed, context)));
}

// Returns the error of compiling the model; empty if it compiles.
std::string error_of(const std::string& json) {
  return kit::user_error_of(
      [&] { compile_to_memory(make_model(load_json(json).as<IRModule>()), {.passes = {.opt_level = 1}}); });
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

constexpr std::string_view kFloat32 = "{\"dtype\": [2, 32, 1]}";

TEST(MutatedModel, DtypesThatAreNone) {
  const std::string json = fused_json();
  ASSERT_EQ(error_of(json), "");
  const auto with = [&](std::string_view numbers) {
    return error_of(replaced(json, kFloat32, fmt::format("{{\"dtype\": [{}]}}", numbers)));
  };
  EXPECT_THAT(with("4, 32, 1"),
              AllOf(HasSubstr("node "), HasSubstr("'bfloat32' is not a dtype; dtypes are float32, ")));
  EXPECT_THAT(with("2, 8, 1"), HasSubstr("'float8' is not a dtype"));
  EXPECT_THAT(with("0, 33, 1"), HasSubstr("'int33' is not a dtype"));
  EXPECT_THAT(with("6, 32, 1"), HasSubstr("'bool32' is not a dtype"));
  EXPECT_THAT(with("5, 64, 1"), HasSubstr("'complex64' is not a dtype"));
  EXPECT_THAT(with("3, 8, 1"), HasSubstr("'handle8' is not a dtype"));
  EXPECT_THAT(with("2, 32, 0"), HasSubstr("is not a dtype"));
  EXPECT_THAT(with("2, 32, 4"), HasSubstr("cannot cast to float32x4"));
}

// Types of their own right, but of nothing that is computed with.
TEST(MutatedModel, TensorsOfHandles) {
  register_all();
  const IRModule module = relay::parse_module(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n");
  EXPECT_THAT(error_of(replaced(save_json(Value(module)), kFloat32, "{\"dtype\": [3, 64, 1]}")),
              HasSubstr("a tensor has elements of handle, which are not numbers"));
}

// Some of the dtypes that the text has, each for itself.
TEST(MutatedModel, TypesThatDisagreeAreToldBeforeCodeIsMade) {
  const std::string json = fused_json();
  std::vector<size_t> places;
  for (size_t at = json.find(kFloat32); at != std::string::npos; at = json.find(kFloat32, at + 1)) places.push_back(at);
  ASSERT_GT(places.size(), 3u);
  constexpr std::array<std::string_view, 12> kNumbers = {"4, 32, 1", "4, 8, 1",  "3, 64, 1", "2, 64, 1",
                                                         "2, 16, 1", "4, 16, 1", "0, 32, 1", "1, 8, 1",
                                                         "6, 8, 1",  "1, 1, 1",  "6, 1, 1",  "7, 8, 1"};
  int compiled = 0, refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    kit::Random random(seed);
    std::string text = json;
    // From the end on, so that the places before stay where they are; one place, or all.
    const bool is_one = random.chance(0.5F);
    const size_t only = random.index(places.size());
    const std::string other = fmt::format("{{\"dtype\": [{}]}}", kNumbers[random.index(kNumbers.size())]);
    for (size_t i = places.size(); i-- > 0;) {
      if (!is_one || i == only) text.replace(places[i], kFloat32.size(), other);
    }
    (error_of(text).empty() ? compiled : refused) += 1;  // anything but a UserError ends the test
  }
  EXPECT_GT(compiled, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace headrace::driver
