// The whole path: text or ONNX in, a native artifact out, run and compared with the interpreter.
#include "driver/compile.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/architecture.h"
#include "driver/all_passes.h"
#include "driver/output_file.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "kit/host.h"
#include "kit/random_array.h"
#include "load/run.h"
#include "lower/compute_rule.h"
#include "ops/all_ops.h"
#include "ops/nn/conv.h"
#include "passes/layout/convert_layout.h"
#include "plan/static_main_tables.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "tir/parse.h"
#include "tir/verify.h"

namespace headrace::driver {
namespace {

const std::string kModels = std::string(HEADRACE_SOURCE_DIR) + "/models/";

// Convolutions with and without a stride, branches that join, a pool, a dense layer, a softmax; outputs that are an
// input and a shared value.
constexpr const char* kProgram =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3, 9, 11), float32], %w: Tensor[(8, 3, 3, 3), float32], %b: Tensor[(8), float32],\n"
    "          %v: Tensor[(5, 40), float32]) {\n"
    "  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);\n"
    "  %1 = nn.relu(nn.bias_add(%0, %b));\n"
    "  %2 = nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);\n"
    "  %3 = nn.max_pool2d(%1, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]);\n"
    "  %4 = concatenate((%3, multiply(%2, 0.5f)), axis=1);\n"
    "  %5 = nn.batch_flatten(nn.global_avg_pool2d(%4));\n"
    "  %6 = nn.dense(reshape(%5, newshape=[2, 16]), strided_slice(%v, begin=[0, 0], end=[5, 16]), units=5);\n"
    "  (nn.softmax(%6), %1, %b)\n"
    "}\n";

Model read(const std::string& text) {
  ops::register_all_ops();
  return make_model(relay::parse_module(text));
}

std::vector<NDArray> inputs_of(const Model& model) {
  std::vector<NDArray> inputs;
  for (const relay::Var& param : model.module->lookup("main").cast<relay::FunctionNode>()->params) {
    inputs.push_back(kit::random_array(param->type_annotation.as<TensorTypeNode>()->concrete_shape(),
                                       static_cast<uint32_t>(inputs.size())));
  }
  return inputs;
}

std::shared_ptr<executors::Executor> open(CompiledModel compiled, int threads) {
  return load::make_executor(open_compiled(std::move(compiled), "test"), artifact::kDefaultProgram,
                             {.threads = threads});
}

void expect_close(const std::vector<NDArray>& expected, const std::vector<NDArray>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(expected[k].shape(), actual[k].shape());
    // Sums cancel: errors are of the largest value.
    double largest = 1;
    for (int64_t i = 0; i < expected[k].num_elements(); ++i) {
      largest = std::max(largest, std::abs(element_as_double(expected[k].tensor(), i)));
    }
    for (int64_t i = 0; i < expected[k].num_elements(); ++i) {
      const double want = element_as_double(expected[k].tensor(), i), got = element_as_double(actual[k].tensor(), i);
      ASSERT_NEAR(want, got, 1e-5 * largest) << "output " << k << " element " << i;
    }
  }
}

