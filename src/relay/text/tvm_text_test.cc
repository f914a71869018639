// Tests texts as TVM prints them: their #[metadata] is JSON of TVM, and let variables say their device. The base64 of
// tensors was made by Python's struct and base64 from the layout in tvm_tensor.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/target.h"
#include "kit/errors.h"
#include "kit/mutate.h"
#include "kit/options.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/text/tests/tvm_graphs.h"

namespace headrace::relay {
namespace {

using testing::HasSubstr;
using testing::Not;

// float32, [1, 3]
constexpr const char* kTwoFloats = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA=";
// int32, [1, 3]
constexpr const char* kTwoInts = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAAgAQACAAAAAAAAAAgAAAAAAAAAAQAAAAMAAAA=";

IRModule read_tvm(const std::string& program, const std::string& graph = "", const ParseOptions& options = {}) {
  ops::register_all_ops();
  const std::string metadata = graph.empty() ? "" : "\n#[metadata]\n" + graph;
  return infer_type(parse_module("#[version = \"0.0.5\"]\n" + program + metadata, "old.relay", options));
}

std::string tvm_text_error(const std::string& program, const std::string& graph, const ParseOptions& options = {}) {
  return kit::user_error_of([&] { read_tvm(program, graph, options); });
}

std::string lists_of_kind(const std::string& kind, const std::vector<std::string>& nodes,
                          const std::vector<std::string>& tensors = {}) {
  std::vector<std::string> all{fmt::format(R"({{"type_key": "Map", "keys": ["{}"], "data": [2]}})", kind), nodes[0]};
  all.insert(all.end(), nodes.begin() + 1, nodes.end());
  return tvm_graph(all, tensors);
}

// Constants with what TVM notes at them: a type, a place in another text and an unconstrained device.
std::string two_constants() {
  return lists_of_kind(
      "relay.Constant",
      {R"({"type_key": "Array", "data": [3, 10]})",
       R"({"type_key": "relay.Constant", "attrs": {"_checked_type_": "8", "data": "0", "span": "6", "virtual_device_": "4"}})",
       R"({"type_key": "VirtualDevice", "attrs": {"device_type_int": "-1", "memory_scope": "5", "target": "0", "virtual_device_id": "-1"}})",
       R"({"type_key": "runtime.String"})",
       R"({"type_key": "Span", "attrs": {"column": "62", "end_column": "81", "end_line": "14", "line": "14", "source_name": "7"}})",
       R"({"type_key": "SourceName", "repr_str": "from_string"})",
       R"({"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "9", "span": "0"}})",
       R"({"type_key": "Array"})",
       R"({"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": "1", "span": "0", "virtual_device_": "4"}})"},
      {kTwoFloats, kTwoInts});
}

TEST(TvmText, ConstantsAreInItsMetadata) {
  const IRModule read =
      read_tvm(R"(def @main(%x: Tensor[(2), float32] /* ty=Tensor[(2), float32] span=from_string:3:5 */) {
  %0 = add(%x, meta[relay.Constant][0] /* ty=Tensor[(2), float32] */) /* ty=Tensor[(2), float32] */;
  (%0, meta[relay.Constant][1])
})",
               two_constants());
  const IRModule literal = read_tvm(R"(def @main(%x: Tensor[(2), float32]) {
  (add(%x, const(Tensor[(2), float32], [1, 3])), const(Tensor[(2), int32], [1, 3]))
})");
  EXPECT_TRUE(structural_equal(read, literal));
  EXPECT_TRUE(structural_equal(infer_type(parse_module(print_module(read))), literal));
}

TEST(TvmText, AnExpressionHasMetadata) {
  ops::register_all_ops();
  const Expr read = parse_expr("meta[relay.Constant][1]\n#[metadata]\n" + two_constants());
  ASSERT_TRUE(read.is<ConstantNode>());
  EXPECT_EQ(element_as_int(read.cast<ConstantNode>()->data.tensor(), 1), 3);
}

TEST(TvmText, DevicesAreInItsMetadata) {
  const std::string graph = lists_of_kind(
      "VirtualDevice",
      {R"({"type_key": "Array", "data": [3, 4]})",
       R"({"type_key": "VirtualDevice", "attrs": {"device_type_int": "1", "memory_scope": "5", "target": "0", "virtual_device_id": "0"}})",
       R"({"type_key": "VirtualDevice", "attrs": {"device_type_int": "2", "memory_scope": "5", "target": "0", "virtual_device_id": "1"}})",
       R"({"type_key": "runtime.String"})"});
  const IRModule read = read_tvm(
      R"(def @main(%x {virtual_device=meta[VirtualDevice][0]}: Tensor[(2), float32], virtual_device=meta[VirtualDevice][1]) {
  on_device(exp(%x), virtual_device=meta[VirtualDevice][1], constrain_result=True)
})",
      graph);
  const IRModule plain = read_tvm(R"(def @main(%x: Tensor[(2), float32], param_virtual_devices=["cpu:0"],
      result_virtual_device="cuda:1") {
  on_device(exp(%x), virtual_device="cuda:1", constrain_result=True)
})");
  EXPECT_TRUE(structural_equal(read, plain));
  EXPECT_THAT(tvm_text_error("def @main() { on_device(1f, virtual_device=meta[VirtualDevice][2]) }", graph),
              HasSubstr("old.relay:2:44: there is no virtual device 2: the text has 2"));
}

