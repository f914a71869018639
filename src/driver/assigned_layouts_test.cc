// The layouts that AssignLayout gives whole networks: nearly all arithmetic of their convolutions is in blocks of
// channels, and few tensors change their layout.
#include <gtest/gtest.h>

#include "cost/op_work.h"
#include "driver/register_all.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/file/read_model.h"
#include "kit/model_zoo.h"
#include "ops/nn/conv.h"
#include "ops/op_handles.h"
#include "passes/tests/pass_testing.h"
#include "relay/match.h"

namespace headrace::driver {
namespace {

struct Network {
  const char* name;
  int64_t resolution;
  int most_changes;  // changes of tensors' layouts; those of kernels do not count
};

class AssignedLayouts : public testing::TestWithParam<Network> {};

bool is_blocked(const relay::CallNode& call) {
  const ops::ConvForm form = ops::conv_form(call.attrs_as<ops::ConvAttrs>());
  return form.out_layout == "NCHW16c";
}

TEST_P(AssignedLayouts, AreBlocksWithFewChanges) {
  register_all();
  const std::string bytes = kit::make_zoo_model(GetParam().name, {.resolution = GetParam().resolution});
  IRModule module = onnx::import_model(onnx::read_model(std::as_bytes(std::span(bytes)), "zoo")).module;
  pass::PassContext context = passes::typed_context();
  context.opt_level = 3;
  module = pass::run_passes(passes::canonical(), module, context);
  context.config.set("relay.AssignLayout.block", Value(int64_t{16}));
  module = passes::run_pass("AssignLayout", module, context);
  double all = 0, blocked = 0;
  int changes = 0;
  relay::post_order(passes::main_of(module).body, [&](const Expr& expr) {
    const auto* call = relay::op_call(expr);
    if (call == nullptr) return;
    if (relay::is_call(*call, op::kConv2D)) {
      const double operations = cost::work_of(*call).operations;
      all += operations;
      blocked += is_blocked(*call) ? operations : 0;
    } else if (relay::is_call(*call, op::kLayoutTransform)) {
      changes += relay::free_vars(expr).empty() ? 0 : 1;
    }
  });
  EXPECT_GT(all, 0);
  EXPECT_GE(blocked, 0.95 * all);
  EXPECT_LE(changes, GetParam().most_changes);
}

INSTANTIATE_TEST_SUITE_P(Zoo, AssignedLayouts,
                         testing::Values(Network{"resnet50", 96, 2}, Network{"vgg16", 64, 2},
                                         Network{"inception_v3", 139, 4}, Network{"squeezenet1_1", 96, 4}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headrace::driver
