// Tests PlanDevices with golden texts, and with small programs and their expected results.
#include "passes/devices/plan_devices.h"

#include "ir/virtual_device.h"
#include "object/structural_equal.h"
#include "ops/tensor/device.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

struct DeviceCase {
  const char* name;
  const char* body;  // body of main over %x, %y: Tensor[(2), float32]
  const char* attrs;
  const char* expected;
};
void PrintTo(const DeviceCase& c, std::ostream* out) { *out << c.name; }

#define ON(x, device) "on_device(" x ", virtual_device=\"" device "\")"
#define COPY(x, from, to) "device_copy(" x ", src_virtual_device=\"" from "\", dst_virtual_device=\"" to "\")"

const std::vector<DeviceCase> kDeviceCases = {
    {"neighbours_before_and_after", "exp(" ON("tanh(negative(%x))", "cuda:0") ")", "[cuda:0, cpu:0] cuda:0",
     "  %0 = negative(%x);\n  %1 = tanh(%0);\n  exp(%1)\n"},
    {"two_devices_in_a_row", ON("exp(" ON("tanh(%x)", "cuda:0") ")", "cpu:0"), "[cuda:0, cpu:0] cpu:0",
     "  %0 = tanh(%x);\n  %1 = " COPY("%0", "cuda:0", "cpu:0") ";\n  exp(%1)\n"},
    {"the_first_operand_with_a_device_wins", "add(" ON("exp(%x)", "cuda:1") ", " ON("tanh(%y)", "cuda:0") ")",
     "[cuda:1, cuda:0] cuda:1",
     "  %0 = exp(%x);\n  %1 = tanh(%y);\n  %2 = " COPY("%1", "cuda:0", "cuda:1") ";\n  add(%0, %2)\n"},
    {"an_argument_needed_twice",
     "(" ON("exp(%x)", "cuda:0") ", " ON("tanh(%x)", "cuda:1") ", " ON("abs(%x)", "cuda:1") ")",
     "[cuda:0, cpu:0] (cuda:0; cuda:1; cuda:1)",
     "  %0 = exp(%x);\n  %1 = " COPY("%x", "cuda:0", "cuda:1") ";\n  %2 = tanh(%1);\n  %3 = abs(%1);\n"
                                                               "  (%0, %2, %3)\n"},
    {"only_the_result_is_asked_for",
     "on_device(exp(%x), virtual_device=\"cuda:0\", constrain_result=True, constrain_body=False)",
     "[cuda:0, cpu:0] cuda:0", "  exp(%x)\n"},
    {"constants_are_everywhere", "(" ON("add(%x, 1f)", "cuda:0") ", " ON("add(%y, 1f)", "cuda:1") ", 1f)",
     "[cuda:0, cuda:1] (cuda:0; cuda:1; cpu:0)", "  %0 = add(%x, 1f);\n  %1 = add(%y, 1f);\n  (%0, %1, 1f)\n"},
    {"a_let_variable",
     "let %v {virtual_device=\"cuda:0\"}: Tensor[(2), float32] = exp(%x);\n  " ON("tanh(%v)", "cpu:0"),
     "[cuda:0, cpu:0] cpu:0",
     "  let %v: Tensor[(2), float32] = exp(%x);\n  %0 = " COPY("%v", "cuda:0", "cpu:0") ";\n  tanh(%0)\n"},
    {"a_field_of_a_tuple", "let %t = (" ON("exp(%x)", "cuda:0") ", tanh(%y));\n  " ON("negative(%t.0)", "cuda:1"),
     "[cuda:0, cpu:0] cuda:1",
     "  %0 = exp(%x);\n  %1 = " COPY("%0", "cuda:0", "cuda:1") ";\n  %2 = tanh(%y);\n  let %t = (%1, %2);\n"
                                                               "  %3 = %t.0;\n  negative(%3)\n"},
    {"conditions_are_decided_by_the_host", "if (less(sum(" ON("exp(%x)", "cuda:0") "), 1f)) { %x } else { %y }",
     "[cuda:0, cuda:0] cuda:0",
     "  %0 = exp(%x);\n  %1 = sum(%0);\n  %2 = less(%1, 1f);\n  %3 = " COPY(
         "%2", "cuda:0", "cpu:0") ";\n  if (%3) {\n    %x\n  } else {\n    %y\n  }\n"},
    {"branches_on_two_devices", "if (True) { " ON("exp(%x)", "cuda:0") " } else { " ON("tanh(%y)", "cuda:1") " }",
     "[cuda:0, cuda:1] cuda:0",
     "  if (True) {\n    exp(%x)\n  } else {\n    %0 = tanh(%y);\n    " COPY("%0", "cuda:1", "cuda:0") "\n  }\n"},
    {"a_reference_is_on_one_device",
     "let %r = ref(" ON("exp(%x)", "cuda:0") ");\n  let %u = ref_write(%r, " ON("tanh(%y)",
                                                                                "cuda:1") ");\n  ref_read(%r)",
     "[cuda:0, cuda:1] cuda:0",
     "  %0 = exp(%x);\n  let %r = ref(%0);\n  %1 = tanh(%y);\n  %2 = " COPY(
         "%1", "cuda:1", "cuda:0") ";\n  let %u = ref_write(%r, %2);\n  ref_read(%r)\n"},
    {"a_closure_has_one_device_for_each_parameter",
     "let %f = fn (%a: Tensor[(2), float32]) -> Tensor[(2), float32] { " ON("exp(%a)", "cuda:0") " };\n  %f(" ON(
         "tanh(%x)", "cuda:1") ")",
     "[cuda:1, cpu:0] cuda:0",
     "  let %f = fn (%a: Tensor[(2), float32]) -> Tensor[(2), float32] {\n    exp(%a)\n  };\n  %0 = tanh(%x);\n  %1 "
     "= " COPY("%0", "cuda:1", "cuda:0") ";\n  %f(%1)\n"},
    {"a_copy_that_copies_nothing", COPY("exp(%x)", "cuda:0", "cuda(0)"), "[cuda:0, cpu:0] cuda:0", "  exp(%x)\n"},
    {"the_memory_is_part_of_the_device", ON("exp(" ON("tanh(%x)", "cuda:0") ")", "cuda:0/texture"),
     "[cuda:0, cpu:0] cuda:0/texture",
     "  %0 = tanh(%x);\n  %1 = " COPY("%0", "cuda:0", "cuda:0/texture") ";\n  exp(%1)\n"},
};