std::string bytes_of(const Descriptor& descriptor) {
  std::string bytes(static_cast<size_t>(lseek(descriptor.number(), 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(descriptor.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

TEST(Compile, AgreesWithTheInterpreterAtEveryLevelAndThreadCount) {
  const Model model = read(kProgram);
  const std::vector<NDArray> inputs = inputs_of(model);
  const std::vector<NDArray> expected =
      interp::run_main(model.module, inputs, {.precision = interp::Precision::float64});
  for (const int level : {0, 1, 2, 3}) {
    std::vector<NDArray> first;
    for (const int threads : {1, 3}) {
      const auto executor = open(compile_to_memory(model, {.passes = {.opt_level = level}}), threads);
      const std::vector<NDArray> actual = load::run(*executor, inputs);
      expect_close(expected, actual);
      for (size_t k = 0; k < first.size(); ++k) EXPECT_TRUE(first[k].content_equal(actual[k])) << "threads change bits";
      first = actual;
    }
  }
}

// Large enough for threads, in numbers that they do not divide: depthwise and grouped convolutions, windows that
// overhang, rows of few tiles, stages that share their loops.
constexpr const char* kWideProgram =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 23, 17, 15), float32], %d: Tensor[(23, 1, 3, 3), float32],\n"
    "          %w: Tensor[(24, 23, 1, 1), float32], %g: Tensor[(36, 6, 3, 3), float32],\n"
    "          %k: Tensor[(50, 36, 3, 3), float32]) {\n"
    "  %0 = nn.conv2d(%x, %d, padding=[1, 1, 1, 1], groups=23, channels=23, kernel_size=[3, 3]);\n"
    "  %1 = nn.conv2d(clip(%0, a_min=0f, a_max=6f), %w, channels=24, kernel_size=[1, 1]);\n"
    "  %2 = nn.avg_pool2d(%1, pool_size=[3, 3], padding=[1, 1, 1, 1]);\n"
    "  %3 = nn.conv2d(%2, %g, strides=[2, 2], padding=[1, 1, 1, 1], groups=4, channels=36, kernel_size=[3, 3]);\n"
    "  %4 = nn.conv2d(%3, %k, padding=[1, 1, 1, 1], channels=50, kernel_size=[3, 3]);\n"
    "  (nn.softmax(reshape(%0, newshape=[46, 255])), nn.softmax(%1, axis=1), nn.relu(%4))\n"
    "}\n";

TEST(Compile, ThreadsChangeNoBits) {
  const Model model = read(kWideProgram);
  const std::vector<NDArray> inputs = inputs_of(model);
  const std::vector<NDArray> expected =
      interp::run_main(model.module, inputs, {.precision = interp::Precision::float64});
  std::vector<NDArray> one;
  for (const int threads : {1, 2, 3, 7}) {
    const auto executor = open(compile_to_memory(model, {}), threads);
    const std::vector<NDArray> actual = load::run(*executor, inputs);
    expect_close(expected, actual);
    if (one.empty()) one = actual;
    for (size_t k = 0; k < one.size(); ++k) EXPECT_TRUE(one[k].content_equal(actual[k])) << threads << " threads";
  }
}

TEST(Compile, PassesOverLoopsMayBeLeftOut) {
  const Model model = read(kProgram);
  const std::vector<NDArray> inputs = inputs_of(model);
  const std::vector<NDArray> expected =
      interp::run_main(model.module, inputs, {.precision = interp::Precision::float64});
  for (const char* name : {"VectorizeLoop", "unroll_loop", "LowerMath"}) {
    SCOPED_TRACE(name);
    const auto executor =
        open(compile_to_memory(model, {.passes = {.opt_level = 3, .disabled_pass = {name}}, .verify_each = true}), 2);
    expect_close(expected, load::run(*executor, inputs));
  }
}

TEST(Compile, LoopsAreDumpedAsTextThatReadsBack) {
  const Model model = read(kProgram);
  const auto folder = std::filesystem::path(testing::TempDir()) / "headrace_loops" / "new";
  std::filesystem::remove_all(folder);
  const std::string plain = bytes_of(compile_to_memory(model).descriptor);
  EXPECT_EQ(plain, bytes_of(compile_to_memory(model, {.verify_each = true, .dump_tir = folder.string()}).descriptor));
  size_t before = 0, after = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = kit::read_file(entry.path());
    const tir::PrimFunc function = tir::parse_function(text, entry.path().string());
    EXPECT_EQ(tir::find_breaches(function), std::vector<std::string>{}) << entry.path();
    const bool is_lowered = entry.path().string().ends_with(".lowered.tir");
    (is_lowered ? before : after) += 1;
    if (is_lowered) continue;
    EXPECT_EQ(text.find(" in vectorized("), std::string::npos) << text;
  }
  EXPECT_EQ(before, after);
  EXPECT_GT(after, 3u);
  const std::string taken = (folder / "file").string();
  std::ofstream(taken) << "x";
  EXPECT_NE(
      kit::user_error_of([&] { compile_to_memory(model, {.dump_tir = taken + "/loops"}); }).find("cannot be made"),
      std::string::npos);
  std::filesystem::remove_all(folder.parent_path());
}

TEST(Compile, SameBytesForAnyNumberOfJobs) {
  const Model model = read(kProgram);
  const std::string one = bytes_of(compile_to_memory(model, {.jobs = 1}).descriptor);
  EXPECT_EQ(one, bytes_of(compile_to_memory(model, {.jobs = 2}).descriptor));
  EXPECT_EQ(one, bytes_of(compile_to_memory(read(kProgram), {.jobs = 2}).descriptor));
}

TEST(Compile, TwoThreadsAtOnceShareNothing) {
  const Model model = read(kProgram);
  const std::vector<NDArray> inputs = inputs_of(model);
  const std::vector<NDArray> expected = interp::run_main(model.module, inputs);
  std::vector<std::vector<NDArray>> results(2);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] { result = load::run(*open(compile_to_memory(read(kProgram)), 1), inputs); });
    }
  }
  for (const auto& result : results) expect_close(expected, result);
}

TEST(Compile, OneArtifactRunsInTwoThreads) {
  const Model model = read(kProgram);
  const std::vector<NDArray> inputs = inputs_of(model);
  CompiledModel compiled = compile_to_memory(model);
  auto artifact = load::open_artifact(std::move(compiled.descriptor), "test");
  ASSERT_TRUE(artifact.has_value());
  const std::vector<NDArray> expected = interp::run_main(model.module, inputs);
  std::vector<std::vector<NDArray>> results(2);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] {
        auto executor = load::try_make_executor(artifact.value(), artifact::kDefaultProgram, {.threads = 2}).value();
        for (int i = 0; i < 20; ++i) result = load::run(*executor, inputs);
      });
    }
  }
  for (const auto& result : results) expect_close(expected, result);
}

