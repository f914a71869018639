// Tests the reader of TVM's JSON. The base64 of tensors was made by Python's struct and base64 from the layout in
// tvm_tensor.h.
#include "relay/text/tvm_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/virtual_device.h"
#include "kit/errors.h"
#include "kit/mutate.h"
#include "kit/options.h"
#include "ops/all_ops.h"
#include "relay/expr.h"
#include "relay/text/tests/tvm_graphs.h"

namespace headrace::relay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Value read_graph(const std::vector<std::string>& nodes, const std::vector<std::string>& tensors = {}) {
  ops::register_all_ops();
  return read_tvm_json(tvm_graph(nodes, tensors));
}

// Returns the node with these attributes, and others behind it.
Value read_one(const std::string& key, const std::string& attributes, std::vector<std::string> more = {}) {
  more.insert(more.begin(), fmt::format(R"({{"type_key": "{}", "attrs": {{{}}}}})", key, attributes));
  return read_graph(more);
}

std::string tvm_error_of(const std::vector<std::string>& nodes, const std::vector<std::string>& tensors = {}) {
  return kit::user_error_of([&] { read_graph(nodes, tensors); });
}

constexpr const char* kConstantOfTensor0 = R"({"type_key": "relay.Constant", "attrs": {"data": "0", "span": "0"}})";

std::string string_node(const std::string& text) {
  return fmt::format(R"({{"type_key": "runtime.String", "repr_str": "{}"}})", text);
}

std::string int_node(int value, const std::string& dtype = "int32") {
  return fmt::format(R"({{"type_key": "IntImm", "attrs": {{"dtype": "{}", "span": "0", "value": "{}"}}}})", dtype,
                     value);
}

std::string array_node(const std::string& places) {
  return fmt::format(R"({{"type_key": "Array", "data": [{}]}})", places);
}

TEST(TvmJson, ReadsStrings) {
  EXPECT_EQ(read_graph({string_node("NCHW")}).as<std::string>(), "NCHW");
  EXPECT_EQ(read_graph({R"({"type_key": "runtime.String"})"}).as<std::string>(), "");
  EXPECT_EQ(read_graph({R"({"type_key": "runtime.String", "repr_b64": "AwAAAAAAAABhCmI="})"}).as<std::string>(),
            "a\nb");
}

TEST(TvmJson, ReadsNumbers) {
  EXPECT_EQ(read_graph({R"({"type_key": "runtime.BoxInt", "repr_str": "-7"})"}).as<int64_t>(), -7);
  EXPECT_EQ(read_graph({R"({"type_key": "runtime.BoxFloat", "repr_str": "2.5e-3"})"}).as<double>(), 0.0025);
  EXPECT_TRUE(read_graph({R"({"type_key": "runtime.BoxBool", "repr_str": "true"})"}).as<bool>());
  EXPECT_FALSE(read_graph({R"({"type_key": "runtime.BoxBool", "repr_str": "false"})"}).as<bool>());
  const auto integer = read_graph({int_node(-3, "int8")}).as<IntImm>();
  EXPECT_EQ(integer->value, -3);
  EXPECT_EQ(integer->dtype, DataType::int_(8));
  EXPECT_EQ(read_graph({int_node(255, "uint8")}).as<IntImm>()->value, 255);
  const auto real = read_one("FloatImm", R"("dtype": "float32", "value": "inf")").as<FloatImm>();
  EXPECT_EQ(real->value, std::numeric_limits<double>::infinity());
}

// The value is a node, or the string itself as in version 0.6.
TEST(TvmJson, ReadsStringsInEitherPlace) {
  EXPECT_EQ(read_one("StringImm", R"("value": "2")").as<std::string>(), "2");
  EXPECT_EQ(read_one("tir.StringImm", R"("value": "2")", {string_node("here")}).as<std::string>(), "here");
  EXPECT_EQ(read_one("relay.GlobalVar", R"("name_hint": "main")").as<GlobalVar>()->name_hint, "main");
  EXPECT_EQ(read_one("GlobalVar", R"("name_hint": "2")", {string_node("main")}).as<GlobalVar>()->name_hint, "main");
}

