// The graphs of examplejson: text, errors with their lines, calls from several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "backends/examplejson/run/graph_module.h"
#include "backends/examplejson/run/graph_text.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "tensor/ndarray.h"

namespace headrace::backends::examplejson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTwoGraphs =
    "subgraph_0\n"
    "  input 0 2 2\n"
    "  input 1 2 2\n"
    "  add 4 inputs: 0 1 shape: 2 2\n"
    "\n"
    "subgraph_1\n"
    "input 0 3\n"
    "mul 7 inputs: 0 0 shape: 3\n"
    "sub 8 inputs: 7 0 shape: 3\n";

NDArray numbers(const Shape& shape, std::vector<float> values) {
  return NDArray::from_vector(shape, DataType::float_(32), values);
}

std::vector<float> values_of(const NDArray& array) {
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

// Both functions are looked up before either is called.
TEST(ExampleJsonGraphs, EachSubgraphIsAFunction) {
  const runtime::Module module = make_graph_module(kTwoGraphs);
  const PackedFunc first = module.GetFunction("subgraph_0"), second = module.GetFunction("subgraph_1");
  EXPECT_FALSE(module.GetFunction("subgraph_2"));
  NDArray sum = numbers({2, 2}, {0, 0, 0, 0}), difference = numbers({3}, {0, 0, 0});
  const Value returned = first(numbers({2, 2}, {1, 2, 3, 4}), numbers({2, 2}, {10, 20, 30, 40}), sum);
  EXPECT_THAT(values_of(sum), ElementsAre(11, 22, 33, 44));
  EXPECT_EQ(returned.as<NDArray>().data<float>(), sum.data<float>());
  second(numbers({3}, {1, 2, 3}), difference);
  EXPECT_THAT(values_of(difference), ElementsAre(0, 2, 6));
}

TEST(ExampleJsonGraphs, BytesAndSourceAreTheText) {
  const runtime::Module module = make_graph_module(kTwoGraphs);
  EXPECT_EQ(module.SaveToBinary(), fmt::format("{}\n{}", std::string(kTwoGraphs).size(), kTwoGraphs));
  EXPECT_EQ(module.GetSource(), kTwoGraphs);
  EXPECT_EQ(module.type_key(), "examplejson");
}

TEST(ExampleJsonGraphs, AFileHoldsTheText) {
  register_loaders();
  const runtime::Module module = make_graph_module(kTwoGraphs);
  const std::string path = testing::TempDir() + "graph_test.examplejson";
  kit::write_file(path, "a longer text that was here before, of which nothing must stay" + std::string(kTwoGraphs));
  for (const char* format : {"", "examplejson"}) {
    module.SaveToFile(path, format);
    EXPECT_EQ(kit::read_file(path), kTwoGraphs) << format;
  }
  const Value loaded = find_global("runtime.module.loadfile_examplejson")(path, std::string("examplejson"));
  EXPECT_EQ(loaded.as<runtime::Module>().GetSource(), kTwoGraphs);
  EXPECT_THAT(kit::user_error_of([&] { module.SaveToFile(path, "json"); }),
              HasSubstr("graphs of examplejson have no file format 'json'; leave it out"));
  EXPECT_THAT(kit::user_error_of([&] { module.SaveToFile("/dev/full", ""); }), HasSubstr("cannot write '/dev/full'"));
  EXPECT_THAT(kit::user_error_of([&] { module.SaveToFile("/no/such/folder/f", ""); }), HasSubstr("No such file"));
}

TEST(ExampleJsonGraphs, ThreadsCallOneFunctionAtOnce) {
  const PackedFunc square = make_graph_module("f\ninput 0 1000\nmul 1 inputs: 0 0 shape: 1000\n").GetFunction("f");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      const NDArray x = numbers({1000}, std::vector<float>(1000, static_cast<float>(t)));
      NDArray y = numbers({1000}, std::vector<float>(1000, 0));
      for (int i = 0; i < 20; ++i) {
        square(x, y);
        for (const float value : values_of(y)) wrong += value != static_cast<float>(t * t) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ExampleJsonGraphs, ErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has no subgraph"},
      {"\n \n", "has no subgraph"},
      {"input 0 3\n", "line 1 of the examplejson graphs: 'input' stands before the name of a subgraph"},
      {"f\ninput 0 3\n", "the subgraph 'f' ends without a node that computes its output"},
      {"f\ninput 0 3\ng\n", "line 3 of the examplejson graphs: the subgraph 'f' ends without"},
      {"f\ninput 0 3\npow 1 inputs: 0 0 shape: 3\n", "line 3 of the examplejson graphs: 'pow' is not an op"},
      {"f\ninput 0 3\nadd 1 inputs: 0 2 shape: 3\n", "line 3 of the examplejson graphs: the id 2 is not defined"},
      {"f\ninput 0 3\nadd 0 inputs: 0 0 shape: 3\n", "the id 0 is defined twice"},
      {"f\ninput x 3\n", "line 2 of the examplejson graphs: 'x' is not a number"},
      {"f\ninput 0 3x\n", "'3x' is not a number"},
      {"f\ninput 0 -3\n", "-3 is out of range"},
      {"f\ninput 0 99999999999999999999\n", "'99999999999999999999' is not a number"},
      {"f\ninput 0 1000000000 1000000000\n", "the tensor has too many elements"},
      {"f\ninput 0 3\nadd 1 inputs: 0 0 shape: 4\n", "the shape is (4), and that of the tensors before (3)"},
      {"f\ninput 0 3\nadd 1 inputs: 0\n", "the line of a node is: add ID inputs: ID ID shape: DIMS"},
      {"f\ninput\n", "an input has an id and a shape"},
      {"f\ninput 0 3\nadd 1 inputs: 0 0 shape: 3\nf\n", "there are two subgraphs 'f'"},
      {"f\ninput 0 3\nwhat?\n", "'what?' is not an op"},
  };
  for (const auto& [text, words] : cases)
    EXPECT_THAT(kit::user_error_of([&] { read_graph_text(text); }), HasSubstr(words)) << text;
}

// Cut anywhere, the text is an error or a shorter one, never a crash.
TEST(ExampleJsonGraphs, ACutTextIsAnErrorOrShorter) {
  const std::string whole = kTwoGraphs;
  for (size_t length = 0; length < whole.size(); ++length) {
    try {
      EXPECT_LE(read_graph_text(whole.substr(0, length)).size(), 2u);
    } catch (const UserError& error) {
      EXPECT_FALSE(error.message().empty());
    }
  }
}

TEST(ExampleJsonGraphs, ArgumentsAreChecked) {
  const PackedFunc f = make_graph_module("f\ninput 0 2\nadd 1 inputs: 0 0 shape: 2\n").GetFunction("f");
  const NDArray x = numbers({2}, {1, 2});
  const auto error = [](auto&& call) { return kit::user_error_of(call); };
  EXPECT_THAT(error([&] { f(x); }), HasSubstr("'f' takes 2 tensors, its inputs and its output, and got 1"));
  EXPECT_THAT(error([&] { f(x, 3); }), HasSubstr("argument 1 of 'f' is not a tensor"));
  EXPECT_THAT(error([&] { f(x, numbers({3}, {1, 2, 3})); }), HasSubstr("is not a float32 tensor of shape (2)"));
  EXPECT_THAT(error([&] { f(NDArray::empty({2}, DataType::float_(64)), x); }), HasSubstr("argument 0 of 'f' is not a"));
}

}  // namespace
}  // namespace headrace::backends::examplejson