TEST(Compile, BareClientsRunTheStaticMain) {
  const Model model = read(kProgram);
  const std::string path = testing::TempDir() + "headrace_static_main.so";
  compile_to_file(model, path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto run = reinterpret_cast<headrace_run_function>(dlsym(library, HR_RUN_SYMBOL));
  ASSERT_NE(run, nullptr);
  const std::vector<NDArray> inputs = inputs_of(model);
  const std::vector<NDArray> expected = interp::run_main(model.module, inputs);
  std::vector<NDArray> outputs;
  for (const NDArray& tensor : expected) outputs.push_back(NDArray::zeros(tensor.shape(), tensor.dtype()));
  std::vector<DLTensor> tensors;
  for (const NDArray& array : inputs) tensors.push_back(array.tensor());
  for (const NDArray& array : outputs) tensors.push_back(array.tensor());
  std::vector<DLTensor*> in, out;
  for (size_t i = 0; i < tensors.size(); ++i) (i < inputs.size() ? in : out).push_back(&tensors[i]);
  EXPECT_EQ(run(in.data(), 4, out.data(), 3, nullptr), HR_REASON_NONE);
  expect_close(expected, outputs);
  EXPECT_EQ(run(in.data(), 3, out.data(), 3, nullptr), HR_REASON_BAD_TENSOR);
  std::array<char, 30> text{};  // longer texts are cut
  const HeadraceHost host = kit::host_with_message(text);
  out[0]->data = in[1]->data;
  EXPECT_EQ(run(in.data(), 4, out.data(), 3, &host), HR_REASON_BAD_TENSOR);
  EXPECT_STREQ(text.data(), "output 0 shares memory with i");
  in[1] = nullptr;
  EXPECT_EQ(run(in.data(), 4, out.data(), 3, &host), HR_REASON_BAD_TENSOR);
  EXPECT_STREQ(text.data(), "input 1 must be a contiguous ");
  EXPECT_EQ(run(in.data(), 4, out.data(), 3, nullptr), HR_REASON_BAD_TENSOR);
  dlclose(library);
  unlink(path.c_str());
}

TEST(Compile, OldProcessorsGetNoNewInstructions) {
  const Model model = read(kProgram);
  const CompiledModel compiled = compile_to_memory(model, {.target = parse_target("llvm -mcpu=x86-64")});
  const auto& features = compiled.report.manifest.programs[0].target.features;
  EXPECT_EQ(std::count(features.begin(), features.end(), "avx"), 0);
  EXPECT_EQ(std::count(features.begin(), features.end(), "sse2"), 1);
}

// Without instructions for them, LLVM calls roundf and roundevenf of the C library, and sincosf for a sine and a cosine
// of one value.
TEST(Compile, OldProcessorsCallTheCLibrary) {
  const Model model = read(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(3, 5, 7), float32]) {\n"
      "  let %y = cast(%x, dtype=\"float64\");\n"
      "  (multiply(sin(%x), cos(%x)), round(multiply(%x, 7f)), nearbyint(multiply(%x, 7f)),\n"
      "   multiply(sin(%y), cos(%y)), round(%y), nearbyint(%y), power(10f, %x))\n"
      "}\n");
  const std::vector<NDArray> inputs = inputs_of(model);
  const std::vector<NDArray> expected = interp::run_main(model.module, inputs);
  for (const int level : {0, 1, 3}) {
    CompileOptions options{.target = parse_target("llvm -mcpu=x86-64")};
    options.passes.opt_level = level;
    expect_close(expected, load::run(*open(compile_to_memory(model, options), 1), inputs));
  }
}

// The features that the loader does not know of are left out: none of those may be needed for the widest registers.
TEST(Compile, NewProcessorsGetTheirWidestRegisters) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  const codegen::NativeTarget target =
      choose_target(compiler, parse_target("llvm -mcpu=x86-64-v4 -mtriple=x86_64-linux-gnu"));
  EXPECT_EQ(machine_of(target).vector_bits, 512);
  EXPECT_EQ(machine_of(target).vector_registers, 32);
}

// The static main is in Headrace for some architectures only.
TEST(Compile, ArchitecturesWithoutAStaticMainAreRefused) {
  const Model model = read(kProgram);
  const std::string host = codegen::NativeCompiler::load().host_target().triple;
  const std::string other = "riscv64-unknown-linux-gnu";
  const std::string error =
      kit::user_error_of([&] { compile_to_memory(model, {.target = parse_target("llvm -mtriple=" + other)}); });
  EXPECT_NE(error.find("the triple '" + other + "'"), std::string::npos) << error;
  EXPECT_NE(error.find("such as " + host), std::string::npos) << error;
}

// Features that every AArch64 processor has, and nothing that a loader cannot look for: generic has ETE (tracing).
TEST(Compile, FeaturesOfAArch64) {
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  const auto features = [&](const std::string& cpu) {
    return choose_target(compiler, parse_target("llvm -mtriple=aarch64-linux-gnu -mcpu=" + cpu)).enabled;
  };
  EXPECT_THAT(features("generic"), ::testing::ElementsAre("fp-armv8", "neon"));
  EXPECT_THAT(features("neoverse-n1"), ::testing::ElementsAre("aes", "crc", "dotprod", "fp-armv8", "fullfp16", "lse",
                                                              "neon", "rcpc", "rdm", "sha2"));
  const std::string error =
      kit::user_error_of([&] { choose_target(compiler, parse_target("llvm -mtriple=aarch64-linux-gnu -mattr=+sve")); });
  EXPECT_NE(error.find("the processor feature 'sve'"), std::string::npos) << error;
  EXPECT_NE(error.find("choose among aes, bf16"), std::string::npos) << error;
}

// The file is written; only opening it needs the other machine.
TEST(Compile, ArtifactsOfAnotherArchitectureOpenThereOnly) {
  const Model model = read(kProgram);
  const bool is_x86 = kHostArchitecture == "x86_64";
  const std::string other = is_x86 ? "aarch64" : "x86_64";
  if (plan::static_main_object(other).empty()) GTEST_SKIP() << "the build found no compiler for " << other;
  const CompileOptions options{.target = parse_target("llvm -mtriple=" + other + "-linux-gnu")};
  const std::string path = testing::TempDir() + "headrace_other_machine.so";
  compile_to_file(model, path, options);
  const auto opened = load::open_artifact(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.refusal().code, HR_REASON_CPU_FEATURE_MISSING);
  EXPECT_NE(opened.refusal().message.find("holds code for " + other + ", and this machine is "), std::string::npos)
      << opened.refusal().message;
  std::filesystem::remove(path);
}