TEST(TvmJson, ReadsMaps) {
  using Ints = Map<std::string, int64_t>;
  const std::string seven = R"({"type_key": "runtime.BoxInt", "repr_str": "7"})";
  for (const char* key : {"Map", "StrMap"}) {
    const std::string map = fmt::format(R"({{"type_key": "{}", "keys": ["a", "b"], "data": [2, 2]}})", key);
    const auto read = read_graph({map, seven}).as<Ints>();
    EXPECT_EQ(read.at("a"), 7) << key;
    EXPECT_EQ(read.at("b"), 7) << key;
  }
  const auto by_nodes = read_graph({R"({"type_key": "Map", "data": [3, 2, 2, 3]})", seven, string_node("k")});
  EXPECT_EQ(by_nodes.as_node<MapObj>()->items.size(), 2u);
  EXPECT_EQ(read_one("DictAttrs", R"("__dict__": "2")", {R"({"type_key": "Map", "keys": ["c"], "data": [3]})", seven})
                .as<Ints>()
                .at("c"),
            7);
  EXPECT_TRUE(read_graph({R"({"type_key": "Map"})"}).as<Ints>().empty());
}

TEST(TvmJson, ReadsDimensions) {
  const std::string n = R"({"type_key": "tir.SizeVar", "attrs": {"name": "4", "dtype": "int32"}})";
  const auto text_of = [&](const std::string& key) {
    const Value read = read_one(key, R"("a": "2", "b": "3", "span": "0")", {n, int_node(3), string_node("n")});
    return to_string(make_tensor_type(Array<PrimExpr>{read.as<PrimExpr>()}));
  };
  EXPECT_EQ(text_of("tir.Add"), "Tensor[(n + 3), float32]");
  EXPECT_EQ(text_of("Sub"), "Tensor[(n - 3), float32]");
  EXPECT_EQ(text_of("tir.Mul"), "Tensor[(n * 3), float32]");
  EXPECT_EQ(text_of("Div"), "Tensor[(n / 3), float32]");
  EXPECT_EQ(text_of("tir.Mod"), "Tensor[(n % 3), float32]");
  EXPECT_EQ(text_of("tir.FloorDiv"), "Tensor[(floordiv(n, 3)), float32]");
  EXPECT_EQ(text_of("tir.FloorMod"), "Tensor[(floormod(n, 3)), float32]");
  EXPECT_EQ(text_of("tir.Min"), "Tensor[(min(n, 3)), float32]");
  EXPECT_EQ(text_of("Max"), "Tensor[(max(n, 3)), float32]");
  const auto cast = read_one("tir.Cast", R"("value": "2", "dtype": "int64")", {n, "0", string_node("n")});
  EXPECT_EQ(cast.as<PrimExpr>()->dtype, DataType::int_(64));
}

TEST(TvmJson, ReadsTypes) {
  const auto text_of = [](const std::string& key, const std::string& attributes) {
    const std::vector<std::string> parts{array_node("3, 3"),
                                         R"({"type_key": "TensorType", "attrs": {"shape": "4", "dtype": "bool"}})",
                                         array_node("5, 6"),
                                         int_node(2),
                                         R"({"type_key": "tir.Any", "attrs": {"dtype": "int32"}})",
                                         R"({"type_key": "GlobalTypeVar", "attrs": {"name_hint": "8", "kind": "5"}})",
                                         string_node("List")};
    return to_string(read_one(key, attributes, parts).as<Type>());
  };
  EXPECT_EQ(text_of("TupleType", R"("fields": "2", "span": "0")"), "(Tensor[(2, ?), bool], Tensor[(2, ?), bool])");
  EXPECT_EQ(text_of("relay.RefType", R"("value": "3")"), "ref(Tensor[(2, ?), bool])");
  EXPECT_EQ(text_of("RelayRefType", R"("value": "3")"), "ref(Tensor[(2, ?), bool])");
  EXPECT_EQ(text_of("TypeCall", R"("func": "7", "args": "2")"), "List[Tensor[(2, ?), bool], Tensor[(2, ?), bool]]");
  EXPECT_EQ(text_of("relay.FuncType", R"("arg_types": "2", "ret_type": "3", "type_params": "null")"),
            "fn (Tensor[(2, ?), bool], Tensor[(2, ?), bool]) -> Tensor[(2, ?), bool]");
}

