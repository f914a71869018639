// Outputs of a data-dependent size, from the model to each way of reading them.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>

#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "kit/host.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

// An output along its first axis, one along its last, one that is always as large, two of another extent.
constexpr const char* kPlaces =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(3, 4), float32]) {\n"
    "  let %places = argwhere(%x);\n"
    "  let %large = argwhere(greater(%x, 1f));\n"
    "  (%places, cast(transpose(%places, axes=[1, 0]), dtype=\"int64\"),\n"
    "   add(annotation.stop_fusion(multiply(%x, 2f)), %x), multiply(%large, 3), %large)\n"
    "}\n";

Model bounded_model(const std::string& text) {
  ops::register_all_ops();
  return make_model(relay::parse_module(text));
}

NDArray mask(const std::vector<float>& values) { return NDArray::from_vector({3, 4}, DataType::float_(32), values); }

const std::vector<std::vector<float>> kMasks{
    {0, 1, 0, 0, 2, 0, 0, 0, 0, 0, -3, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};

void expect_equal(const std::vector<NDArray>& want, const std::vector<NDArray>& got) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(want[i].shape(), got[i].shape()) << "output " << i;
    EXPECT_TRUE(want[i].content_equal(got[i])) << "output " << i;
  }
}

TEST(BoundedOutputs, AreWhatTheInterpreterGives) {
  const Model model = bounded_model(kPlaces);
  for (const int level : {0, 3}) {
    const auto executor = load::make_executor(
        open_compiled(compile_to_memory(model, {.passes = {.opt_level = level}, .verify_each = true}), "test"),
        "default", {.threads = 2});
    for (const auto& values : kMasks) {
      const std::vector<NDArray> inputs{mask(values)};
      expect_equal(interp::run_main(model.module, inputs), load::run(*executor, inputs));
    }
  }
}

TEST(BoundedOutputs, TheManifestNamesThem) {
  const CompiledModel compiled = compile_to_memory(bounded_model(kPlaces), {});
  const artifact::Program& program = compiled.report.manifest.programs[0];
  ASSERT_EQ(program.outputs.size(), 5u);
  EXPECT_EQ(program.outputs[0].shape, (std::vector<int64_t>{12, 2}));
  EXPECT_EQ(program.outputs[1].shape, (std::vector<int64_t>{2, 12}));
  ASSERT_EQ(program.bounded_outputs.size(), 4u);
  EXPECT_EQ(program.bounded_outputs[0].extent, program.bounded_outputs[1].extent);
  EXPECT_NE(program.bounded_outputs[0].extent, program.bounded_outputs[2].extent);
  EXPECT_EQ(program.bounded_outputs[1].output, 1);
  EXPECT_EQ(program.bounded_outputs[1].axis, 1);
}

TEST(BoundedOutputs, ModuleAndCApiGiveTheActualShape) {
  const auto executor = load::make_executor(open_compiled(compile_to_memory(bounded_model(kPlaces), {}), "test"),
                                            "default", {.threads = 1});
  executors::Executor& runner = *executor;
  EXPECT_EQ(runner.output(1).shape[1], 12);
  const NDArray x = mask(kMasks[0]);
  executors::throw_if_failed(runner.set_input(0, x.tensor()));
  ASSERT_EQ(runner.run().code, 0);
  const DLTensor& places = runner.output(1);
  ASSERT_EQ(places.shape[1], 3);
  EXPECT_EQ(places.strides[0], 3);
  const auto* data = static_cast<const int64_t*>(places.data);
  EXPECT_EQ(std::vector<int64_t>(data, data + 6), (std::vector<int64_t>{0, 1, 2, 1, 0, 2}));
}

TEST(BoundedOutputs, BareClientsNeedTheRuntime) {
  const std::string path = testing::TempDir() + "headrace_bounded.so";
  compile_to_file(bounded_model(kPlaces), path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto run = reinterpret_cast<headrace_run_function>(dlsym(library, HR_RUN_SYMBOL));
  char message[200] = "";
  const HeadraceHost host = kit::host_with_message(message);
  EXPECT_EQ(run(nullptr, 0, nullptr, 0, &host), HR_REASON_NEEDS_RUNTIME);
  EXPECT_STREQ(message, "this file needs libheadrace_rt: the size of its output 'output0' is data-dependent");
  dlclose(library);
  hr_artifact* artifact = nullptr;
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_artifact_open(path.c_str(), &artifact), HR_OK);
  hr_tensor_info info;
  ASSERT_EQ(hr_artifact_output_info(artifact, nullptr, 0, &info), HR_OK);
  EXPECT_EQ(info.shape[0], 12);
  ASSERT_EQ(hr_executor_create(artifact, nullptr, nullptr, &executor), HR_OK);
  const NDArray x = mask(kMasks[0]);
  ASSERT_EQ(hr_executor_set_input(executor, 0, &x.tensor()), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  DLTensor view;
  ASSERT_EQ(hr_executor_get_output(executor, 0, &view), HR_OK);
  EXPECT_EQ(view.shape[0], 3);
  EXPECT_EQ(view.shape[1], 2);
  hr_executor_destroy(executor);
  hr_artifact_close(artifact);
  unlink(path.c_str());
}

TEST(BoundedOutputs, TextDoesNotSayWhatTheyAre) {
  for (const char* rows : {"[0, 0, 1]", "7", "[9, -1]"}) {
    const Model model = bounded_model(
        fmt::format("#[version = \"0.0.5\"]\n"
                    "def @main(%x: Tensor[(2), float32], %n: Tensor[(1), int64], bounded_outputs={}) {{ (%x, %n) }}\n",
                    rows));
    EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(model); }),
                testing::HasSubstr("@main has the attribute bounded_outputs, which the compiler makes"));
  }
}

TEST(BoundedOutputs, OnlyResultsMayBe) {
  const auto error = [](const std::string& body) {
    return kit::user_error_of([&] {
      compile_to_memory(
          bounded_model("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(3, 4), float32]) {\n  " + body + "\n}\n"));
    });
  };
  EXPECT_THAT(error("sum(argwhere(%x))"), testing::AllOf(testing::HasSubstr("a data-dependent size"),
                                                         testing::HasSubstr("; they are read by sum\n  at: argwhere")));
  EXPECT_THAT(error("(argwhere(%x), nn.softmax(cast(argwhere(%x), dtype=\"float32\"), axis=0))"),
              testing::HasSubstr("as results alone"));
}

TEST(BoundedOutputs, AnInputThatSaysASizeIsToBeBound) {
  const std::string text =
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(3, 4), float32], %s: Tensor[(2), int64]) { nn.relu(reshape(%x, %s)) }\n";
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(bounded_model(text)); }),
              testing::HasSubstr("make an input that says a size a constant (--bind, in Python bound)"));
}

}  // namespace
}  // namespace headrace::driver