TEST(Compile, FilesAppearWholeOrNotAtAll) {
  const Model model = read("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }");
  const std::string folder = testing::TempDir() + "headrace_compile_test";
  std::filesystem::create_directories(folder);
  const auto error = [&](const std::string& path) { return kit::user_error_of([&] { compile_to_file(model, path); }); };
  EXPECT_NE(error(folder).find("it is a folder"), std::string::npos);
  EXPECT_NE(error(folder + "/missing/model.so").find("No such file"), std::string::npos);
  const Model bad = read("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(n), float32]) { nn.relu(%x) }");
  EXPECT_NE(kit::user_error_of([&] { compile_to_file(bad, folder + "/model.so"); }).find("no static shape"),
            std::string::npos);
  EXPECT_NE(error("").find("cannot write '': the name is empty"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  compile_to_file(model, folder + "/model.so");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

// A process that is killed while writing leaves no part of a file behind.
TEST(OutputFile, HasNoNameUntilItIsWhole) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "headrace_parts";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const int probe = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system has no files without names";
  close(probe);
  {
    OutputFile dropped((folder / "dropped").string());
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  OutputFile kept((folder / "kept").string());
  ASSERT_EQ(write(kept.descriptor(), "x", 1), 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  kept.commit();
  EXPECT_EQ(std::filesystem::file_size(folder / "kept"), 1u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(OutputFile, FollowsLinksAndKeepsWhatIsNoFile) {
  const std::string folder = testing::TempDir() + "headrace_output_file_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "/real");
  std::filesystem::create_symlink("real/model.so", folder + "/link");
  std::filesystem::create_symlink("round", folder + "/round");
  write_text(folder + "/link", "first");
  write_text(folder + "/link", "second");
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  EXPECT_EQ(kit::read_file(folder + "/real/model.so"), "second");
  const auto error = [](const std::string& path) { return kit::user_error_of([&] { OutputFile file(path); }); };
  EXPECT_NE(error(folder + "/round").find("its symbolic links lead nowhere"), std::string::npos);
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder + "/pipe", std::string("/dev/null")})
    EXPECT_NE(error(path).find("cannot write '" + path + "': it is a device, pipe or socket"), std::string::npos);
  // Text goes into a pipe, which stays one.
  std::string piped;
  {
    const std::jthread reader([&] { piped = kit::read_file(folder + "/pipe"); });
    write_text(folder + "/pipe", "through");
  }
  EXPECT_EQ(piped, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(folder + "/pipe"));
  write_text("/dev/null", "gone");
  EXPECT_NE(kit::user_error_of([] { write_text("/dev/full", "more"); }).find("'/dev/full': No space"),
            std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(Compile, OptionsAreChecked) {
  const Model model = read("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }");
  const std::string path = testing::TempDir() + "headrace_options_test.so";
  const auto errors = [&](const CompileOptions& options) {
    const std::string error = kit::user_error_of([&] { compile_to_memory(model, options); });
    EXPECT_EQ(error, kit::user_error_of([&] { compile_to_file(model, path, options); }));
    EXPECT_FALSE(std::filesystem::exists(path));
    return error;
  };
  EXPECT_EQ(errors({.passes = {.opt_level = -7}}), "opt_level is -7; it goes from 0 (each op by itself) to 4");
  EXPECT_EQ(errors({.passes = {.opt_level = 5}}), "opt_level is 5; it goes from 0 (each op by itself) to 4");
  EXPECT_EQ(errors({.threads = -1}), "the number of threads is -1; it goes from 0 (one a processor) to 512");
  EXPECT_EQ(errors({.jobs = 513}), "the number of jobs is 513; it goes from 0 (one a processor) to 512");
}

// Rules are added to ops, which other threads read without a lock: the first word to the driver makes all known.
TEST(Compile, TheFirstCallMakesAllOpsAndRulesKnown) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      const ModelPorts ports = read_ports(kModels + "digits.onnx");
      EXPECT_EQ(ports.inputs.size(), 1u);
      EXPECT_NE(get_op("nn.conv2d")->find(lower::kComputeRule), nullptr);
      const Model model = load_model(kModels + "digits.onnx", {.shapes = {{"x", {1, 1, 8, 8}}}, .bound = {}});
      EXPECT_GT(compile_to_memory(model, {.passes = {.opt_level = 0}, .jobs = 1}).report.artifact_bytes, 0);
    });
  }
}

TEST(Compile, PassesToLeaveOutAreChecked) {
  const Model model = read(kProgram);
  const auto error_without = [&](const std::string& pass) {
    CompileOptions options;
    options.passes.disabled_pass = {pass};
    return kit::user_error_of([&] { compile_to_memory(model, options); });
  };
  EXPECT_EQ(error_without("FoldConstnt"), "there is no pass 'FoldConstnt' to leave out; did you mean FoldConstant?");
  EXPECT_TRUE(error_without("Unheard").starts_with("there is no pass 'Unheard' to leave out; the passes are "));
  EXPECT_EQ(error_without("fuse_ops"),
            "pass FuseOps makes the kernels and cannot be left out; with opt level 0 it joins no ops");
  EXPECT_EQ(error_without("fold_constant"), "");
  EXPECT_EQ(error_without("PartialEval"), "") << "a pass that no build runs is left out of the passes that others run";
  CompileOptions options;
  options.passes.required_pass = {"FoldConstnt"};
  EXPECT_EQ(kit::user_error_of([&] { compile_to_memory(model, options); }),
            "there is no pass 'FoldConstnt' to require; did you mean FoldConstant?");
}

// FoldConstant runs twice in a build: it leaves the first product both times, and folds the second one's sum in the
// second run.
TEST(Compile, NotesOfPassesAreGivenOnceForCallsThatAreLeft) {
  const auto report_of = [](const std::string& body) {
    return compile_to_memory(read("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1), float32]) {\n"
                                  "  %0 = arange(0f, 4096f, 1f, dtype=\"float32\");\n"
                                  "  %1 = multiply(%0, reshape(%0, newshape=[4096, 1]));\n  add(%x, " +
                                  body + ")\n}"),
                             {})
        .report;
  };
  const CompileReport left = report_of("%1"), folded = report_of("sum(%1)");
  ASSERT_EQ(left.notes.size(), 1u);
  EXPECT_EQ(left.notes[0].reason, HR_REASON_FOLD_LIMIT);
  EXPECT_EQ(left.manifest.programs[0].notes.size(), 1u);
  EXPECT_GE(left.manifest.programs[0].graph.steps[0].operations, 2 * 4096 * 4096);
  EXPECT_TRUE(folded.notes.empty());
  EXPECT_LT(folded.manifest.programs[0].graph.steps[0].operations, 10);
}

// Its form needs the scales when the program is built, and its axis is no place to join storages at.
TEST(Compile, AConcatenationOfQuantizedTensorsWithUnknownScalesIsRefused) {
  CompileOptions options;
  options.passes.disabled_pass = {"QnnCanonicalize"};
  const std::string text =
      "#[version = \"0.0.5\"]\n"
      "def @main(%a: Tensor[(1, 4), uint8], %b: Tensor[(1, 4), uint8], %s: float32, %z: int32) {\n"
      "  qnn.concatenate((bitwise_not(%a), bitwise_not(%b)), (add(%s, 1f), add(%s, 2f)), (add(%z, 1), add(%z, 2)), "
      "add(%s, 3f), add(%z, 3), axis=1)\n}\n";
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(read(text), options); }),
              testing::HasSubstr("no compute rule"));
}

