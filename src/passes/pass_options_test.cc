// Tests that the listed defaults of all passes' options are how the passes run without them.
#include <set>

#include "kit/relay_programs.h"
#include "pass/known_passes.h"
#include "passes/fuse/fuse_ops.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// Something for each pass that has options.
constexpr const char* kEachOption =
    "def @callee(%x: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] { exp(%x) }\n"
    "def @unused(%x: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] { abs(%x) }\n"
    "def @main(%x: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
    "  let %once = negative(%x);\n"
    "  let %r = ref(%x);\n"
    "  let %_ = ref_write(%r, %w);\n"
    "  let %f = @callee;\n"
    "  let %a = on_device(tanh(%once), virtual_device=\"cpu:0\");\n"
    "  %0 = nn.dense(%x, %w); %1 = nn.dense(%x, exp(%w)); %2 = nn.dense(%x, abs(%w));\n"
    "  (%a, %f(%x), %0, %1, %2, nn.relu(negative(exp(%x))), cumsum(%x), concatenate((%x, %w, %x, %w)))\n}";

// Each option's listed default is the pass's behaviour without the option.
TEST(PassOptions, DefaultsAreWhatHoldsWithoutThem) {
  ops::register_all_ops();
  int num_defaults = 0;
  std::set<std::string> seen;  // a pass of two lists counts as it runs by its name
  for (const auto& list : {by_name(), canonical(), native({})}) {
    for (const pass::Pass& pass : list) {
      if (!seen.insert(pass.info.name).second) continue;
      pass::PassContext context = typed_context();
      pass::declare_options(pass.info);
      for (const pass::ConfigKey& option : pass.info.options) {
        const std::string key = pass::option_key(pass.info.name, option.name);
        if (!option.default_text.empty()) context.config.set(key, pass::parse_config_value(key, option.default_text));
      }
      num_defaults += static_cast<int>(context.config.size());
      if (context.config.empty()) continue;
      for (const IRModule& module : {kit::random_program(3, {.steps = 40}), read(kEachOption)}) {
        const IRModule plain = run_pass(pass.info.name, module), with = run_pass(pass.info.name, module, context);
        EXPECT_EQ(relay::print_module(plain), relay::print_module(with)) << pass.info.name;
      }
      // No program here is that deep.
      EXPECT_EQ(fuse_options(context).max_depth, FuseOptions().max_depth);
    }
  }
  EXPECT_GT(num_defaults, 10);
}

}  // namespace
}  // namespace headrace::passes