TEST(TvmJson, ReadsDevicesAndTargets) {
  const std::vector<std::string> parts{
      R"({"type_key": "Target", "attrs": {"kind": "3", "tag": "4", "keys": "5", "attrs": "7", "features": "0", "host": "0"}})",
      R"({"type_key": "TargetKind", "repr_str": "llvm"})",
      string_node(""),
      array_node("6"),
      string_node("cpu"),
      R"({"type_key": "Map", "keys": ["mcpu", "num-cores"], "data": [8, 9]})",
      string_node("znver4"),
      int_node(4),
      string_node("global")};
  const auto text_of = [&](const std::string& attributes) {
    return to_string(read_one("VirtualDevice", attributes, parts).as<VirtualDevice>());
  };
  EXPECT_EQ(text_of(R"("device_type_int": "1", "virtual_device_id": "0", "target": "0", "memory_scope": "4")"),
            "cpu:0");
  EXPECT_EQ(text_of(R"("device_type_int": "2", "virtual_device_id": "-1", "target": "0", "memory_scope": "10")"),
            "cuda:0/global");
  EXPECT_EQ(text_of(R"("device_type_int": "4", "virtual_device_id": "3", "target": "2", "memory_scope": "4")"),
            "opencl:3@llvm -keys=cpu -mcpu=znver4 -num-cores=4");
}

TEST(TvmJson, ReadsTensorsOfEveryDtype) {
  const std::string head = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAA";
  for (const auto& [dtype, rest] : std::vector<std::pair<std::string, std::string>>{
           {"int8", "AIAQACAAAAAAAAAAIAAAAAAAAAAQM="},
           {"int16", "AQAQACAAAAAAAAAAQAAAAAAAAAAQADAA=="},
           {"int32", "AgAQACAAAAAAAAAAgAAAAAAAAAAQAAAAMAAAA="},
           {"int64", "BAAQACAAAAAAAAABAAAAAAAAAAAQAAAAAAAAADAAAAAAAAAA=="},
           {"uint8", "EIAQACAAAAAAAAAAIAAAAAAAAAAQM="},
           {"uint16", "EQAQACAAAAAAAAAAQAAAAAAAAAAQADAA=="},
           {"uint32", "EgAQACAAAAAAAAAAgAAAAAAAAAAQAAAAMAAAA="},
           {"uint64", "FAAQACAAAAAAAAABAAAAAAAAAAAQAAAAAAAAADAAAAAAAAAA=="},
           {"float16", "IQAQACAAAAAAAAAAQAAAAAAAAAADwAQg=="},
           {"float32", "IgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA="},
           {"float64", "JAAQACAAAAAAAAABAAAAAAAAAAAAAAAAAA8D8AAAAAAAAIQA=="},
           {"bfloat16", "QQAQACAAAAAAAAAAQAAAAAAAAAgD9AQA=="}}) {
    SCOPED_TRACE(dtype);
    const NDArray data = read_graph({kConstantOfTensor0}, {head + rest}).as<Constant>()->data;
    EXPECT_EQ(data.dtype().to_string(), dtype);
    EXPECT_EQ(data.shape(), Shape{2});
    EXPECT_EQ(element_as_double(data.tensor(), 0), 1);
    EXPECT_EQ(element_as_double(data.tensor(), 1), 3);
  }
  // A bool of one bit, and of its own code.
  for (const char* rest : {"EBAQACAAAAAAAAAAIAAAAAAAAAAQA=", "YIAQACAAAAAAAAAAIAAAAAAAAAAQA="}) {
    const NDArray data = read_graph({kConstantOfTensor0}, {head + rest}).as<Constant>()->data;
    EXPECT_EQ(data.dtype(), DataType::bool_());
    EXPECT_TRUE(data.content_equal(NDArray::from_vector<uint8_t>({2}, DataType::bool_(), {1, 0})));
  }
}