TEST(Compile, ConfigurationOfPassesHolds) {
  const Model model = read("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(4), float32]) { sqrt(exp(abs(%x))) }");
  const auto num_kernels = [&](const CompileOptions& options) {
    return compile_to_memory(model, options).report.manifest.programs[0].graph.steps.size();
  };
  CompileOptions options;
  EXPECT_EQ(num_kernels(options), 1U);
  options.passes.config.set("relay.FuseOps.max_depth", Value(int64_t{1}));
  EXPECT_EQ(num_kernels(options), 3U);
  options.passes.config.set("relay.FuseOps.max_dpth", Value(int64_t{1}));
  EXPECT_EQ(kit::user_error_of([&] { num_kernels(options); }),
            "there is no configuration 'relay.FuseOps.max_dpth'; did you mean relay.FuseOps.max_depth?");
}

TEST(Compile, AVariableThatNobodyBinds) {
  register_all();
  const relay::Var x = relay::make_var("x", make_tensor_type(Shape{2})),
                   w = relay::make_var("w", make_tensor_type(Shape{2}));
  const IRModule module = make_module(relay::make_function({x}, relay::make_call("add", {x, w})));
  const std::string error = kit::user_error_of([&] { compile_to_memory(make_model(module)); });
  EXPECT_EQ(error.find("@main uses %w, which is not a parameter of it and bound by no let"), 0U) << error;
}

// Text has no such program: each definition makes a variable of its own.
TEST(Compile, AVariableThatIsBoundTwice) {
  register_all();
  const relay::Var x = relay::make_var("x", make_tensor_type(Shape{2})), v = relay::make_var("v");
  const Expr inner = relay::make_let(v, relay::make_call("exp", {x}), v);
  const Expr outer = relay::make_let(v, inner, relay::make_call("add", {v, x}));
  const IRModule module = make_module(relay::make_function({x}, outer));
  const std::vector<NDArray> inputs = {kit::random_array({2}, 1)};
  const NDArray result = load::run(*open(compile_to_memory(make_model(module)), 1), inputs).at(0);
  for (int64_t i = 0; i < 2; ++i) {
    const double value = element_as_double(inputs[0].tensor(), i);
    EXPECT_NEAR(element_as_double(result.tensor(), i), std::exp(value) + value, 1e-5);
  }
}