class Devices : public testing::TestWithParam<DeviceCase> {
 protected:
  static IRModule program() {
    return read(
        fmt::format("def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {{\n  {}\n}}", GetParam().body));
  }
};

TEST_P(Devices, AsWorkedOutByHand) {
  const IRModule after = run_pass("PlanDevices", program());
  const auto main = after->lookup("main").cast<relay::FunctionNode>();
  const auto params = main->attrs.get(kParamVirtualDevices)->as<Array<std::string>>();
  EXPECT_EQ(fmt::format("[{}] {}", fmt::join(params, ", "), main->attrs.get(kResultVirtualDevice)->as<std::string>()),
            GetParam().attrs);
  const std::string text = relay::print_module(after);
  const size_t begin = text.find("{\n") + 2;
  EXPECT_EQ(text.substr(begin, text.rfind('}') - begin), GetParam().expected);
}

TEST_P(Devices, ResultsAreTheSameAndSoIsASecondPlan) {
  const IRModule before = program(), after = run_pass("PlanDevices", before);
  expect_same_results(before, after, {ramp({2}, 0.5f), ramp({2}, -1)}, 0);
  const auto mismatch = first_mismatch(Value(after), Value(run_pass("PlanDevices", after)));
  EXPECT_FALSE(mismatch) << mismatch->path << "\n" << relay::print_module(after);
}

INSTANTIATE_TEST_SUITE_P(Programs, Devices, testing::ValuesIn(kDeviceCases),
                         [](const auto& info) { return info.param.name; });

