// Weights beside the artifact: written by the compiler, read by every client.
#include "plan/side_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "artifact/artifact_file.h"
#include "base/temporary_name.h"
#include "driver/built_module.h"
#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "kit/random_array.h"
#include "load/artifact_module.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// y = x w^T + b with constants that share bytes (%c is %b in another shape) and need padding (5 * 4 = 20 bytes).
constexpr const char* kWeighted =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3), float32]) {\n"
    "  %0 = nn.dense(%x, const(Tensor[(5, 3), float32], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),\n"
    "                units=5);\n"
    "  %1 = nn.bias_add(%0, const(Tensor[(5), float32], [1, -1, 2, -2, 0.5]));\n"
    "  (%1, multiply(%0, const(Tensor[(1, 5), float32], [1, -1, 2, -2, 0.5])))\n"
    "}\n";
constexpr float kX[] = {1, 0, -1, 2, 1, 0};
// By hand: x w^T is (-2, -2, -2, -2, -2; 4, 13, 22, 31, 40).
const std::vector<float> kFirst = {-1, -3, 0, -4, -1.5, 5, 12, 24, 29, 40.5};
const std::vector<float> kSecond = {-2, 2, -4, 4, -1, 4, -13, 44, -62, 20};

Model weighted_model() {
  ops::register_all_ops();
  return make_model(relay::parse_module(kWeighted));
}

std::vector<float> floats_of(const NDArray& array) {
  return {array.data<const float>(), array.data<const float>() + array.num_elements()};
}

NDArray weighted_input() { return NDArray::from_vector({2, 3}, DataType::float_(32), std::vector<float>(kX, kX + 6)); }

// A folder of the test's own.
class SideFile : public ::testing::Test {
 protected:
  SideFile() {
    std::string name = temporary_name(::testing::TempDir() + "headrace_side_");
    folder_ = mkdtemp(name.data());
    artifact_ = (folder_ / "model.so").string();
    side_ = folder_ / "model.so.safetensors";
  }
  ~SideFile() override { fs::remove_all(folder_); }

  CompileReport compile(int64_t limit = 0) const {
    return compile_to_file(weighted_model(), artifact_, {.weights_limit_bytes = limit});
  }
  static void expect_runs(const std::string& path) {
    const auto executor =
        load::try_make_executor(load::open_artifact(path).value_or_throw(), "default", {.threads = 1}).value_or_throw();
    const std::vector<NDArray> outputs = load::run(*executor, std::vector{weighted_input()});
    EXPECT_EQ(floats_of(outputs.at(0)), kFirst);
    EXPECT_EQ(floats_of(outputs.at(1)), kSecond);
  }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string compile_error(int64_t limit = 0) const {
    return kit::user_error_of([&] { compile(limit); });
  }

  fs::path folder_;
  std::string artifact_;
  fs::path side_;
};

TEST_F(SideFile, IsWrittenPastTheLimitOnly) {
  const CompileReport one = compile(1'000'000);
  EXPECT_FALSE(one.manifest.side_file);
  EXPECT_EQ(num_files(), 1u);
  const int64_t nbytes = 192;  // bytes of the three weights: 60 in 64, 20 in 64, twice or once
  compile(nbytes);
  EXPECT_EQ(num_files(), 1u);
  const CompileReport two = compile(63);
  ASSERT_TRUE(two.manifest.side_file);
  EXPECT_EQ(two.manifest.side_file->name, "model.so.safetensors");
  EXPECT_EQ(two.manifest.side_file->nbytes, static_cast<int64_t>(fs::file_size(side_)));
  EXPECT_EQ(two.artifact_bytes, static_cast<int64_t>(fs::file_size(artifact_)));
  EXPECT_EQ(num_files(), 2u);
  EXPECT_EQ(CompileOptions{}.weights_limit_bytes, 1'500'000'000);
  expect_runs(artifact_);
}

// Read by hand, with the format's own rules: the tensors fill the data without holes.
TEST_F(SideFile, IsASafetensorsFile) {
  const CompileReport report = compile();
  const std::string bytes = kit::read_file(side_);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  ASSERT_LT(8 + length, bytes.size());
  EXPECT_EQ((8 + length) % 64, 0u);
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  const std::string data = bytes.substr(8 + length);
  std::map<size_t, size_t> places;
  for (const auto& [name, row] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = row.at("data_offsets").at(0), end = row.at("data_offsets").at(1);
    EXPECT_TRUE(places.emplace(begin, end).second);
    size_t elements = 1;
    for (const auto& dim : row.at("shape")) elements *= dim.get<size_t>();
    EXPECT_EQ(end - begin, elements * (row.at("dtype") == "F32" ? 4 : 1)) << name;
  }
  size_t end = 0;
  for (const auto& [first, last] : places) {
    EXPECT_EQ(first, end);
    end = last;
  }
  EXPECT_EQ(end, data.size());
  EXPECT_EQ(header.at("__metadata__").at("format"), "headrace.weights");
  for (const char* part : {"\"shape\":[5,3]", "\"padding.1\":{\"dtype\":\"U8\",\"shape\":[4]"})
    EXPECT_THAT(bytes, HasSubstr(part));
  // One of the two shapes of the shared bytes has a tensor; the manifest finds both.
  std::set<int64_t> offsets;
  for (const artifact::Weight& weight : report.manifest.weights) {
    EXPECT_EQ(weight.offset % HR_ALIGNMENT, 0);
    offsets.insert(weight.offset);
    const float first = *reinterpret_cast<const float*>(bytes.data() + weight.offset);
    EXPECT_EQ(first, 1.0f);
  }
  EXPECT_EQ(report.manifest.weights.size(), 3u);
  EXPECT_EQ(offsets.size(), 2u);
  EXPECT_EQ(places.size(), 3u);
}

TEST_F(SideFile, SameModelSameBytes) {
  compile();
  const std::string artifact = kit::read_file(artifact_), side = kit::read_file(side_);
  compile_to_file(weighted_model(), artifact_, {.jobs = 2, .weights_limit_bytes = 10});
  EXPECT_EQ(kit::read_file(artifact_), artifact);
  EXPECT_EQ(kit::read_file(side_), side);
  EXPECT_EQ(num_files(), 2u);
}

TEST_F(SideFile, BareClientsAreToldToTakeTheRuntime) {
  compile();
  void* library = dlopen(artifact_.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto run = reinterpret_cast<headrace_run_function>(dlsym(library, HR_RUN_SYMBOL));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run(nullptr, 0, nullptr, 0, nullptr), HR_REASON_NEEDS_RUNTIME);
  dlclose(library);
}

TEST_F(SideFile, RunsFromTheCApi) {
  compile();
  hr_artifact* artifact = nullptr;
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_artifact_open(artifact_.c_str(), &artifact), HR_OK) << hr_last_error()->message;
  ASSERT_EQ(hr_executor_create(artifact, nullptr, nullptr, &executor), HR_OK);
  const NDArray x = weighted_input();
  ASSERT_EQ(hr_executor_set_input(executor, 0, &x.tensor()), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  DLTensor y{};
  ASSERT_EQ(hr_executor_get_output(executor, 0, &y), HR_OK);
  EXPECT_EQ(std::vector<float>(static_cast<float*>(y.data), static_cast<float*>(y.data) + 10), kFirst);
  hr_executor_destroy(executor);
  hr_artifact_close(artifact);
}

TEST_F(SideFile, RunsFromTheGraphExecutor) {
  compile();
  const auto module = load::load_artifact_module(artifact_).GetFunction("default")(cpu(0)).as<runtime::Module>();
  module.GetFunction("set_input")(0, weighted_input());
  module.GetFunction("run")();
  EXPECT_EQ(floats_of(module.GetFunction("get_output")(1).as<NDArray>()), kSecond);
}

TEST_F(SideFile, MayMoveWithItsArtifactOnly) {
  compile();
  const auto refusal = [&] { return load::open_artifact(artifact_).refusal(); };
  fs::rename(side_, folder_ / "elsewhere");
  EXPECT_EQ(refusal().code, HR_REASON_NOT_FOUND);
  EXPECT_THAT(refusal().message,
              HasSubstr("model.so.safetensors'; it holds the artifact's weights and must lie beside"));
  fs::create_directory(folder_ / "new");
  fs::rename(artifact_, folder_ / "new" / "renamed.so");
  fs::rename(folder_ / "elsewhere", folder_ / "new" / "model.so.safetensors");
  expect_runs((folder_ / "new" / "renamed.so").string());
  // A link to the artifact leads to both.
  fs::create_symlink("new/renamed.so", folder_ / "link.so");
  expect_runs((folder_ / "link.so").string());
}

TEST_F(SideFile, DamageIsTold) {
  compile();
  const std::string bytes = kit::read_file(side_);
  const auto refusal = [&](const std::string& now) {
    kit::write_file(side_, now);
    return load::open_artifact(artifact_).refusal();
  };
  std::string flipped = bytes;
  flipped[bytes.size() - 3] = static_cast<char>(flipped[bytes.size() - 3] ^ 1);
  EXPECT_EQ(refusal(flipped).code, HR_REASON_BAD_CHECKSUM);
  EXPECT_THAT(refusal(flipped).message, HasSubstr("damaged or of another compilation"));
  EXPECT_EQ(refusal(bytes.substr(0, bytes.size() - 1)).code, HR_REASON_TRUNCATED);
  EXPECT_EQ(refusal("").code, HR_REASON_TRUNCATED);
  kit::write_file(side_, bytes);
  expect_runs(artifact_);
}

TEST_F(SideFile, LinksAreFollowedWhenWriting) {
  fs::create_directory(folder_ / "real");
  fs::create_symlink("real/target.so", artifact_);
  compile();
  EXPECT_TRUE(fs::is_symlink(artifact_));
  EXPECT_TRUE(fs::exists(folder_ / "real" / "target.so.safetensors"));
  expect_runs(artifact_);
  expect_runs((folder_ / "real" / "target.so").string());
}

TEST_F(SideFile, BothAppearOrNeither) {
  fs::create_directory(side_);
  EXPECT_THAT(compile_error(), HasSubstr("model.so.safetensors': it is a folder"));
  fs::remove(side_);
  EXPECT_EQ(num_files(), 0u);
  // The artifact cannot get its name: the weights go again, those that were there come back.
  kit::write_file(side_, "before");
  OutputFile first(side_.string()), last(artifact_);
  ASSERT_EQ(write(first.descriptor(), "new", 3), 3);
  fs::create_directory(artifact_);
  EXPECT_THAT(kit::user_error_of([&] { commit_both(first, last); }), HasSubstr("cannot write '" + artifact_));
  EXPECT_EQ(kit::read_file(side_), "before");
  EXPECT_EQ(num_files(), 2u);
  fs::remove(side_);
  OutputFile third(side_.string());
  fs::remove(artifact_);
  OutputFile fourth(artifact_);
  fs::create_directory(artifact_);
  EXPECT_THAT(kit::user_error_of([&] { commit_both(third, fourth); }), HasSubstr("cannot write"));
  EXPECT_FALSE(fs::exists(side_));
  EXPECT_EQ(num_files(), 1u);
  fs::remove(artifact_);
  OutputFile fifth(side_.string()), sixth(artifact_);
  commit_both(fifth, sixth);
  EXPECT_EQ(num_files(), 2u);
}

TEST_F(SideFile, ReplacesNoInputAndTakesTextForItsName) {
  Model model = weighted_model();
  kit::write_file(side_, "the model's own weights");
  model.files = {side_.string()};
  EXPECT_THAT(kit::user_error_of([&] { compile_to_file(model, artifact_, {.weights_limit_bytes = 0}); }),
              HasSubstr("model.so.safetensors': the model is read from it; name another file"));
  EXPECT_EQ(kit::read_file(side_), "the model's own weights");
  EXPECT_FALSE(fs::exists(artifact_));
  artifact_ = (folder_ / "m\xff.so").string();
  EXPECT_THAT(compile_error(), HasSubstr("choose a name in UTF-8"));
  EXPECT_EQ(num_files(), 1u);
  EXPECT_THAT(compile_error(-1), HasSubstr("the limit of the weights in the artifact is -1 bytes"));
}

TEST_F(SideFile, AFullDiskIsTold) {
  plan::WeightTable table;
  table.add(NDArray::from_vector({1}, DataType::float_(32), std::vector<float>{1}));
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (full.number() < 0) GTEST_SKIP() << "there is no /dev/full here";
  EXPECT_THAT(kit::user_error_of([&] { plan::write_side_file(table, full.number(), "w", "the/w"); }),
              HasSubstr("cannot write 'the/w': No space"));
}

// Every dtype of a constant, those that the format lacks as bytes.
TEST_F(SideFile, DtypesThatTheFormatLacksAreBytes) {
  plan::WeightTable table;
  table.add(NDArray::zeros({3}, DataType::int_(4)));
  table.add(NDArray::zeros({0, 4}, DataType::float_(32)));
  table.add(NDArray::zeros({2, 2}, DataType::bfloat16()));
  const Descriptor file(::open(side_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const plan::SideWeights written = plan::write_side_file(table, file.number(), "w", "w");
  const std::string bytes = kit::read_file(side_);
  EXPECT_EQ(written.file.nbytes, static_cast<int64_t>(bytes.size()));
  EXPECT_THAT(bytes, HasSubstr(R"("weight.0":{"dtype":"U8","shape":[)"));
  EXPECT_THAT(bytes, HasSubstr(R"("weight.2":{"dtype":"BF16","shape":[2,2])"));
  EXPECT_THAT(bytes, ::testing::Not(HasSubstr("weight.1")));
}

TEST_F(SideFile, MemoryHoldsAllAndIsSavedAsTwoFiles) {
  CompiledModel compiled = compile_to_memory(weighted_model(), {.weights_limit_bytes = 0});
  EXPECT_FALSE(compiled.report.manifest.side_file);
  const auto executor =
      load::make_executor(open_compiled(std::move(compiled), "memory"), artifact::kDefaultProgram, {.threads = 1});
  EXPECT_EQ(floats_of(load::run(*executor, std::vector{weighted_input()}).at(0)), kFirst);
  const runtime::Module built = build_module(weighted_model(), {.weights_limit_bytes = 0});
  built.SaveToFile(artifact_, "so");
  const std::string artifact = kit::read_file(artifact_), side = kit::read_file(side_);
  EXPECT_EQ(num_files(), 2u);
  expect_runs(artifact_);
  compile();
  EXPECT_EQ(kit::read_file(artifact_), artifact);
  EXPECT_EQ(kit::read_file(side_), side);
}

}  // namespace
}  // namespace headrace::driver