TEST(Compile, DevicesThatNoArtifactRunsOnAreTold) {
  const auto refusal = [](const std::string& text) {
    const IRModule module = relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test");
    try {
      compile_to_memory(make_model(module));
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string("no error");
  };
  const auto told = [](const char* device) {
    return fmt::format(
        "the program asks for {}, and artifacts run on the CPU alone; take the annotation out, or name a cpu", device);
  };
  const auto main = [](const std::string& body) { return "def @main(%x: Tensor[(2), float32]) { " + body + " }"; };
  EXPECT_EQ(refusal(main("on_device(exp(%x), virtual_device=\"cuda:0\")")), told("cuda:0"));
  EXPECT_EQ(refusal(main("device_copy(%x, src_virtual_device=\"cpu:0\", dst_virtual_device=\"opencl:1\")")),
            told("opencl:1"));
  EXPECT_EQ(refusal("def @main(%x: Tensor[(2), float32], result_virtual_device=\"(cpu:0; cuda:2)\") { (%x, exp(%x)) }"),
            told("cuda:2"));
  EXPECT_EQ(refusal(main("on_device(exp(%x), virtual_device=\"cpu:0\")")), "no error");
}

TEST(Compile, EveryOpIsPlaced) {
  const artifact::Program program = compile_to_memory(read(kProgram)).report.manifest.programs[0];
  ASSERT_GE(program.placement.size(), program.graph.steps.size());
  for (const artifact::Placement& placement : program.placement) {
    EXPECT_EQ(placement.backend, "native");
    EXPECT_EQ(placement.reason, HR_REASON_PLACE_ONLY_NATIVE);
    EXPECT_FALSE(placement.op.empty());
  }
}

void expect_agrees(const Model& model, CompiledModel compiled) {
  const std::vector<NDArray> inputs = inputs_of(model);
  expect_close(interp::run_main(model.module, inputs), load::run(*open(std::move(compiled), 2), inputs));
}

// Whose functions are polymorphic, recursive and unused here.
TEST(Compile, ModulesThatImportThePrelude) {
  for (const char* name : {"prelude.rly", "nat.rly", "gradient.rly", "core.rly"}) {
    const Model model = read(
        fmt::format("#[version = \"0.0.5\"]\nimport \"{}\"\ndef @main(%x: Tensor[(3), float32]) {{ exp(%x) }}", name));
    expect_agrees(model, compile_to_memory(model));
  }
}

// Hundreds of parts: one kernel cuts, one is for all that is done to the parts, which are written where the result
// lies. At level 0 a third one joins them.
TEST(Compile, WideSplitsAndJoins) {
  constexpr int kParts = 400;
  std::string text = fmt::format(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[({}, 3), float32]) {{\n"
      "  %0 = split(%x, indices_or_sections={}, axis=0);\n",
      kParts, kParts);
  std::string items;
  for (int i = 0; i < kParts; ++i) items += fmt::format("{}exp(%0.{})", i == 0 ? "" : ", ", i);
  text += fmt::format("  concatenate(({}), axis=0)\n}}\n", items);
  const Model model = read(text);
  for (const auto& [level, count] : {std::pair(0, 3u), std::pair(1, 2u)}) {
    CompiledModel compiled = compile_to_memory(model, {.passes = {.opt_level = level}});
    std::set<std::string> kernels;
    for (const artifact::Step& step : compiled.report.manifest.programs[0].graph.steps)
      kernels.insert(artifact::callee_of(step.action));
    EXPECT_EQ(kernels.size(), count);
    expect_agrees(model, std::move(compiled));
  }
}

// Parts that lie apart in a concatenation: kernels of each kind write them there, along each axis and in dtypes of each
// size. No kernel concatenates.
TEST(Compile, PartsWithGapsAreWrittenInPlace) {
  const char* const kBodies[] = {
      "concatenate((nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), nn.relu(nn.conv2d(nn.relu(%x), %w, padding=[1, 1, 1, "
      "1]))), "
      "axis=1)",
      "concatenate((nn.conv2d(%x, %d, groups=32, padding=[1, 1, 1, 1]), nn.max_pool2d(%x, pool_size=[3, 3], "
      "padding=[1, 1, 1, 1])), axis=1)",
      "concatenate((nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2]), nn.conv2d(%x, %d, groups=32, strides=[2, "
      "2])), axis=2)",
      "concatenate((sum(%x, axis=[1], keepdims=True), max(%x, axis=[1], keepdims=True)), axis=3)",
      "concatenate((nn.dense(%y, %v), nn.dense(nn.relu(%y), %v)), axis=1)",
      "concatenate((nn.dense(cast(%y, dtype=\"float16\"), cast(%v, dtype=\"float16\")), "
      "nn.dense(cast(nn.relu(%y), dtype=\"float16\"), cast(%v, dtype=\"float16\"))), axis=1)",
      "concatenate((max(cast(%x, dtype=\"int8\"), axis=[1], keepdims=True), "
      "min(cast(%x, dtype=\"int8\"), axis=[1], keepdims=True)), axis=1)"};
  for (const char* body : kBodies) {
    const Model model = read(fmt::format(
        "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(3, 32, 7, 9), float32], %w: Tensor[(48, 32, 3, 3), float32],\n"
        "          %d: Tensor[(32, 1, 3, 3), float32], %y: Tensor[(5, 19), float32], %v: Tensor[(23, 19), float32]) "
        "{{\n"
        "  let %r = {};\n  (%r, nn.batch_flatten(%r))\n}}\n",
        body));
    CompiledModel compiled = compile_to_memory(model);
    for (const artifact::Step& step : compiled.report.manifest.programs[0].graph.steps)
      EXPECT_THAT(artifact::callee_of(step.action), testing::Not(testing::HasSubstr("concatenate"))) << body;
    expect_agrees(model, std::move(compiled));
  }
}

// A kernel with strides of a stranger would write where they say.
TEST(Compile, StridesOfAResultAreTheCompilersOwn) {
  const Model model = read(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32]) {\n"
      "  fn (%p: Tensor[(2, 3), float32], Primitive=1, result_strides=[1000000, 1]) { nn.relu(%p) }(%x)\n}\n");
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(model); }),
              testing::HasSubstr("has the attribute result_strides, which the compiler makes"));
}