std::string device_error(const std::string& text, const pass::PassContext& context = typed_context()) {
  try {
    run_pass("PlanDevices", read(text), context);
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

TEST(PlanDevices, ContradictionsAreReported) {
  const auto main = [](const std::string& body) { return "def @main(%x: Tensor[(2), float32]) { " + body + " }"; };
  EXPECT_EQ(device_error(main("let %a = exp(%x); (" ON("%a", "cuda:0") ", " ON("%a", "cuda:1") ")")),
            "the value is asked to be on cuda:0 and on cuda:1; copy it by device_copy for one of them");
  EXPECT_EQ(device_error(main(ON("exp(%x)", "gpu:0"))).substr(0, 54),
            "on_device: 'gpu' in 'gpu:0' is not a kind of device; t");
  const auto held = [](const char* op, const char* device) {
    return fmt::format("ref(on_device({}(%x), virtual_device=\"{}\", constrain_result=True))", op, device);
  };
  EXPECT_EQ(device_error(main("let %r = " + held("exp", "cuda:0") + "; let %s = " + held("tanh", "cuda:1") +
                              "; let %t = if (True) { %r } else { %s }; ref_read(%t)")),
            "a value of type ref(Tensor[(2), float32]) is on cuda:1 and is needed on cuda:0; only tensors are copied "
            "between devices: copy those in it, or keep it on one device");
  EXPECT_NE(device_error(main(ON("(%x, %x)", "cuda:0"))).find("must be a tensor"), std::string::npos)
      << device_error(main(ON("(%x, %x)", "cuda:0")));
  const auto planned = [&](const std::string& result) {
    return device_error("def @main(%x: Tensor[(2), float32], result_virtual_device=\"" + result + "\") { (%x, %x) }");
  };
  EXPECT_EQ(planned("(cuda:0; cpu:0"),
            "result_virtual_device: '(cuda:0; cpu:0' has no ')' at its end; devices are written (cpu:0; cuda:0)");
  EXPECT_EQ(planned("(cuda:0; cpu:0; cpu:0)"),
            "result_virtual_device: '(cuda:0; cpu:0; cpu:0)' names 3 devices, the value has 2 parts");
  pass::PassContext context = typed_context();
  context.config.set("relay.PlanDevices.default_device", Value("cuda"));
  EXPECT_EQ(device_error(main(ON("exp(%x)", "cuda:0")), context), "no error");
  context.config.set("relay.PlanDevices.default_device", Value(3));
  EXPECT_EQ(device_error(main("%x"), context), "relay.PlanDevices.default_device must be a text such as cuda:0, got 3");
}

TEST(PlanDevices, TheDefaultDeviceIsAnOption) {
  pass::PassContext context = typed_context();
  context.config.set("relay.PlanDevices.default_device", Value("cuda:3"));
  const IRModule after = run_pass("PlanDevices",
                                  read("def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {"
                                       " (" ON("exp(%x)", "cpu:0") ", exp(%y)) }"),
                                  context);
  const auto main = after->lookup("main").cast<relay::FunctionNode>();
  EXPECT_EQ(main->attrs.get(kResultVirtualDevice)->as<std::string>(), "(cpu:0; cuda:3)");
}

// A group made by FuseOps runs on one device: an annotation in it would be lost.
TEST(PlanDevices, RunsBeforeFuseOps) {
  const std::string text = "def @main(%x: Tensor[(2), float32]) { " ON("exp(%x)", "cuda:0") " }";
  const IRModule fused = run_pass("FuseOps", read(text));
  try {
    run_pass("PlanDevices", fused);
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(), "on_device is within a unit, which runs on one device; run PlanDevices before FuseOps");
  }
}

TEST(PlanDevices, TargetsWithCommasAreReadBack) {
  const IRModule once =
      run_pass("PlanDevices", read("def @main(%x: Tensor[(2), float32]) { (" ON("exp(%x)", "cuda:0") ", " ON(
                                  "tanh(%x)", "cpu:0@llvm -mattr=+avx,+fma") ") }"));
  const auto main = once->lookup("main").cast<relay::FunctionNode>();
  EXPECT_EQ(main->attrs.get(kResultVirtualDevice)->as<std::string>(),
            "(cuda:0; cpu:0@llvm -keys=cpu -mattr=+avx,+fma)");
  EXPECT_TRUE(structural_equal(run_pass("PlanDevices", once), once));
}

TEST(PlanDevices, ATupleIsCopiedOnceForEachDevice) {
  const IRModule after =
      run_pass("PlanDevices",
               read("def @main(%x: Tensor[(2), float32]) { let %t = (" ON("exp(%x)", "cuda:0") ", " ON(
                   "tanh(%x)", "cuda:0") "); (" ON("concatenate(%t)", "cuda:1") ", " ON("concatenate(%t, axis=-1)",
                                                                                        "cuda:1") ") }"));
  const std::string text = relay::print_module(after);
  size_t copies = 0;
  for (size_t at = text.find("device_copy("); at != std::string::npos; at = text.find("device_copy(", at + 1)) ++copies;
  EXPECT_EQ(copies, 2) << text;
}

TEST(PlanDevices, ManyClauses) {
  std::string types, clauses;
  for (int i = 0; i < 400; ++i) {
    types += fmt::format("{}C{}(Tensor[(2), float32])", i == 0 ? "" : ", ", i);
    clauses += fmt::format("C{}(%h{}) => negative(%h{}), ", i, i, i);
  }
  const IRModule after =
      run_pass("PlanDevices", read("type T { " + types +
                                   " }\n"
                                   "def @main(%x: Tensor[(2), float32]) { match (C1(" ON("exp(%x)", "cuda:0") ")) { " +
                                   clauses + "} }"));
  const auto main = after->lookup("main").cast<relay::FunctionNode>();
  EXPECT_EQ(main->attrs.get(kResultVirtualDevice)->as<std::string>(), "cuda:0");
}

TEST(VirtualDevice, TextReadsBack) {
  for (const char* text : {"cpu:0", "cuda:12", "opencl:1/global.texture", "cpu:0@llvm -keys=cpu -mcpu=znver4"})
    EXPECT_EQ(to_string(parse_virtual_device(text)), text);
  EXPECT_EQ(to_string(parse_virtual_device("cuda")), "cuda:0");
  EXPECT_EQ(to_string(parse_virtual_device("cuda(3)")), "cuda:3");
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1/", "cuda:99999999999", "cpu@", "cuda(1",
                           "cuda:1/a,b", "cuda:1/(a)", "cpu:0; cuda:0"}) {
    EXPECT_THROW(parse_virtual_device(text), UserError) << text;
  }
}

}  // namespace
}  // namespace headrace::passes
