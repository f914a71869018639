// The backend null takes no op, refuses marked regions, and says why.
#include "backends/null/compile/null.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "driver/explain.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "relay/text/parse.h"

namespace headrace::backends::null {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

driver::Model model(const std::string& text) {
  driver::register_all();
  return driver::make_model(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

TEST(Null, TakesNoOp) {
  const driver::Explanation explained =
      driver::explain(model("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n"), {.backends = {"null"}});
  ASSERT_THAT(explained.placement, SizeIs(1));
  EXPECT_EQ(explained.placement[0].backend, "native");
  EXPECT_EQ(explained.placement[0].reason, HR_REASON_OP_UNSUPPORTED);
  EXPECT_EQ(explained.placement[0].message, "null: the backend takes no op");
}

TEST(Null, RefusesARegionOfTheProgram) {
  const driver::Model marked = model(
      "def @f(%a: Tensor[(2), float32], Compiler=\"null\") { nn.relu(%a) }\n"
      "def @main(%x: Tensor[(2), float32]) { @f(%x) }\n");
  EXPECT_THAT(kit::user_error_of([&] { driver::compile_to_memory(marked); }), HasSubstr("the backend takes no op"));
}

}  // namespace
}  // namespace headrace::backends::null