// A symbol of several types is one node, and a size computed from it another.
TEST(TvmText, SymbolsAreInItsMetadata) {
  const std::string graph =
      tvm_graph({R"({"type_key": "Map", "keys": ["tir.SizeVar", "tir.Add"], "data": [2, 5]})",
                 R"({"type_key": "Array", "data": [3]})",
                 R"({"type_key": "tir.SizeVar", "attrs": {"name": "4", "dtype": "int32"}})",
                 R"({"type_key": "runtime.String", "repr_str": "n"})", R"({"type_key": "Array", "data": [6]})",
                 R"({"type_key": "tir.Add", "attrs": {"a": "3", "b": "7", "span": "0"}})",
                 R"({"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "1"}})"});
  const IRModule read = read_tvm(
      R"(def @main(%x: Tensor[(meta[tir.SizeVar][0], 2), float32], %y: Tensor[(1, 2), float32]) -> Tensor[(meta[tir.Add][0], 2), float32] {
  %0 = (%x, %y);
  concatenate(%0)
})",
      graph);
  const IRModule plain = read_tvm(
      R"(def @main(%x: Tensor[(n, 2), float32], %y: Tensor[(1, 2), float32]) -> Tensor[(n + 1, 2), float32] {
  concatenate((%x, %y))
})");
  EXPECT_TRUE(structural_equal(Value(read), Value(plain), {.map_free_vars = true})) << print_module(read);
}

// Attributes of functions that have no text in TVM.
TEST(TvmText, AttributesAreInItsMetadata) {
  const std::string graph = tvm_graph(
      {R"({"type_key": "Map", "keys": ["Map", "Target"], "data": [2, 5]})", R"({"type_key": "Array", "data": [3]})",
       R"({"type_key": "Map", "keys": ["level"], "data": [4]})",
       R"({"type_key": "IntImm", "attrs": {"dtype": "int64", "value": "3"}})", R"({"type_key": "Array", "data": [6]})",
       R"({"type_key": "Target", "attrs": {"kind": "7", "keys": "8", "attrs": "9", "tag": "10", "host": "0"}})",
       R"({"type_key": "TargetKind", "repr_str": "llvm"})", R"({"type_key": "Array"})", R"({"type_key": "Map"})",
       R"({"type_key": "runtime.String"})"});
  const IRModule read = read_tvm("def @main(%x: int32, limits=meta[Map][0], target=meta[Target][0]) { %x }", graph);
  const auto main = read->lookup("main").cast<FunctionNode>();
  EXPECT_EQ((main->attrs.at("limits").as<Map<std::string, int64_t>>().at("level")), 3);
  EXPECT_EQ(to_string(main->attrs.at("target").as<Target>()), "llvm -keys=cpu");
  EXPECT_TRUE(structural_equal(infer_type(parse_module(print_module(read))), read)) << print_module(read);
}

TEST(TvmText, ErrorsAreInTheText) {
  const std::string program = "def @main() { meta[relay.Constant][0] }";
  const auto error_of = [&](const std::string& graph) { return tvm_text_error(program, graph); };
  const std::string constant = R"({"type_key": "relay.Constant", "attrs": {"data": "0"}})";
  EXPECT_THAT(error_of(lists_of_kind("relay.Constant", {R"({"type_key": "Array", "data": [3]})", constant}, {"P6G0"})),
              HasSubstr("old.relay:12:5: the metadata of TVM: node 3 (relay.Constant): a tensor is cut off"));
  EXPECT_THAT(error_of("{\"root\": 0"), Not(HasSubstr("there is no data for constant")));
  EXPECT_THAT(error_of("{\n  \"root\": 0,\n  \"nodes\": [{}\n}"),
              HasSubstr("old.relay:7:1: the metadata of TVM: it is damaged: syntax error"));
  EXPECT_THAT(error_of("{\"root\": 0"), HasSubstr("the metadata of TVM: it is damaged: syntax error"));
  EXPECT_THAT(error_of(tvm_graph({constant}, {kTwoFloats})),
              HasSubstr("old.relay:3:1: the metadata of TVM is not a map of lists of nodes"));
  EXPECT_THAT(error_of(lists_of_kind("relay.Constant", {R"({"type_key": "Array", "data": [1]})"})),
              HasSubstr("node 1 (Map): it is part of itself"));
  const std::string name = R"({"type_key": "GlobalVar", "attrs": {"name_hint": "g"}})";
  for (const char* kind : {"relay.Constant", "VirtualDevice"})
    EXPECT_THAT(error_of(lists_of_kind(kind, {R"({"type_key": "Array", "data": [3]})", name})),
                HasSubstr(fmt::format("another node among those of the kind \"{}\"", kind)));
  EXPECT_THAT(error_of(lists_of_kind("Array", {R"({"type_key": "Array", "data": [0]})"})),
              HasSubstr("the metadata of TVM is not a map of lists of nodes"));
  EXPECT_THAT(error_of(two_constants() + "\ndef @f() { 1 }"), HasSubstr("it is damaged: syntax error"));
  const std::vector<NDArray> weights;
  EXPECT_THAT(tvm_text_error(program, two_constants(), {.weights = &weights}),
              HasSubstr("the text holds the data of its constants itself"));
}

