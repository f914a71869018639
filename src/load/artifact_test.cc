#include "load/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "artifact/trailer.h"
#include "base/architecture.h"
#include "kit/artifact_kit.h"
#include "kit/errors.h"
#include "load/artifact_module.h"
#include "load/run.h"
#include "tensor/ndarray.h"

namespace headrace::load {
namespace {

using headrace::testing::make_artifact;
using headrace::testing::TempFile;
using headrace::testing::TensorView;
using headrace::testing::toy_expected;
using headrace::testing::toy_input;
using headrace::testing::toy_manifest;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::shared_ptr<const Artifact> open_or_die(const std::string& path) { return open_artifact(path).value_or_throw(); }

std::shared_ptr<executors::Executor> executor_or_die(std::shared_ptr<const Artifact> artifact, int32_t threads,
                                                     const std::string& program = "default") {
  return make_executor(std::move(artifact), program, {.threads = threads});
}

Refusal refusal_of(const std::vector<uint8_t>& bytes) {
  const TempFile file(bytes);
  const Expected<std::shared_ptr<const Artifact>> artifact = open_artifact(file.path());
  return artifact ? Refusal{HR_REASON_NONE, "it was opened"} : artifact.refusal();
}

std::vector<float> floats(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + count};
}

TEST(Artifact, RunsWithAnyThreadCount) {
  const TempFile file(make_artifact(toy_manifest()));
  const auto artifact = open_or_die(file.path());
  for (int32_t threads : {1, 2, 3, 7}) {
    const auto executor = executor_or_die(artifact, threads);
    std::vector<float> x = toy_input();
    const TensorView view(x.data(), {6, 8});
    executors::throw_if_failed(executor->set_input(0, view.tensor));
    ASSERT_EQ(executor->run().code, 0);
    EXPECT_EQ(floats(executor->output(0)), toy_expected(x));
    EXPECT_EQ(floats(executor->output(1)), x);
  }
}

// The first elements of memory, from an offset on, as a tensor of float32.
NDArray tensor_of(std::vector<float>& values, Shape shape, size_t offset = 0) {
  return NDArray::view(values.data() + offset, std::move(shape), DataType::float_(32));
}

TEST(Artifact, RunsWriteToPlacesThatFit) {
  const TempFile file(make_artifact(toy_manifest()));
  const auto executor = executor_or_die(open_or_die(file.path()), 2);
  std::vector<float> x = toy_input();
  const std::vector<float> expected = toy_expected(x);
  std::vector<float> y(30);
  std::vector<float> same(48);
  const std::vector inputs{tensor_of(x, {6, 8})};
  const std::vector<std::optional<NDArray>> places{tensor_of(y, {30}), tensor_of(same, {6, 8})};
  const std::vector<NDArray> made = run_into(*executor, inputs, places);
  EXPECT_EQ(made.at(0).data<float>(), y.data());
  EXPECT_EQ(made.at(1).data<float>(), same.data());
  EXPECT_EQ(y, expected);
  EXPECT_EQ(same, toy_input());
  std::fill(y.begin(), y.end(), 0.0F);
  EXPECT_EQ(floats(run(*executor, inputs).at(0).tensor()), expected);  // in memory of its own again
  EXPECT_EQ(y, std::vector<float>(30));
}

TEST(Artifact, RunsLeavePlacesThatDoNotFit) {
  const TempFile file(make_artifact(toy_manifest()));
  const auto executor = executor_or_die(open_or_die(file.path()), 2);
  std::vector<float> x = toy_input();
  std::vector<float> out(96);
  auto* const bytes = reinterpret_cast<std::byte*>(out.data());
  const std::vector<std::vector<std::optional<NDArray>>> cases{
      {},
      {std::nullopt, std::nullopt},
      {tensor_of(x, {30}, 18)},                                // the input's last elements
      {tensor_of(out, {30}), tensor_of(out, {6, 8}, 29)},      // they share an element
      {tensor_of(out, {30}).as_read_only()},                   // not to be written
      {tensor_of(out, {5, 6})},                                // another shape
      {NDArray::view(bytes, {30}, DataType::int_(32))},        // another dtype
      {NDArray::view(bytes + 1, {30}, DataType::float_(32))},  // not aligned
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<NDArray> made = run_into(*executor, std::vector{tensor_of(x, {6, 8})}, cases[i]);
    EXPECT_EQ(floats(made.at(0).tensor()), toy_expected(x));
    EXPECT_EQ(floats(made.at(1).tensor()), x);
    EXPECT_EQ(x, toy_input());
    EXPECT_EQ(out, std::vector<float>(96));
  }
}

TEST(Artifact, RunsFromAMemoryFile) {
  const std::vector<uint8_t> bytes = make_artifact(toy_manifest());
  Descriptor descriptor(::memfd_create("model", MFD_CLOEXEC));
  ASSERT_EQ(::write(descriptor.number(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  const auto artifact = open_artifact(std::move(descriptor), "model");
  ASSERT_TRUE(artifact) << artifact.refusal().message;
  const auto executor = executor_or_die(artifact.value(), 1);
  std::vector<float> x = toy_input();
  executors::throw_if_failed(executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
  ASSERT_EQ(executor->run().code, 0);
  EXPECT_EQ(floats(executor->output(0)), toy_expected(x));
}

// As a plain copy of files does: the old pages are gone, and the system still knows the file as the one that is loaded.
TEST(Artifact, AFileWrittenIntoALoadedOneIsLoadedBesideIt) {
  const std::vector<uint8_t> bytes = make_artifact(toy_manifest());
  const TempFile file(bytes);
  const auto old = open_or_die(file.path());
  std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << std::string(bytes.begin(), bytes.end());
  const auto fresh = open_or_die(file.path());
  std::ofstream(file.path(), std::ios::trunc) << "no artifact";
  EXPECT_EQ(open_artifact(file.path()).refusal().code, HR_REASON_TRUNCATED);
  for (const auto& artifact : {fresh, old}) {
    const auto executor = executor_or_die(artifact, 2);
    std::vector<float> x = toy_input();
    executors::throw_if_failed(executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
    ASSERT_EQ(executor->run().code, 0);
    EXPECT_EQ(floats(executor->output(0)), toy_expected(x));
  }
}

TEST(Artifact, TwoThreadsShareOneArtifact) {
  const TempFile file(make_artifact(toy_manifest()));
  const auto artifact = open_or_die(file.path());
  std::atomic<int> wrong = 0;
  const auto job = [&](float shift) {
    const auto executor = executor_or_die(artifact, 2);
    std::vector<float> x = toy_input();
    for (float& value : x) value += shift;
    const std::vector<float> expected = toy_expected(x);
    executors::throw_if_failed(executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
    for (int i = 0; i < 2000; ++i) {
      if (executor->run().code != 0 || floats(executor->output(0)) != expected) ++wrong;
    }
  };
  std::thread first(job, 0.0f);
  std::thread second(job, 1.0f);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Artifact, ThreadsTakeTurnsAtOneExecutor) {
  const TempFile file(make_artifact(toy_manifest()));
  const auto executor = executor_or_die(open_or_die(file.path()), 2);
  std::atomic<int> wrong = 0;
  std::barrier start(2);
  const auto job = [&](float shift) {
    std::vector<float> x = toy_input();
    for (float& value : x) value += shift;
    const std::vector<float> expected = toy_expected(x);
    const std::vector<NDArray> inputs = {NDArray::from_vector({6, 8}, DataType::float_(32), x)};
    start.arrive_and_wait();
    for (int i = 0; i < 10000; ++i) {
      if (floats(run(*executor, inputs)[0].tensor()) != expected) ++wrong;
    }
  };
  std::thread first(job, 0.0f);
  std::thread second(job, 1.0f);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
}

// The dynamic linker knows a library by its path, /proc/self/fd/N. A reused N must not bring back an old library.
TEST(Artifact, ReusedDescriptorNumbersAreNotMistaken) {
  artifact::Manifest other = toy_manifest();
  other.programs[0].graph.steps[1].args = {4, 4, 5};
  const TempFile a(make_artifact(toy_manifest()));
  const TempFile b(make_artifact(other));
  auto first = open_or_die(a.path());
  auto again = open_or_die(a.path());
  void* const code = first->library->symbol("toy_add");
  EXPECT_EQ(again->library->symbol("toy_add"), code);
  first.reset();
  const auto second = open_or_die(b.path());
  EXPECT_NE(second->library->symbol("toy_add"), code);
  EXPECT_EQ(again->library->symbol("toy_add"), code);
  const auto executor = executor_or_die(again, 1);
  again.reset();
  std::vector<float> x = toy_input();
  executors::throw_if_failed(executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
  ASSERT_EQ(executor->run().code, 0);
  EXPECT_EQ(floats(executor->output(0)), toy_expected(x));
}

TEST(ArtifactRefuses, EveryTruncation) {
  const std::vector<uint8_t> bytes = make_artifact(toy_manifest());
  std::mt19937 random(20240901);
  const TempFile file(bytes);
  for (int i = 0; i < 200; ++i) {
    const size_t length = i < 100 ? bytes.size() - 1 - static_cast<size_t>(i) : random() % bytes.size();
    file.write({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)});
    const auto artifact = open_artifact(file.path());
    ASSERT_FALSE(artifact) << "length " << length;
    ASSERT_THAT(artifact.refusal().code, AnyOf(HR_REASON_TRUNCATED, HR_REASON_BAD_MAGIC)) << "length " << length;
    ASSERT_THAT(artifact.refusal().message, HasSubstr(file.path()));
  }
}

TEST(ArtifactRefuses, EveryBitFlip) {
  const std::vector<uint8_t> bytes = make_artifact(toy_manifest());
  std::mt19937 random(20240902);
  const TempFile file(bytes);
  for (int i = 0; i < 2000; ++i) {
    // A quarter of them in the trailer, where most bits would be missed otherwise.
    const size_t at = i % 4 == 0 ? bytes.size() - 1 - random() % 64 : random() % bytes.size();
    std::vector<uint8_t> flipped = bytes;
    flipped[at] = static_cast<uint8_t>(flipped[at] ^ 1u << random() % 8);
    file.write(flipped);
    const auto artifact = open_artifact(file.path());
    ASSERT_FALSE(artifact) << "byte " << at;
    ASSERT_THAT(artifact.refusal().code,
                AnyOf(HR_REASON_BAD_CHECKSUM, HR_REASON_BAD_MAGIC, HR_REASON_BAD_VERSION, HR_REASON_TRUNCATED))
        << "byte " << at;
  }
}

TEST(ArtifactRefuses, FilesOfOtherKinds) {
  EXPECT_EQ(open_artifact("/nonexistent/model.so").refusal().code, HR_REASON_NOT_FOUND);
  EXPECT_EQ(open_artifact("/tmp").refusal().code, HR_REASON_NOT_AN_ARTIFACT);
  EXPECT_EQ(refusal_of({}).code, HR_REASON_TRUNCATED);
  const Refusal no_trailer = refusal_of(headrace::testing::toy_code());
  EXPECT_EQ(no_trailer.code, HR_REASON_BAD_MAGIC);
  EXPECT_THAT(no_trailer.message, HasSubstr("does not end in Headrace's trailer"));
  EXPECT_THAT(no_trailer.message, HasSubstr("such as strip, took the trailer away; copy the whole file or compile"));
  std::vector<uint8_t> text(1000, 'x');
  artifact::append_trailer(text);
  const Refusal no_elf = refusal_of(text);
  EXPECT_EQ(no_elf.code, HR_REASON_NOT_AN_ARTIFACT);
  EXPECT_THAT(no_elf.message, HasSubstr("not an ELF file"));
}

TEST(ArtifactRefuses, OtherMachinesAndBrokenSectionTables) {
  const auto with = [](size_t at, std::vector<uint8_t> patch) {
    std::vector<uint8_t> bytes = headrace::testing::toy_code();
    std::copy(patch.begin(), patch.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    artifact::append_trailer(bytes);
    return refusal_of(bytes);
  };
  EXPECT_THAT(with(18, {243, 0}).message,  // e_machine: RISC-V
              HasSubstr("for the ELF machine 243; artifacts are for x86_64 (62)"));
  EXPECT_THAT(with(16, {1, 0}).message, HasSubstr("no shared object"));  // e_type: object file
  EXPECT_THAT(with(4, {1}).message, HasSubstr("not a 64-bit"));          // EI_CLASS: 32 bits
  EXPECT_THAT(with(40, {255, 255, 255, 255, 255, 255, 255, 127}).message, HasSubstr("outside the file"));  // e_shoff
  EXPECT_THAT(with(62, {255, 255}).message, HasSubstr("no usable section table"));                         // e_shstrndx
}

// Damage before the trailer was made: the file is whole, its ELF structure is not. Nothing may crash before dlopen, and
// the section reader must hold its bounds. (dlopen itself takes the file on trust, so only the reader is run.)
TEST(ArtifactRefuses, HostileSectionTables) {
  const std::vector<uint8_t> code = headrace::testing::toy_code();
  std::mt19937 random(20240903);
  uint64_t table = 0;
  std::memcpy(&table, code.data() + 40, sizeof table);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> bytes = code;
    for (int j = 0; j < 3; ++j) bytes[table + random() % (bytes.size() - table)] = static_cast<uint8_t>(random());
    artifact::append_trailer(bytes);
    const TempFile file(bytes);
    const auto descriptor = Descriptor::open(file.path());
    ASSERT_TRUE(descriptor);
    const auto read = artifact::read_artifact_file(descriptor.value().number(), file.path());
    if (read) continue;
    ++refused;
    ASSERT_FALSE(read.refusal().message.empty());
  }
  EXPECT_GT(refused, 0);
}

TEST(ArtifactRefuses, TrailerVersion) {
  std::vector<uint8_t> bytes = make_artifact(toy_manifest());
  bytes[bytes.size() - 56] = 9;
  const Refusal refusal = refusal_of(bytes);
  EXPECT_EQ(refusal.code, HR_REASON_BAD_VERSION);
  EXPECT_THAT(refusal.message, HasSubstr("trailer version 9, this runtime reads 1 to 2"));
}

TEST(ArtifactRefuses, MissingCpuFeature) {
  artifact::Manifest manifest = toy_manifest();
  manifest.programs[0].target.features = {"sse2", "avx1024"};
  const Refusal refusal = refusal_of(make_artifact(manifest));
  EXPECT_EQ(refusal.code, HR_REASON_CPU_FEATURE_MISSING);
  EXPECT_THAT(refusal.message, HasSubstr("this machine lacks: avx1024; compile the model for this machine"));
}

// The file is whole, but for the number of its machine: the file may be inspected here, and not be opened.
TEST(ArtifactRefuses, CodeOfAnotherArchitecture) {
  const bool is_x86 = kHostArchitecture == "x86_64";
  std::vector<uint8_t> bytes = make_artifact(toy_manifest());
  bytes.resize(bytes.size() - artifact::kTrailerSize);
  bytes[18] = is_x86 ? 183 : 62;  // e_machine: EM_AARCH64, EM_X86_64
  artifact::append_trailer(bytes);
  const TempFile file(bytes);
  const auto descriptor = Descriptor::open(file.path());
  ASSERT_TRUE(descriptor);
  EXPECT_TRUE(artifact::read_artifact_file(descriptor.value().number(), file.path()));
  const Refusal refusal = refusal_of(bytes);
  EXPECT_EQ(refusal.code, HR_REASON_CPU_FEATURE_MISSING);
  EXPECT_THAT(refusal.message, HasSubstr(is_x86 ? "holds code for aarch64, and this machine is x86_64"
                                                : "holds code for x86_64, and this machine is aarch64"));
}

TEST(ArtifactRefuses, ProgramsOfAnotherArchitecture) {
  const bool is_x86 = kHostArchitecture == "x86_64";
  artifact::Manifest manifest = toy_manifest();
  manifest.programs[0].target.triple = is_x86 ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
  const Refusal refusal = refusal_of(make_artifact(manifest));
  EXPECT_EQ(refusal.code, HR_REASON_CPU_FEATURE_MISSING);
  EXPECT_THAT(refusal.message, HasSubstr(is_x86 ? "holds code for aarch64, and this machine is x86_64"
                                                : "holds code for x86_64, and this machine is aarch64"));
}

TEST(Artifact, OtherProgramsRunWhenOneNeedsMore) {
  artifact::Manifest manifest = toy_manifest();
  manifest.programs.push_back(headrace::testing::toy_program("fast"));
  manifest.programs[1].target.features = {"avx1024"};
  const TempFile file(make_artifact(manifest));
  const auto artifact = open_or_die(file.path());
  EXPECT_NE(executor_or_die(artifact, 1), nullptr);
  const auto fast = try_make_executor(artifact, "fast", {.threads = 1});
  ASSERT_FALSE(fast);
  EXPECT_EQ(fast.refusal().code, HR_REASON_CPU_FEATURE_MISSING);
}

TEST(ArtifactRefuses, ManifestsThatDoNotFitTheFile) {
  artifact::Manifest manifest = toy_manifest();
  manifest.weights[1].offset = 1 << 20;
  EXPECT_THAT(refusal_of(make_artifact(manifest)).message, HasSubstr("weights[1] covers 20 bytes at 1048576"));
  manifest = toy_manifest();
  manifest.modules = {{.loader = "toy", .section = ".headrace.blob.9", .imports = {}}};
  EXPECT_THAT(refusal_of(make_artifact(manifest)).message,
              HasSubstr("a section '.headrace.blob.9', which the file does not have"));
  const Refusal malformed = refusal_of(make_artifact("{\"format\": 3}"));
  EXPECT_EQ(malformed.code, HR_REASON_BAD_MANIFEST);
  EXPECT_THAT(malformed.message, HasSubstr("'format'"));
}

TEST(ArtifactRefuses, MissingKernelProgramAndThreads) {
  artifact::Manifest manifest = toy_manifest();
  manifest.programs[0].graph.steps[0].action = artifact::KernelCall{"toy_nothing"};
  const TempFile file(make_artifact(manifest));
  const auto artifact = open_or_die(file.path());
  const auto kernel = try_make_executor(artifact, "default", {.threads = 1});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.refusal().code, HR_REASON_SYMBOL_MISSING);
  EXPECT_THAT(kernel.refusal().message, HasSubstr("kernel 'toy_nothing'"));
  const auto program = try_make_executor(artifact, "training", {.threads = 1});
  ASSERT_FALSE(program);
  EXPECT_THAT(program.refusal().message, HasSubstr("no program 'training'; it has default"));
  EXPECT_THROW((void)try_make_executor(artifact, "default", {.threads = 100000}), UserError);
  EXPECT_THROW((void)try_make_executor(artifact, "default", {.threads = -1}), UserError);
}

TEST(ArtifactModule, MakesExecutorsByProgramName) {
  const TempFile file(make_artifact(toy_manifest()));
  const runtime::Module lib = load_artifact_module(file.path());
  EXPECT_FALSE(lib.GetFunction("training"));
  const auto executor = lib.GetFunction("default")(cpu(0)).as<runtime::Module>();
  const std::vector<float> x = toy_input();
  executor.GetFunction("set_input")("x", NDArray::from_vector({6, 8}, DataType::float_(32), x));
  executor.GetFunction("run")();
  const NDArray y = executor.GetFunction("get_output")(0).as<NDArray>();
  EXPECT_EQ(floats(y.tensor()), toy_expected(x));
  EXPECT_THROW(lib.GetFunction("default")(Device{kDLCUDA, 0}), UserError);
  EXPECT_THROW(lib.GetFunction("default")(cpu(0), -1), UserError);
  const std::string how =
      "program 'default' takes one device, and if you like how many threads it runs on: "
      "lib[\"default\"](headrace.cpu())";
  EXPECT_EQ(kit::user_error_of([&] { lib.GetFunction("default")(); }), how);
  EXPECT_EQ(kit::user_error_of([&] { lib.GetFunction("default")(cpu(0), cpu(0)); }), how);
  EXPECT_EQ(kit::user_error_of([&] { lib.GetFunction("default")(1); }), how);
  EXPECT_THROW(load_artifact_module("/nonexistent"), UserError);
}

TEST(ArtifactModule, TakesBoundParametersAgain) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  artifact::Manifest manifest = toy_manifest();
  manifest.programs[0].bound_params = {
      {.spec = headrace::testing::spec("w", {2, 3}),
       .hash = artifact::content_hash({reinterpret_cast<const uint8_t*>(w.data()), w.size() * sizeof(float)})}};
  const TempFile file(make_artifact(manifest));
  const auto executor = load_artifact_module(file.path()).GetFunction("default")(cpu(0)).as<runtime::Module>();
  EXPECT_EQ(executor.GetFunction("get_bound_params")().as<Array<std::string>>().to_vector(),
            std::vector<std::string>{"w"});
  const PackedFunc set_input = executor.GetFunction("set_input");
  set_input("w", NDArray::from_vector({2, 3}, DataType::float_(32), w));
  const auto error = [&](const NDArray& tensor) { return kit::user_error_of([&] { set_input("w", tensor); }); };
  EXPECT_THAT(error(NDArray::zeros({2, 3}, DataType::float_(32))), HasSubstr("this tensor has other elements"));
  EXPECT_THAT(error(NDArray::zeros({3, 2}, DataType::float_(32))), HasSubstr("parameter 'w' has shape (3, 2)"));
  EXPECT_THAT(error(NDArray::zeros({2, 3}, DataType::int_(32))), HasSubstr("parameter 'w' has dtype int32"));
  EXPECT_THAT(kit::user_error_of([&] { executor.GetFunction("get_input")("w"); }),
              HasSubstr("no input 'w': the parameter was bound"));
}

// ---- external modules: driver/external_modules_test.cc has those that exist

artifact::Manifest external_manifest() {
  artifact::Manifest manifest = toy_manifest();
  artifact::Program& program = manifest.programs[0];
  program.inputs = {headrace::testing::spec("x", {4})};
  program.outputs = {headrace::testing::spec("y", {4})};
  program.graph.entries = {headrace::testing::entry(artifact::Place::kInput, 0, {4}),
                           headrace::testing::entry(artifact::Place::kOutput, 0, {4})};
  program.graph.steps = {headrace::testing::step(artifact::ExternalCall{"toy_unknown"}, {0, 1}, "scale1")};
  program.placement = {{.op = "scale1", .backend = "toy", .reason = HR_REASON_NONE, .message = ""}};
  return manifest;
}

TEST(ExternalModule, ImportOfNobodyIsAnError) {
  const TempFile file(make_artifact(external_manifest()));
  const auto artifact = open_or_die(file.path());
  const Expected<std::shared_ptr<executors::Executor>> executor =
      try_make_executor(artifact, "default", {.threads = 1});
  ASSERT_FALSE(executor) << "an unresolved import was accepted";
  EXPECT_EQ(executor.refusal().code, HR_REASON_SYMBOL_MISSING);
  EXPECT_THAT(executor.refusal().message,
              HasSubstr("needs the function 'toy_unknown', which its program 'default' calls for scale1"));
}

}  // namespace
}  // namespace headrace::load