// A weight that a canonical pass multiplies, and one that a native pass puts into another layout: their memory is free
// by the stage after, when the model was moved in.
TEST(Compile, AModelThatIsMovedInGivesUpItsConstants) {
  std::set<std::string> held = {"scaled", "packed"};
  const auto make = [&held] {
    const auto weight = [&](const std::string& name, const Shape& shape) {
      auto data = std::make_shared<std::vector<float>>(num_elements(shape), 0.5F);
      return relay::make_constant(
          NDArray::view(data->data(), shape, DataType::float_(32), [&held, name, data] { held.erase(name); }));
    };
    const relay::Var x = relay::make_var("x", make_tensor_type(Shape{1, 64, 28, 28}));
    const Expr three = relay::make_constant(NDArray::from_vector({}, DataType::float_(32), std::vector<float>{3}));
    const Expr scaled = relay::make_call("multiply", {weight("scaled", {64, 64, 1, 1}), three});
    const Expr first = ops::conv2d(x, scaled, {});
    return make_model(make_module(relay::make_function({x}, ops::conv2d(first, weight("packed", {64, 64, 3, 3}), {}))));
  };
  std::map<std::string, std::set<std::string>> at_begin;
  compile_to_memory(make(),
                    {.progress = [&](std::string_view stage, int, int) { at_begin[std::string(stage)] = held; }});
  EXPECT_THAT(at_begin["canonical passes"], testing::UnorderedElementsAre("scaled", "packed"));
  EXPECT_THAT(at_begin["placement"], testing::ElementsAre("packed"));
  EXPECT_THAT(at_begin["plan"], testing::IsEmpty());
}

TEST(Compile, RepeatedBytesTakeNoData) {
  const Model model = read(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(300, 1000), float32]) {\n"
      "  %0 = broadcast_to(const(Tensor[(1), float32], [3]), shape=[300, 1000]);\n"
      "  (add(%x, %0), multiply(full(0.5f, shape=[300, 1000], dtype=\"float32\"), %x), ones(shape=[300, 1000]))\n"
      "}\n");
  CompiledModel compiled = compile_to_memory(model);
  EXPECT_LT(compiled.report.artifact_bytes, 200'000);
  EXPECT_EQ(compiled.report.manifest.programs[0].graph.steps.size(), 3u);
  expect_agrees(model, std::move(compiled));
}

TEST(Compile, WindowsFarLargerThanTheirDataNeedNoMemory) {
  const Model model = read(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(1, 1, 4, 4), float32], %w: Tensor[(1, 1, 2, 2), float32]) {\n"
      "  (nn.max_pool2d(%x, pool_size=[3, 3], dilation=[10000, 10000], padding=[10000, 10000]),\n"
      "   nn.conv2d(%x, %w, padding=[100000, 100000], dilation=[200000, 200000]))\n"
      "}\n");
  CompiledModel compiled = compile_to_memory(model);
  EXPECT_LT(compiled.report.manifest.programs[0].memory.workspace_bytes, 100'000);
  expect_agrees(model, std::move(compiled));
}

TEST(Compile, ABufferThatNoMachineHoldsNamesItsOp) {
  const Model model = read(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(1, 1, 1048576, 1048576), int8], %w: Tensor[(1, 1, 3, 3), int8]) {\n"
      "  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], out_dtype=\"int8\")\n"
      "}\n");
  const std::string error = kit::user_error_of([&] { compile_to_memory(model); });
  EXPECT_NE(error.find("its kernel would keep 1100 GB in 'windows'"), std::string::npos) << error;
  EXPECT_NE(error.find("at: nn.conv2d\n  in: <text>:3:3"), std::string::npos) << error;
}

TEST(LoadModel, SaysWhatIsWrongWithFiles) {
  const auto error = [](const std::string& path, const LoadOptions& options = {}) {
    return kit::user_error_of([&] { load_model(path, options); });
  };
  EXPECT_NE(error("/nowhere/model.onnx").find("/nowhere/model.onnx"), std::string::npos);
  EXPECT_NE(error("/nowhere/model.relay").find("cannot read"), std::string::npos);
  const std::string folder = testing::TempDir() + "headrace_folder.relay";
  std::filesystem::create_directories(folder);
  EXPECT_NE(error(folder).find("the program '" + folder + "' is a directory"), std::string::npos);
  std::filesystem::remove(folder);
  EXPECT_NE(error("/nowhere/model.pb").find("'/nowhere/model.pb': No such file"), std::string::npos);
  EXPECT_NE(error(kModels + "digits.onnx").find("x[0] (n)"), std::string::npos);
  EXPECT_NE(error(kModels + "digits.onnx", {.shapes = {{"y", {1}}}, .bound = {}}).find("'y'"), std::string::npos);
}

