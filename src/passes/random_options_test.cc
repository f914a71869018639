// Holds passes that need options or annotations to their properties, over random programs that have them.
#include <set>

#include "kit/random.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/device.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "passes/layout/convert_layout.h"
#include "passes/simplify/legalize.h"
#include "passes/tests/random_programs.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

using relay::CallNode;

// `after` as a failure shows it, where there is one.
std::optional<std::string> told(std::optional<std::string> failure, const IRModule& after) {
  return failure ? std::optional(fmt::format("{}\nafter:\n{}", *failure, relay::print_module(after))) : failure;
}

// Expects that enough programs contained what the pass looks for, except in a run of one case (--seed) or of few.
void expect_more(int count, int least) {
  if (!kit::options().seed && kit::options().size != kit::TestSize::kFew) {
    EXPECT_GT(count, least);
  }
}

struct LayoutCase {
  const char* layout;
  const char* kernel;
  int64_t channels;  // channels of the programs
  bool is_packed;
};
void PrintTo(const LayoutCase& c, std::ostream* out) { *out << c.layout; }

class RandomLayouts : public testing::TestWithParam<LayoutCase> {};

TEST_P(RandomLayouts, KeepTheResults) {
  const LayoutCase& c = GetParam();
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{c.layout, c.kernel});
  for (const char* op : {"nn.max_pool2d", "nn.global_avg_pool2d"}) desired.set(op, Array<std::string>{c.layout});
  int changed = 0;
  const auto check = [&](const Program& p) {
    pass::PassContext context = typed_context();
    context.config.set("relay.ConvertLayout.desired_layouts", Value(desired));
    const IRModule before = p.module(), after = run_pass("ConvertLayout", before, context);
    changed += count_calls(after, "layout_transform") > count_calls(before, "layout_transform");
    // A kernel adds in another order.
    return told(results_differ(before, after, p.seed, kRounding), after);
  };
  EXPECT_TRUE(kit::holds(property_of_programs(check, true, c.channels)));
  expect_more(changed, 3);
}

INSTANTIATE_TEST_SUITE_P(RandomPrograms, RandomLayouts,
                         testing::Values(LayoutCase{"NHWC", "OHWI", 3, false}, LayoutCase{"NHWC", "default", 3, false},
                                         LayoutCase{"NCHW4c", "default", 8, true},
                                         LayoutCase{"NCHW8c", "OIHW8i8o", 8, true},
                                         LayoutCase{"NCHW16c", "default", 16, true}),
                         [](const auto& info) { return fmt::format("{}_{}", info.param.layout, info.param.kernel); });

// `program` with a third of its op calls on devices.
IRModule annotated(const IRModule& program, uint64_t seed) {
  kit::Random random(seed);
  const IRModule result = snapshot(program);
  for (const auto& [var, function] : program->functions()) {
    const auto* node = function.as<relay::FunctionNode>();
    const Expr body = relay::rewrite_post_order(node->body, [&](const Expr& before, const Expr& after) {
      const auto* call = after.as<relay::CallNode>();
      const bool is_annotated = call != nullptr && call->as_op() != nullptr &&
                                before->checked_type().is<TensorTypeNode>() && random.integer(0, 2) == 0;
      const char* devices[] = {"cpu:0", "cuda:0", "cuda:1"};
      const bool both = random.integer(0, 3) == 0;
      return is_annotated ? ops::on_device(after, devices[random.integer(0, 2)], both) : after;
    });
    result->add_function(var, copy_with(*node, [&](relay::FunctionNode& copy) { copy.body = body; }), true);
  }
  return relay::infer_type(result);
}

// A value of a data type, or a function, that is needed on two devices is refused; all other programs keep their
// results, and a second run finds the same plan.
TEST(RandomPrograms, PlannedDevicesKeepTheResults) {
  int programs = 0, refused = 0, copies = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&](const Program& p) -> std::optional<std::string> {
    // Half of the programs have data types and closures.
    const IRModule program = kit::random_program(p.seed, {.steps = p.steps, .functional = p.seed % 2 == 0});
    const IRModule before = annotated(program, p.seed);
    ++programs;
    try {
      const IRModule after = run_pass("PlanDevices", before);
      copies += count_calls(after, "device_copy");
      if (auto failure = results_differ(before, after, p.seed, 0)) return told(failure, after);
      return told(not_equal(after, run_pass("PlanDevices", after)), after);
    } catch (const UserError& error) {
      ++refused;
      const bool is_meant = error.message().find("only tensors are copied") != std::string::npos ||
                            error.message().find("a variable of the pattern") != std::string::npos;
      return is_meant ? std::nullopt : std::optional(error.message());
    }
  })));
  EXPECT_LE(3 * refused, programs) << "data and functions that would have to move";
  expect_more(copies, programs);
}

