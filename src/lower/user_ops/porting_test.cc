// A user's library that registers ops in the form of Relay, loaded and used from here.
#include "lower/user_ops/porting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>

#include "interp/interp.h"
#include "kit/errors.h"
#include "kit/load_library.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

constexpr std::array<float, 6> kNumbers{1, 2, 3, 4, 5, 6};

class PortedOps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { told(); }
  static const std::string& told() {
    static const std::string text = kit::told_by_loading(HEADRACE_PORTED_OP);
    return text;
  }
  static IRModule parse(const std::string& body) {
    return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\ndef @main" + body, "test"));
  }
};

TEST_F(PortedOps, AnOpHasWhatItWasGiven) {
  const Op op = get_op("mine.scale");
  EXPECT_EQ(op->doc, "data * factor");
  EXPECT_EQ(op->num_inputs, 1);
  EXPECT_EQ(op->arguments[0].name, "data");
  EXPECT_EQ(op->support_level, 3);
  EXPECT_EQ(*op->find(ops::kFusionKind), ops::FusionKind::elementwise);
  EXPECT_TRUE(op->find(OpKey<Value>{"target.mychip"})->as<bool>());
  EXPECT_FALSE(get_op("nn.relu")->find(OpKey<Value>{"target.mychip"})->as<bool>());
}

TEST_F(PortedOps, RelationsInRelaysFormInfer) {
  const IRModule scaled = parse("(%x: Tensor[(2, 3), float32]) { mine.scale(%x, factor=0.5f) }");
  EXPECT_EQ(to_string(scaled->lookup("main").cast<relay::FunctionNode>()->body->checked_type()),
            "Tensor[(2, 3), float32]");
  const NDArray x = NDArray::from_bytes({2, 3}, DataType::float_(32), std::as_bytes(std::span(kNumbers)));
  EXPECT_EQ(interp::run_main(scaled, {x}).at(0).data<const float>()[5], 3);
  // A type that a relation assumes of an argument becomes its type.
  const IRModule pair = parse("(%x: Tensor[(2, 3), float32], %y) { mine.pair(%x, %y) }");
  const auto main = pair->lookup("main").cast<relay::FunctionNode>();
  EXPECT_EQ(to_string(main->params[1]->checked_type()), "Tensor[(2, 3), float32]");
  EXPECT_THAT(kit::user_error_of(
                  [] { parse("(%x: Tensor[(2, 3), float32], %y: Tensor[(3, 2), float32]) { mine.pair(%x, %y) }"); }),
              HasSubstr("argument 1 must be Tensor[(2, 3), float32], got Tensor[(3, 2), float32]"));
  EXPECT_THAT(kit::user_error_of([] { parse("(%x: Tensor[(2), float32]) { mine.stray(%x) }"); }),
              HasSubstr("its type relation assigns to a type that it was not given"));
}

TEST_F(PortedOps, RefusedRegistrationsAreReported) {
  EXPECT_THAT(told(), HasSubstr("headrace: not registered: 'nn.relu' is an op of Headrace, which is not changed"));
  EXPECT_THAT(told(), HasSubstr("headrace: not registered: 'not a name' cannot name an op"));
  EXPECT_EQ(get_op("nn.relu")->num_inputs, 1);
}

}  // namespace
}  // namespace headrace