TEST(TvmJson, ReadsTensorsOfAnyShape) {
  const auto read = [](const char* tensor) { return read_graph({kConstantOfTensor0}, {tensor}).as<Constant>()->data; };
  EXPECT_TRUE(
      read("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQACAAAAAAAAAAMAAAAAAAAAGAAAAAAAAAAAAIA/AAAAQAAAQEAAAIBAAACgQAAA"
           "wEA=")
          .content_equal(NDArray::from_vector<float>({2, 3}, DataType::float_(32), {1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(read("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAAAAAAIgAQAEAAAAAAAAAAAAAD8=")
                  .content_equal(NDArray::from_vector<float>({}, DataType::float_(32), {0.5f})));
  EXPECT_EQ(read("P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQAAAAAAAAAAAAMAAAAAAAAAAAAAAAAAAAA=").shape(),
            (Shape{0, 3}));
}

// A text that names a tensor often does not take its memory as often.
TEST(TvmJson, KeepsSharing) {
  const auto read = read_graph({array_node("2, 3, 3"), kConstantOfTensor0, kConstantOfTensor0},
                               {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA="})
                        .as<Array<Constant>>();
  EXPECT_EQ(read[1].get(), read[2].get());
  EXPECT_NE(read[0].get(), read[1].get());
  EXPECT_EQ(read[0]->data.data<void>(), read[1]->data.data<void>());
}

TEST(TvmJson, DamagedTensorsAreErrors) {
  for (const auto& [tensor, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "its header takes 8 bytes, and 0 are left"},
           {"P6G", "base64 data has 3 characters"},
           {"P6G!", "a character that is not a digit"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAA=", "a tensor is cut off: its device takes 8 bytes, and 4 are left"},
           {"3V5A8Ja0oT8AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA=",
            "no tensor begins with the number 0x3fa1b496f0405edd"},
           // The whole tensor in the other byte order.
           {"3V5A8Ja0oT8AAAAAAAAAAAAAAAEAAAAAAAAAAQIgAAEAAAAAAAAAAgAAAAAAAAAIP4AAAEBAAAA=",
            "no tensor begins with the number 0x3fa1b496f0405edd"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAVAAQABAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA=",
            "no dtype here of DLPack's code 5 with 64 bits and 1 lanes"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAAEAQACAAAAAAAAAAEAAAAAAAAAEw==", "code 0 with 4 bits"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAcIAQACAAAAAAAAAAIAAAAAAAAAAAA=", "code 7 with 8 bits"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAgABAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA=", "32 bits and 2 lanes"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAA/////wIgAQAIAAAAAAAAAAAAgD8AAEBA", "0 to 64 dimensions, got -1"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAABAAAAAIgAQAAAAAAAAAAAA==", "its shape takes 8 bytes, and 0 are left"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQAAAAAAAAEAAAAAEAAAAAAACAAAAAAAAAAAAIA/AABAQA==",
            "shape (1099511627776, 1048576) has too many elements"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQAAAAAAACAAAAgAAAAAAAAAAACAPwAAQEA=",
            "a tensor float32(35184372088832) takes 140737488355328 bytes, got 8"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQD+/////////wgAAAAAAAAAAACAPwAAQEA=", "a negative dimension"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAAAAAAAAAAQAACAPwAAQEA=",
            "its data takes 1152921504606846976 bytes, and 8 are left"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQADAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA=",
            "a tensor float32(3) takes 12 bytes, got 8"},
           {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAQEBhYmNk",
            "4 bytes are left over behind a tensor"},
       })
    EXPECT_THAT(tvm_error_of({kConstantOfTensor0}, {tensor}),
                AllOf(HasSubstr("node 1 (relay.Constant): "), HasSubstr(message)));
  const std::string deep = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAQQAAAAIgAQAA";
  EXPECT_THAT(tvm_error_of({kConstantOfTensor0}, {deep}), HasSubstr("0 to 64 dimensions, got 65"));
}

TEST(TvmJson, DamagedNodesAreErrors) {
  const auto node = [](const std::string& key, const std::string& attributes) {
    return fmt::format(R"({{"type_key": "{}", "attrs": {{{}}}}})", key, attributes);
  };
  const auto binary = [&](const std::string& key) { return node(key, R"("a": "2", "b": "3")"); };
  for (const auto& [nodes, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{node("relay.Call", R"("op": "2")")}, "node 1 (relay.Call): nodes of this kind are not read"},
           {{"7"}, "node 1: it is not an object"},
           {{R"({"type_key": 7})"}, R"(node 1: its "type_key" is not a string)"},
           {{array_node("1")}, "node 1 (Array): it is part of itself"},
           {{array_node("2"), array_node("3, 0"), array_node("1")}, "node 1 (Array): it is part of itself"},
           {{array_node("9")}, "node 1 (Array): there is no node 9"},
           {{array_node("-1")}, "it is not a list of places"},
           {{array_node("\"1\"")}, "it is not a list of places"},
           {{array_node("18446744073709551615")}, "there is no node 18446744073709551615"},
           {{R"({"type_key": "TypeVar", "attrs": "12"})"}, "it has no attributes by name"},
           {{R"({"type_key": "TypeVar", "attrs": {"kind": 0}})"}, "'kind' is not a string"},
           {{node("TypeVar", R"("kind": "0x0", "name_hint": "A")")}, "'kind' is not an integer: '0x0'"},
           {{node("TypeVar", R"("kind": "9", "name_hint": "A")")}, "node 1 (TypeVar): "},
           {{node("relay.Var", R"("vid": "x")")}, "'vid' is not an integer: 'x'"},
           {{node("relay.Var", R"("vid": "0")")}, "it has no 'vid'"},
           {{node("relay.Var", R"("vid": "2")"), array_node("0")}, "'vid' is not of kind str"},
           {{node("TensorType", R"("shape": "2", "dtype": "float32")"), array_node("0")}, "'shape' is not of kind"},
           {{node("TensorType", R"("dtype": "float33")")}, "float33"},
           {{int_node(128, "int8")}, "128 does not fit int8"},
           {{int_node(-1, "uint32")}, "-1 does not fit uint32"},
           {{int_node(2, "bool")}, "2 does not fit bool"},
           {{int_node(2, "float32")}, "an integer has the dtype float32"},
           {{node("FloatImm", R"("dtype": "int32", "value": "1")")}, "a float has the dtype int32"},
           {{node("FloatImm", R"("dtype": "float32", "value": "1,5")")}, "'value' is not a number: '1,5'"},
           {{node("tir.Var", R"("dtype": "int32x4", "name": "n")")}, "a variable has the dtype int32x4"},
           {{binary("tir.Add"), int_node(1), int_node(1, "int64")}, "its operands have the dtypes int32 and int64"},
           {{binary("tir.FloorMod"), int_node(1), int_node(0)}, "it divides by zero"},
           {{node("tir.Cast", R"("dtype": "handle", "value": "2")"), int_node(1)}, "it casts int32 to handle"},
           {{R"({"type_key": "Op", "global_key": "conv2e"})"}, "conv2e"},
           {{R"({"type_key": "runtime.BoxInt", "repr_str": "1x"})"}, "'1x' is not its number"},
           {{R"({"type_key": "runtime.BoxBool", "repr_str": "1"})"}, "'1' is neither true nor false"},
           {{R"({"type_key": "runtime.String", "repr_b64": "CQAAAAAAAABhCmI="})"}, "does not begin with its size"},
           {{R"({"type_key": "runtime.String", "repr_b64": "CQAA"})"}, "does not begin with its size"},
           {{R"({"type_key": "Map", "keys": ["a"], "data": []})"}, "its numbers of keys and values differ"},
           {{R"({"type_key": "Map", "data": [0]})"}, "its numbers of keys and values differ"},
           {{R"({"type_key": "Map", "keys": ["a", "a"], "data": [0, 0]})"}, "it has a key twice"},
           {{R"({"type_key": "Map", "keys": [1], "data": [0]})"}, "a key is not a string"},
           {{node("relay.Constant", R"("data": "1")")}, "there is no tensor 1"},
           {{node("relay.Constant", "")}, "it has no 'data'"},
       })
    EXPECT_THAT(tvm_error_of(nodes), HasSubstr(message));
}

TEST(TvmJson, DevicesThatNoTextNamesAreErrors) {
  const auto error_of = [](int type, int id, const char* scope) {
    return kit::user_error_of([&] {
      const std::string attributes = fmt::format(
          R"("device_type_int": "{}", "virtual_device_id": "{}", "target": "0", "memory_scope": "2")", type, id);
      read_one("VirtualDevice", attributes, {string_node(scope)});
    });
  };
  EXPECT_EQ(error_of(1, 0, "global.texture"), "");
  EXPECT_THAT(error_of(-1, -1, ""), HasSubstr("it names no type of device"));
  EXPECT_THAT(error_of(99, 0, ""), HasSubstr("there is no device here of DLPack's type 99"));
  EXPECT_THAT(error_of(1, -2, ""), HasSubstr("-2 is not a number of a device"));
  EXPECT_THAT(error_of(1, 0, "a b"), HasSubstr("names no memory after the '/'"));
  EXPECT_THAT(tvm_error_of({R"({"type_key": "Target", "attrs": {"kind": "2"}})",
                            R"({"type_key": "TargetKind", "repr_str": "cray"})"}),
              HasSubstr("cray"));
}

TEST(TvmJson, DamagedDocumentsAreErrors) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "it is damaged: "},
           {"[]", "it has no list of nodes"},
           {R"({"nodes": {}, "root": 0})", "it has no list of nodes"},
           {R"({"nodes": [], "root": -1})", "it has no root"},
           {R"({"nodes": []})", "it has no root"},
           {R"({"nodes": [], "root": 0})", "there is no node 0"},
           {R"({"nodes": [{}], "root": 0, "b64ndarrays": {}})", "it has no list of tensors"},
           {R"({"nodes": [{}], "root": 1e999})", "number overflow"},
           {"{\"nodes\": [{\"attrs\": {\"a\": \"\xff\"}}]}", "invalid string: ill-formed UTF-8 byte"},
           {std::string(100'000, '['), "it nests deeper than 4 levels"},
       })
    EXPECT_THAT(kit::user_error_of([&] { read_tvm_json(text); }), HasSubstr(message));
}

TEST(TvmJson, ErrorsAreWhereTheNodeBegins) {
  const auto offset_of = [](const std::string& text) -> std::string {
    try {
      read_tvm_json(text);
    } catch (const TvmJsonError& error) {
      return text.substr(error.offset(), 24);
    }
    return "none";
  };
  // Brackets and quotes in strings before it do not count.
  EXPECT_EQ(offset_of(tvm_graph({array_node("2, 3"), string_node("a\\\"}]"), array_node("77")}, {})),
            R"({"type_key": "Array", "d)");
  EXPECT_EQ(offset_of(R"({"nodes": [{}, {"type_key": "a"}, 5], "root": 1})"), R"({"type_key": "a"}, 5], ")");
  EXPECT_EQ(offset_of(R"({"root": 0, "nodes": [{} {}]})"), "{}]}");
  EXPECT_EQ(offset_of(R"({"root": 0)"), "");
}

// Graphs that are small as text and endless when they are walked.
TEST(TvmJson, LargeGraphsAreErrors) {
  std::vector<std::string> deep, wide;
  for (int i = 2; i < 1004; ++i) deep.push_back(array_node(fmt::format("{}", i)));
  deep.push_back(string_node(""));
  EXPECT_THAT(tvm_error_of(deep), HasSubstr("node 2 (Array): it nests deeper than 1000 levels"));
  for (int i = 2; i < 64; ++i) wide.push_back(array_node(fmt::format("{0}, {0}", i)));
  wide.push_back(string_node(""));
  EXPECT_THAT(tvm_error_of(wide), HasSubstr("it has more than 1000000 parts"));
}

std::string graph_of_many_kinds() {
  return tvm_graph(
      {R"({"type_key": "Map", "keys": ["relay.Constant", "VirtualDevice", "tir.Var"], "data": [2, 4, 7]})",
       array_node("3"), kConstantOfTensor0, array_node("5"),
       R"({"type_key": "VirtualDevice", "attrs": {"device_type_int": "2", "virtual_device_id": "0", "target": "0", "memory_scope": "6"}})",
       R"({"type_key": "runtime.String"})", array_node("8, 9"),
       R"({"type_key": "tir.Var", "attrs": {"name": "10", "dtype": "int32"}})", int_node(3), string_node("n")},
      {"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAQEA="});
}

TEST(TvmJson, TruncatedAnywhereIsAnError) {
  const std::string whole = graph_of_many_kinds();
  ASSERT_EQ(read_tvm_json(whole).as_node<MapObj>()->items.size(), 3u);
  for (size_t size = 0; size + 1 < whole.size(); ++size)
    EXPECT_THROW(read_tvm_json(std::string_view(whole).substr(0, size)), TvmJsonError) << size;
}

TEST(TvmJson, MutatedIsAnErrorOrAValue) {
  const std::string whole = graph_of_many_kinds();
  int errors = 0;
  const int runs = kit::case_count(2000, 200000);
  for (int run = 0; run < runs; ++run) {
    kit::Random random(kit::options().seed.value_or(static_cast<uint64_t>(run)));
    SCOPED_TRACE(::testing::Message() << "--seed=" << run);
    const std::string text = kit::mutate(whole, random);
    errors += kit::user_error_of([&] { read_tvm_json(text); }).empty() ? 0 : 1;
  }
  EXPECT_GT(errors, runs / 10);
  EXPECT_LT(errors, runs);
}

}  // namespace
}  // namespace headrace::relay
