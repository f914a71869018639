// Programs that several threads compile and run at the same time: for ThreadSanitizer, and for equal results. What is
// compared with is computed afterwards, because it would prepare tables that the threads then find ready.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/backends.h"
#include "kit/files.h"
#include "kit/model_zoo.h"
#include "kit/random.h"
#include "kit/relay_programs.h"
#include "load/run.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::driver {
namespace {

constexpr int kThreads = 4;

using Results = std::vector<NDArray>;

// Calls `job` with 0 to kThreads - 1 on a thread each, which begin together. A job that throws fails the test.
std::vector<Results> run_at_once(const std::function<Results(int)>& job) {
  std::vector<Results> results(kThreads);
  std::vector<std::string> errors(kThreads);
  std::barrier start(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        try {
          results[static_cast<size_t>(i)] = job(i);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(i)] = error.what();
        }
      });
    }
  }
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return results;
}

void expect_equal(const Results& expected, const Results& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  ASSERT_FALSE(expected.empty());
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_TRUE(expected[k].content_equal(actual[k])) << "output " << k;
}

// Compiles with two threads that generate code and evaluate constants, and runs with two.
Results compile_and_run(const Model& model, const Results& inputs, CompileOptions options = {}) {
  options.jobs = 2;
  const auto artifact = open_compiled(compile_to_memory(model, options), "test");
  return load::run(*load::make_executor(artifact, artifact::kDefaultProgram, {.threads = 2}), inputs);
}

Results inputs_of(const IRModule& module, uint64_t seed) {
  kit::Random random(seed);
  return kit::random_inputs(module, random);
}

IRModule small_program(uint64_t seed) {
  return kit::random_program(seed, {.steps = 12, .control_flow = false, .shape_arithmetic = false});
}

TEST(CompileThreads, ProgramsOfTheirOwn) {
  const auto job = [](int thread) {
    const auto seed = static_cast<uint64_t>(thread);
    const Model model = make_model(relay::parse_module(relay::print_module(small_program(seed))));
    return compile_and_run(model, inputs_of(model.module, seed));
  };
  const std::vector<Results> actual = run_at_once(job);
  for (int i = 0; i < kThreads; ++i) expect_equal(job(i), actual[static_cast<size_t>(i)]);
}

TEST(CompileThreads, OneProgramOfAll) {
  const Model model = make_model(small_program(100));
  const Results inputs = inputs_of(model.module, 100);
  const auto job = [&](int level) { return compile_and_run(model, inputs, {.passes = {.opt_level = level}}); };
  const std::vector<Results> actual = run_at_once(job);
  for (int i = 0; i < kThreads; ++i) expect_equal(job(i), actual[static_cast<size_t>(i)]);
}

TEST(CompileThreads, OneModelFileOfAll) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "compile_threads.onnx";
  kit::write_file(file, kit::make_zoo_model("squeezenet1_1", {.resolution = 32, .classes = 10}));
  const auto job = [&](int) {
    const Model model = load_model(file.string());
    return compile_and_run(model, inputs_of(model.module, 7));
  };
  const std::vector<Results> actual = run_at_once(job);
  const Results expected = job(0);
  for (const Results& results : actual) expect_equal(expected, results);
  std::filesystem::remove(file);
}

TEST(CompileThreads, BackendsOfAll) {
  for (const char* backend : {"ccompiler", "examplejson"}) {
    if (const std::string why = kit::why_without(backend); !why.empty()) GTEST_SKIP() << why;
  }
  const std::vector<std::string> backends = {"ccompiler", "examplejson"};
  const auto job = [&](int thread) {
    const Model model =
        make_model(relay::parse_module("#[version = \"0.0.5\"]\n"
                                       "def @main(%x: Tensor[(10, 10), float32], %y: Tensor[(10, 10), float32]) {\n"
                                       "  exp(multiply(subtract(add(%x, %y), %y), %x))\n"
                                       "}\n"));
    CompileOptions options = {.backends = {backends[static_cast<size_t>(thread) % 2]}};
    return compile_and_run(model, inputs_of(model.module, 3), options);
  };
  const std::vector<Results> actual = run_at_once(job);
  for (int i = 0; i < kThreads; ++i) expect_equal(job(i), actual[static_cast<size_t>(i)]);
}

// Constants large enough that several threads evaluate each of them.
TEST(CompileThreads, ConstantsOfAll) {
  const auto job = [](int) {
    const Model model =
        make_model(relay::parse_module("#[version = \"0.0.5\"]\n"
                                       "def @main(%x: Tensor[(160), float32]) {\n"
                                       "  let %c = exp(sin(full(0.5f, shape=[160, 160], dtype=\"float32\")));\n"
                                       "  sum(multiply(nn.dense(%c, %c, units=160), %x), axis=[0])\n"
                                       "}\n"));
    return compile_and_run(model, inputs_of(model.module, 5));
  };
  const std::vector<Results> actual = run_at_once(job);
  const Results expected = job(0);
  for (const Results& results : actual) expect_equal(expected, results);
}

TEST(CompileThreads, TheInterpreter) {
  const IRModule module = kit::random_program(11, {.steps = 30, .functional = true});
  const Results inputs = inputs_of(module, 11);
  const auto job = [&](int) { return interp::run_main(module, inputs); };
  const std::vector<Results> actual = run_at_once(job);
  const Results expected = job(0);
  for (const Results& results : actual) expect_equal(expected, results);
}

}  // namespace
}  // namespace headrace::driver