// Counts constructors and functions of the module that are used as values and not called.
int values_of_the_module(const IRModule& module) {
  int count = 0;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, [&](const Expr& e) {
      if (e.is<OpNode>() || e.is<ConstructorNode>() || e.is<GlobalVarNode>()) return;
      const auto* call = e.as<CallNode>();
      for (const Expr& child : relay::children_of(e)) {
        const bool is_called = call != nullptr && child.same_as(call->op);
        count += !is_called && (child.is<ConstructorNode>() || child.is<GlobalVarNode>()) ? 1 : 0;
      }
    });
  }
  return count;
}

TEST(RandomPrograms, EtaExpansionKeepsTheResults) {
  int changed = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&](const Program& p) -> std::optional<std::string> {
    pass::PassContext context = typed_context();
    context.config.set("relay.EtaExpand.expand_constructor", Value(true));
    context.config.set("relay.EtaExpand.expand_global_var", Value(true));
    const IRModule before = p.module(), after = run_pass("EtaExpand", before, context);
    changed += values_of_the_module(before) > 0;
    if (values_of_the_module(after) > 0) return told("a value of the module is left", after);
    return told(results_differ(before, after, p.seed, 0), after);
  })));
  expect_more(changed, 0);
}

// No call is left with more than that many inputs and results together, up to the last bit.
TEST(RandomPrograms, SplitArgsKeepTheResults) {
  int split = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&](const Program& p) -> std::optional<std::string> {
    const auto most = static_cast<int64_t>(3 + p.seed % 4);
    pass::PassContext context = typed_context();
    context.config.set("relay.SplitArgs.max_function_args", Value(most));
    const IRModule before = p.module(), after = run_pass("SplitArgs", before, context);
    split += count_calls(after, "concatenate") > count_calls(before, "concatenate");
    std::optional<std::string> failure = results_differ(before, after, p.seed, 0);
    relay::post_order(after->lookup("main"), [&](const Expr& e) {
      const auto* call = e.as<CallNode>();
      const auto* tuple = call == nullptr || call->args.empty() ? nullptr : call->args[0].as<relay::TupleNode>();
      if (tuple != nullptr && call->as_op() != nullptr && static_cast<int64_t>(tuple->items.size()) >= most)
        failure = fmt::format("{} reads {} tensors", call->as_op()->name, tuple->items.size());
    });
    return told(failure, after);
  })));
  expect_more(split, 3);
}

// Legalizations of some ops as users write them; they use arguments any number of times.
std::vector<std::pair<const char*, LegalizeFn>> legalisations() {
  const auto zero = [](const Array<Type>& types) {
    return Expr(relay::make_scalar(0, types[0].as<TensorTypeNode>()->dtype));
  };
  return {
      {"nn.relu", [=](const CallNode& call,
                      const Array<Type>& types) { return ops::binary("maximum", call.args[0], zero(types)); }},
      {"negative",
       [=](const CallNode& call, const Array<Type>& types) { return ops::subtract(zero(types), call.args[0]); }},
      {"abs",
       [](const CallNode& call, const Array<Type>&) {
         return ops::binary("maximum", call.args[0], ops::unary("negative", call.args[0]));
       }},
      {"minimum",
       [](const CallNode& call, const Array<Type>&) {
         const Expr less = ops::binary("less", call.args[0], call.args[1]);
         return ops::where(less, call.args[0], call.args[1]);
       }},
      {"add",  // now and then: what it says no to stays
       [](const CallNode& call, const Array<Type>& types) {
         const auto* type = types[0].as<TensorTypeNode>();
         const bool is_vector = type != nullptr && type->shape.size() == 1;
         return is_vector ? ops::subtract(call.args[0], ops::unary("negative", call.args[1])) : Expr();
       }},
  };
}

TEST(RandomPrograms, LegalisationsKeepTheResults) {
  ops::register_all_ops();
  const std::string attr = "test.random_legalize";
  const auto list = legalisations();
  for (const auto& [op, legalize] : list) set_legalize(get_op(op), legalize, attr);
  int changed = 0;
  EXPECT_TRUE(kit::holds(property_of_programs([&](const Program& p) -> std::optional<std::string> {
    pass::PassContext context = typed_context();
    context.config.set("relay.Legalize.legalize_map_attr_name", Value(attr));
    const IRModule before = p.module(), after = run_pass("Legalize", before, context);
    changed += count_calls(before, "nn.relu") > 0;
    if (count_calls(after, "nn.relu") > 0) return told("nn.relu is left", after);
    return told(results_differ(before, after, p.seed, 0), after);
  })));
  for (const auto& [op, legalize] : list) clear_legalize(get_op(op), attr);
  expect_more(changed, 3);
}

}  // namespace
}  // namespace headrace::passes