// Names that do not say what a file is: its content does.
TEST(LoadModel, TheContentDecidesWhereTheNameDoesNot) {
  const std::string path = testing::TempDir() + "headrace_model_without_ending";
  const auto error = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return kit::user_error_of([&] { load_model(path); });
  };
  const std::string relay = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n";
  EXPECT_EQ(error(relay), "");
  EXPECT_EQ(error("\n// a comment\n/* and\n another */ " + relay), "");
  std::ifstream digits(kModels + "digits.onnx", std::ios::binary);
  EXPECT_NE(error({std::istreambuf_iterator<char>(digits), {}}).find("x[0] (n)"), std::string::npos);
  EXPECT_NE(error("").find("is empty, not an ONNX model"), std::string::npos);
  EXPECT_NE(error("def @main() { 1 }").find("it begins neither as an ONNX model nor as Relay text"), std::string::npos);
  EXPECT_NE(error("// no more").find("it begins neither as"), std::string::npos);
  EXPECT_NE(error("\x08garbage").find("headrace_model_without_ending"), std::string::npos);
  EXPECT_NE(error("\x7f\x45LF").find("is a compiled artifact"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(LoadModel, DigitsAgreeWithTheInterpreter) {
  const Model model = load_model(kModels + "digits.onnx", {.shapes = {{"x", {3, 1, 8, 8}}}, .bound = {}});
  EXPECT_EQ(model.inputs, std::vector<std::string>{"x"});
  const NDArray x = kit::random_array({3, 1, 8, 8}, 5);
  const std::vector<NDArray> expected = interp::run_main(model.module, {x});
  expect_close(expected, load::run(*open(compile_to_memory(model), 1), std::vector{x}));
}

// The ONNX file calls the first dimension n, and the others have sizes.
TEST(LoadModel, ArtifactsKeepTheNamesOfDimensions) {
  const Model model = load_model(kModels + "digits.onnx", {.shapes = {{"x", {3, 1, 8, 8}}}, .bound = {}});
  const CompiledModel compiled = compile_to_memory(model, {.passes = {.opt_level = 0}});
  const artifact::Program& program = compiled.report.manifest.programs.at(0);
  EXPECT_EQ(program.inputs.at(0).dims, (std::vector<std::string>{"n", "", "", ""}));
  EXPECT_EQ(program.outputs.at(0).dims, (std::vector<std::string>{"n", ""}));
}

TEST(LoadModel, DimensionsOfAnotherRankHaveNoNames) {
  Model model = read(kProgram);
  model.dims[model.inputs.at(0)] = std::vector<std::string>(7, "n");
  const CompiledModel compiled = compile_to_memory(model, {.passes = {.opt_level = 0}});
  EXPECT_TRUE(compiled.report.manifest.programs.at(0).inputs.at(0).dims.empty());
}

// All of its convolutions but the first, whose picture has one channel.
TEST(LoadModel, DigitsInPackedLayoutsAgreeWithTheInterpreter) {
  Model model = load_model(kModels + "digits.onnx", {.shapes = {{"x", {3, 1, 8, 8}}}, .bound = {}});
  const NDArray x = kit::random_array({3, 1, 8, 8}, 5);
  const std::vector<NDArray> expected = interp::run_main(model.module, {x});
  pass::PassContext context;
  context.opt_level = 3;
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  passes::DesiredLayouts desired;
  for (const char* op : {"nn.conv2d", "nn.max_pool2d"}) desired.set(op, Array<std::string>{"NCHW8c"});
  context.config.set("relay.ConvertLayout.desired_layouts", Value(desired));
  model.module = pass::run_passes({get_pass("SimplifyInference"), get_pass("ConvertLayout")}, model.module, context);
  const std::string text = relay::print_module(model.module);
  EXPECT_NE(text.find("data_layout=\"NCHW8c\", kernel_layout=\"OIHW8i8o\""), std::string::npos) << text;
  expect_close(expected, load::run(*open(compile_to_memory(model), 1), std::vector{x}));
}

TEST(ReadPorts, KeepsOpenDimensions) {
  const ModelPorts ports = read_ports(kModels + "digits.onnx");
  ASSERT_EQ(ports.inputs.size(), 1u);
  EXPECT_EQ(ports.inputs[0].name, "x");
  EXPECT_EQ(ports.inputs[0].shape[0].symbol, "n");
  EXPECT_EQ(ports.inputs[0].shape[2].value, 8);
  EXPECT_EQ(ports.outputs[0].name, "probabilities");
}

// A kernel by hand is compiled for the sizes of its parameters, and none may be left to its calls.
TEST(Compile, AKernelByHandHasKnownSizes) {
  register_all();
  const auto error = [](const std::string& param) {
    const IRModule module = relay::parse_module(
        fmt::format(
            "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) {{\n  %0 = fn (%q: {}, Primitive=1) {{ "
            "sum(%q) }};\n  %0(%x)\n}}",
            param),
        "kernel.relay");
    return kit::user_error_of([&] { compile_to_memory(make_model(module)); });
  };
  EXPECT_NE(error("Tensor[(?), float32]")
                .find("the function marked Primitive has a parameter %q of a size without a "
                      "number; give it the sizes of its calls"),
            std::string::npos)
      << error("Tensor[(?), float32]");
  EXPECT_EQ(error("Tensor[(2), float32]"), "");
}

// A convolution without output channels has no work, which the file says as a number.
TEST(Compile, AConvolutionWithoutChannelsIsStored) {
  register_all();
  const IRModule module = relay::parse_module(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(0, 2, 1, 1), float32]) {\n"
      "  nn.conv2d(%x, %w, kernel_size=[1, 1], channels=0)\n}",
      "empty.relay");
  const auto artifact = open_compiled(compile_to_memory(make_model(module)), "empty");
  for (const artifact::Step& step : artifact->manifest().programs.at(0).graph.steps) EXPECT_EQ(step.operations, 0);
}

}  // namespace
}  // namespace headrace::driver