TEST(TvmText, MutatedIsAnErrorOrAProgram) {
  ops::register_all_ops();
  const std::string whole =
      "#[version = \"0.0.5\"]\ndef @main() { meta[relay.Constant][0] }\n#[metadata]\n" + two_constants();
  int errors = 0;
  const int runs = kit::case_count(1000, 100000);
  for (int run = 0; run < runs; ++run) {
    kit::Random random(kit::options().seed.value_or(static_cast<uint64_t>(run)));
    SCOPED_TRACE(::testing::Message() << "--seed=" << run);
    const std::string text = kit::mutate(whole, random);
    errors += kit::user_error_of([&] { print_module(parse_module(text)); }).empty() ? 0 : 1;
  }
  EXPECT_GT(errors, runs / 10);
  EXPECT_LT(errors, runs);
}

// A let variable on a device is the result of an on_device.
TEST(TvmText, LetVariablesSayTheirDevice) {
  const std::vector<std::string> devices{"cpu:0", "cuda:0"};
  const auto read = [&](const std::string& body) {
    return read_tvm("def @main(%x: Tensor[(2), float32]) {\n  " + body + "\n}", "", {.virtual_devices = &devices});
  };
  const std::string on = "virtual_device=\"cuda:0\", constrain_result=True";
  const std::string plain = "let %y: Tensor[(2), float32] = on_device(exp(%x), " + on + ");\n  tanh(%y)";
  for (const char* old : {
           "let %y {virtual_device=meta[VirtualDevice][1]}: Tensor[(2), float32] = exp(%x);\n  tanh(%y)",
           "let %y {virtual_device=\"cuda(0)\"}: Tensor[(2), float32] = exp(%x);\n  tanh(%y)",
           // The value is there already.
           "let %y {virtual_device=meta[VirtualDevice][1]}: Tensor[(2), float32] = on_device(exp(%x), "
           "virtual_device=meta[VirtualDevice][1], constrain_result=True);\n  tanh(%y)",
       })
    EXPECT_TRUE(structural_equal(read(old), read(plain))) << old;
  EXPECT_TRUE(structural_equal(
      read(
          "let %y {virtual_device=meta[VirtualDevice][1]} = on_device(exp(%x), virtual_device=\"cpu:0\");\n  tanh(%y)"),
      read("let %y = on_device(on_device(exp(%x), virtual_device=\"cpu:0\"), " + on + ");\n  tanh(%y)")));
  const IRModule module = read(plain);
  EXPECT_TRUE(structural_equal(infer_type(parse_module(print_module(module))), module));
}

// A function has no device of its own; its parameters and its result have.
TEST(TvmText, ALetFunctionIsOnNoDevice) {
  const auto read = [&](const std::string& device) {
    return read_tvm(fmt::format(
        "def @main(%x: int32) {{\n  let %f {}= fn (%a: int32) -> int32 {{ %f(%a) }};\n  %f(%x)\n}}", device));
  };
  EXPECT_TRUE(structural_equal(read("{virtual_device=\"cuda:0\"} "), read("")));
}

TEST(TvmText, DevicesOfLetVariablesThatAreNoneAreErrors) {
  const auto error_of = [](const std::string& let) { return tvm_text_error("def @main() {\n  " + let + " 1\n}", ""); };
  EXPECT_THAT(error_of("let %y {virtual_device=meta[VirtualDevice][0]} = 1;"),
              HasSubstr("old.relay:3:26: there is no virtual device 0: the text has 0"));
  EXPECT_THAT(error_of("let %y {virtual_device=\"gpu\"} = 1;"), HasSubstr("'gpu' in 'gpu' is not a kind of device"));
  EXPECT_THAT(error_of("let %y {virtual_device=\"cpu:0\" = 1;"), HasSubstr("expected '}' after a variable's device"));
}

}  // namespace
}  // namespace headrace::relay
