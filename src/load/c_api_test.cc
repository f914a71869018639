#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>

#include <cstring>
#include <functional>
#include <thread>

#include "kit/artifact_kit.h"

namespace {

using headrace::testing::make_artifact;
using headrace::testing::TempFile;
using headrace::testing::TensorView;
using headrace::testing::toy_expected;
using headrace::testing::toy_input;
using headrace::testing::toy_manifest;
using ::testing::HasSubstr;

class CApi : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(hr_artifact_open(file_.path().c_str(), &artifact_), HR_OK); }
  void TearDown() override { hr_artifact_close(artifact_); }

  TempFile file_{make_artifact(toy_manifest())};
  hr_artifact* artifact_ = nullptr;
};

TEST_F(CApi, SaysWhatIsInTheFile) {
  int32_t count = 0;
  ASSERT_EQ(hr_artifact_num_programs(artifact_, &count), HR_OK);
  EXPECT_EQ(count, 1);
  const char* name = nullptr;
  ASSERT_EQ(hr_artifact_program_name(artifact_, 0, &name), HR_OK);
  EXPECT_STREQ(name, "default");
  ASSERT_EQ(hr_artifact_num_inputs(artifact_, nullptr, &count), HR_OK);
  EXPECT_EQ(count, 1);
  ASSERT_EQ(hr_artifact_num_outputs(artifact_, "default", &count), HR_OK);
  EXPECT_EQ(count, 2);
  hr_tensor_info info{};
  ASSERT_EQ(hr_artifact_output_info(artifact_, nullptr, 1, &info), HR_OK);
  EXPECT_STREQ(info.name, "same");
  EXPECT_EQ(info.dtype.bits, 32);
  ASSERT_EQ(info.ndim, 2);
  EXPECT_EQ(info.shape[1], 8);
  ASSERT_EQ(hr_artifact_input_info(artifact_, nullptr, 0, &info), HR_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(hr_c_api_version(), HR_C_API_VERSION);
}

TEST_F(CApi, RunsAfterTheArtifactIsClosed) {
  hr_executor* executor = nullptr;
  const hr_executor_options options{.size = sizeof(hr_executor_options),
                                    .threads = 2,
                                    .cpus = nullptr,
                                    .num_cpus = 0,
                                    .fallback = 0,
                                    .region_timeout_seconds = 0};
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, &options, &executor), HR_OK);
  hr_artifact_close(artifact_);
  artifact_ = nullptr;
  std::vector<float> x = toy_input();
  const TensorView input(x.data(), {6, 8});
  ASSERT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  DLTensor view{};
  ASSERT_EQ(hr_executor_get_output(executor, 0, &view), HR_OK);
  const auto* y = static_cast<const float*>(view.data);
  EXPECT_EQ(std::vector<float>(y, y + 30), toy_expected(x));
  std::vector<float> mine(30);
  const TensorView output(mine.data(), {30});
  ASSERT_EQ(hr_executor_set_output_zero_copy(executor, 0, &output.tensor), HR_OK);
  ASSERT_EQ(hr_executor_set_input_zero_copy(executor, 0, &input.tensor), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  EXPECT_EQ(mine, toy_expected(x));
  hr_executor_destroy(executor);
}

// Clients of version 1 give no processors; what lies behind their struct is not read.
TEST_F(CApi, TakesOptionsOfVersion1) {
  hr_executor* executor = nullptr;
  const int32_t far = 1 << 20;
  const hr_executor_options old{.size = HR_EXECUTOR_OPTIONS_SIZE_1,
                                .threads = 1,
                                .cpus = &far,
                                .num_cpus = 1,
                                .fallback = 0,
                                .region_timeout_seconds = 0};
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, &old, &executor), HR_OK);
  hr_executor_destroy(executor);
}

TEST_F(CApi, BackendsAreLoadedByTheirPath) {
  EXPECT_EQ(hr_load_backend(nullptr), HR_USAGE);
  EXPECT_EQ(hr_load_backend("/no/such/backend.so"), HR_MISSING_DEPENDENCY);
  EXPECT_STREQ(hr_last_error()->message,
               "there is no file '/no/such/backend.so'; give the path of a backend's shared library");
  EXPECT_EQ(hr_load_backend("/"), HR_USER);
}

// Returns a file whose program is a region: its function would be one of the process, and its native form is there.
std::vector<uint8_t> artifact_with_region() {
  headrace::artifact::Manifest manifest = toy_manifest();
  manifest.programs[0].graph.steps = {
      headrace::testing::step(headrace::artifact::RegionCall{"theirs"}, {0, 5, 6}, "theirs")};
  manifest.programs[0].graph.steps[0].num_outputs = 2;
  manifest.programs.push_back(headrace::testing::toy_program("theirs"));
  manifest.programs[1].region = "theirs";
  manifest.backends = {{.name = "chip", .version = "3"}};
  manifest.regions = {{.name = "theirs", .backend = "chip", .symbol = "", .fallback = "theirs", .body = ""}};
  return make_artifact(manifest);
}

TEST(CApiFallback, IsTakenAndReported) {
  const TempFile file{artifact_with_region()};
  hr_artifact* artifact = nullptr;
  ASSERT_EQ(hr_artifact_open(file.path().c_str(), &artifact), HR_OK);
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact, nullptr, nullptr, &executor), HR_OK);
  std::vector<float> x = toy_input();
  const TensorView input(x.data(), {6, 8});
  ASSERT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  DLTensor y{};
  ASSERT_EQ(hr_executor_get_output(executor, 0, &y), HR_OK);
  const std::vector<float> expected = toy_expected(x);
  EXPECT_EQ(std::memcmp(y.data, expected.data(), expected.size() * sizeof(float)), 0);
  int32_t count = 0;
  ASSERT_EQ(hr_executor_num_fallbacks(executor, &count), HR_OK);
  EXPECT_EQ(count, 1);
  hr_fallback fallback{};
  ASSERT_EQ(hr_executor_get_fallback(executor, 0, &fallback), HR_OK);
  EXPECT_STREQ(fallback.region, "theirs");
  EXPECT_STREQ(fallback.backend, "chip");
  EXPECT_EQ(fallback.reason, HR_REASON_BACKEND_MISSING);
  EXPECT_EQ(fallback.run, 0u);
  EXPECT_EQ(hr_executor_get_fallback(executor, 1, &fallback), HR_USAGE);
  EXPECT_EQ(hr_executor_get_fallback(executor, 0, nullptr), HR_USAGE);
  EXPECT_EQ(hr_executor_get_fallback(nullptr, 0, &fallback), HR_USAGE);
  EXPECT_EQ(hr_executor_num_fallbacks(nullptr, &count), HR_USAGE);
  EXPECT_EQ(hr_executor_num_fallbacks(executor, nullptr), HR_USAGE);
  hr_executor_destroy(executor);
  hr_executor_options options{.size = sizeof options,
                              .threads = 1,
                              .cpus = nullptr,
                              .num_cpus = 0,
                              .fallback = HR_FALLBACK_NONE,
                              .region_timeout_seconds = 0};
  EXPECT_EQ(hr_executor_create(artifact, nullptr, &options, &executor), HR_MISSING_DEPENDENCY);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("needs the function 'theirs'"));
  options.region_timeout_seconds = -1;
  EXPECT_EQ(hr_executor_create(artifact, nullptr, &options, &executor), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("a time limit of -1 seconds for regions; give one from 0"));
  // A client of version 2 does not have the field.
  options.size = HR_EXECUTOR_OPTIONS_SIZE_2;
  EXPECT_EQ(hr_executor_create(artifact, nullptr, &options, &executor), HR_MISSING_DEPENDENCY);
  options.size = sizeof options;
  options.fallback = 2;
  EXPECT_EQ(hr_executor_create(artifact, nullptr, &options, &executor), HR_USAGE);
  hr_artifact_close(artifact);
}

TEST_F(CApi, MisuseIsACode) {
  int32_t count = 0;
  const char* name = nullptr;
  hr_tensor_info info{};
  hr_artifact* artifact = nullptr;
  hr_executor* executor = nullptr;
  EXPECT_EQ(hr_artifact_open(nullptr, &artifact), HR_USAGE);
  EXPECT_EQ(hr_artifact_open("x", nullptr), HR_USAGE);
  EXPECT_EQ(hr_artifact_num_programs(nullptr, &count), HR_USAGE);
  EXPECT_EQ(hr_artifact_num_programs(artifact_, nullptr), HR_USAGE);
  EXPECT_EQ(hr_artifact_program_name(artifact_, 1, &name), HR_USAGE);
  EXPECT_EQ(hr_artifact_program_name(artifact_, -1, &name), HR_USAGE);
  EXPECT_EQ(hr_artifact_input_info(artifact_, nullptr, 1, &info), HR_USAGE);
  EXPECT_STREQ(hr_last_error()->message, "there is no input 1: there are 1");
  EXPECT_EQ(hr_artifact_input_info(artifact_, "none", 0, &info), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("has no program 'none'"));
  EXPECT_EQ(hr_executor_create(nullptr, nullptr, nullptr, &executor), HR_USAGE);
  const hr_executor_options bad_size{
      .size = 1, .threads = 1, .cpus = nullptr, .num_cpus = 0, .fallback = 0, .region_timeout_seconds = 0};
  EXPECT_EQ(hr_executor_create(artifact_, nullptr, &bad_size, &executor), HR_USAGE);
  const hr_executor_options bad_threads{.size = sizeof(hr_executor_options),
                                        .threads = -5,
                                        .cpus = nullptr,
                                        .num_cpus = 0,
                                        .fallback = 0,
                                        .region_timeout_seconds = 0};
  EXPECT_EQ(hr_executor_create(artifact_, nullptr, &bad_threads, &executor), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("-5 threads were asked for"));
  const int32_t far = 1 << 20;
  const hr_executor_options bad_cpu{.size = sizeof(hr_executor_options),
                                    .threads = 0,
                                    .cpus = &far,
                                    .num_cpus = 1,
                                    .fallback = 0,
                                    .region_timeout_seconds = 0};
  EXPECT_EQ(hr_executor_create(artifact_, nullptr, &bad_cpu, &executor), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("processor 1048576 was asked for"));
  const hr_executor_options no_cpus{.size = sizeof(hr_executor_options),
                                    .threads = 0,
                                    .cpus = nullptr,
                                    .num_cpus = 1,
                                    .fallback = 0,
                                    .region_timeout_seconds = 0};
  EXPECT_EQ(hr_executor_create(artifact_, nullptr, &no_cpus, &executor), HR_USAGE);
  EXPECT_EQ(hr_executor_run(nullptr), HR_USAGE);
  hr_executor_destroy(nullptr);
  hr_artifact_close(nullptr);
}

TEST_F(CApi, ErrorsOfAnExecutor) {
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, nullptr, &executor), HR_OK);
  EXPECT_EQ(hr_executor_run(executor), HR_USER);
  EXPECT_EQ(hr_last_error()->reason, HR_REASON_INPUT_MISSING);
  EXPECT_STREQ(hr_last_error()->op, "x");
  std::vector<float> x(48);
  const TensorView input(x.data(), {8, 6});
  EXPECT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("has shape (8, 6)"));
  EXPECT_EQ(hr_last_error()->reason, HR_REASON_BAD_TENSOR);
  EXPECT_EQ(hr_executor_set_input(executor, -1, &input.tensor), HR_USAGE);
  EXPECT_EQ(hr_executor_set_input(executor, 0, nullptr), HR_USAGE);
  DLTensor view{};
  EXPECT_EQ(hr_executor_get_output(executor, 2, &view), HR_USAGE);
  EXPECT_EQ(hr_executor_get_output(executor, 0, nullptr), HR_USAGE);
  hr_executor_destroy(executor);
}

// Null in every place of every function. The counts are those of the header; hr_executor_run and the functions that
// free are in MisuseIsACode.
TEST_F(CApi, NullIsACodeEverywhere) {
  int32_t count = 0;
  const char* name = nullptr;
  hr_tensor_info info{};
  DLTensor view{};
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, nullptr, &executor), HR_OK);
  std::vector<float> x = toy_input();
  const TensorView input(x.data(), {6, 8});
  const hr_status results[] = {
      hr_artifact_open("x", nullptr),
      hr_artifact_program_name(nullptr, 0, &name),
      hr_artifact_program_name(artifact_, 0, nullptr),
      hr_artifact_num_inputs(nullptr, nullptr, &count),
      hr_artifact_num_inputs(artifact_, nullptr, nullptr),
      hr_artifact_num_outputs(nullptr, nullptr, &count),
      hr_artifact_num_outputs(artifact_, nullptr, nullptr),
      hr_artifact_input_info(nullptr, nullptr, 0, &info),
      hr_artifact_input_info(artifact_, nullptr, 0, nullptr),
      hr_artifact_output_info(nullptr, nullptr, 0, &info),
      hr_artifact_output_info(artifact_, nullptr, 0, nullptr),
      hr_executor_create(artifact_, nullptr, nullptr, nullptr),
      hr_executor_set_input(nullptr, 0, &input.tensor),
      hr_executor_set_input_zero_copy(nullptr, 0, &input.tensor),
      hr_executor_set_input_zero_copy(executor, 0, nullptr),
      hr_executor_set_output_zero_copy(nullptr, 0, &input.tensor),
      hr_executor_set_output_zero_copy(executor, 0, nullptr),
      hr_executor_get_output(nullptr, 0, &view),
  };
  for (size_t i = 0; i < std::size(results); ++i) EXPECT_EQ(results[i], HR_USAGE) << i;
  EXPECT_THAT(hr_last_error()->message, HasSubstr("NULL"));
  hr_executor_destroy(executor);
}

// A mistake in the caller's tensor, and the words of the message about it.
struct BadTensor {
  std::string_view words;
  std::function<void(DLTensor&)> change;
};

// Returns mistakes in the toy's input, float32 [6, 8]. The first ones are wrong for any tensor.
std::vector<BadTensor> bad_tensors() {
  static int64_t negative[] = {6, -8}, huge[] = {INT64_MAX, 8};
  return {
      {"has no shape (shape is NULL)", [](DLTensor& t) { t.shape = nullptr; }},
      {"is on the device cuda(0); copy it to the CPU first", [](DLTensor& t) { t.device.device_type = kDLCUDA; }},
      {"has no memory (data is NULL)", [](DLTensor& t) { t.data = nullptr; }},
      {"goes past the end of the address space", [](DLTensor& t) { t.byte_offset = UINT64_MAX - 64; }},
      {"goes past the end of the address space", [](DLTensor& t) { t.byte_offset = uint64_t{1} << 63; }},
      {"goes past the end of the address space", [](DLTensor& t) { t.byte_offset = uint64_t{1} << 57; }},
      {"has 4 dimensions", [](DLTensor& t) { t.ndim = 4, t.shape = nullptr; }},
      {"has -1 dimensions", [](DLTensor& t) { t.ndim = -1; }},
      {"has 2147483647 dimensions", [](DLTensor& t) { t.ndim = INT32_MAX; }},
      {"has shape (6, -8)", [](DLTensor& t) { t.shape = negative; }},
      {"has shape (9223372036854775807, 8)", [](DLTensor& t) { t.shape = huge; }},
      {"is on a device of DLPack's type 99", [](DLTensor& t) { t.device.device_type = static_cast<DLDeviceType>(99); }},
      {"is on the device cpu(3); the CPU is cpu(0)", [](DLTensor& t) { t.device.device_id = 3; }},
      {"has dtype dtype(code 200, 32 bits)", [](DLTensor& t) { t.dtype.code = 200; }},
      {"has dtype complex32", [](DLTensor& t) { t.dtype.code = kDLComplex; }},
      {"has dtype float0", [](DLTensor& t) { t.dtype.bits = 0; }},
      {"has dtype float32x0", [](DLTensor& t) { t.dtype.lanes = 0; }},
      {"goes past the end of the address space",
       [](DLTensor& t) { t.data = reinterpret_cast<void*>(UINTPTR_MAX - 63); }},
  };
}

TEST_F(CApi, AMalformedTensorIsACode) {
  std::vector<float> x(48);
  const std::vector<BadTensor> cases = bad_tensors();
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, nullptr, &executor), HR_OK);
  for (const auto set : {hr_executor_set_input, hr_executor_set_input_zero_copy}) {
    for (const BadTensor& bad : cases) {
      TensorView input(x.data(), {6, 8});
      bad.change(input.tensor);
      EXPECT_EQ(set(executor, 0, &input.tensor), HR_USER) << bad.words;
      EXPECT_EQ(hr_last_error()->reason, HR_REASON_BAD_TENSOR) << bad.words;
      EXPECT_STREQ(hr_last_error()->op, "x");
      EXPECT_THAT(hr_last_error()->message, HasSubstr(bad.words));
    }
  }
  for (size_t i = 0; i < 4; ++i) {
    TensorView output(x.data(), {30});
    cases[i].change(output.tensor);
    EXPECT_EQ(hr_executor_set_output_zero_copy(executor, 0, &output.tensor), HR_USER) << cases[i].words;
    EXPECT_THAT(hr_last_error()->message, HasSubstr(cases[i].words));
  }
  hr_executor_destroy(executor);
}

TEST_F(CApi, StridesThatLeadNowhereAreACode) {
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, nullptr, &executor), HR_OK);
  std::vector<float> x = toy_input();
  TensorView input(x.data(), {6, 8});
  std::vector<int64_t> strides;
  for (const auto& bad :
       {std::vector<int64_t>{INT64_MAX, 1}, {8, INT64_MIN}, {INT64_MAX / 4, 1}, {INT64_MIN / 20, 1}}) {
    strides = bad;
    input.tensor.strides = strides.data();
    EXPECT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_USER) << bad[0];
    EXPECT_THAT(hr_last_error()->message, HasSubstr("past the end of the address space")) << bad[0];
    EXPECT_EQ(hr_executor_set_input_zero_copy(executor, 0, &input.tensor), HR_USER) << bad[0];
    EXPECT_THAT(hr_last_error()->message, HasSubstr("past the end of the address space")) << bad[0];
  }
  // From the last row to the first: each element lies where its stride says.
  strides = {-8, 1};
  input.tensor.data = x.data() + 40;
  ASSERT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  std::vector<float> turned;
  for (std::ptrdiff_t row = 6; row-- > 0;) turned.insert(turned.end(), x.begin() + 8 * row, x.begin() + 8 * (row + 1));
  DLTensor view{};
  ASSERT_EQ(hr_executor_get_output(executor, 0, &view), HR_OK);
  const auto* y = static_cast<const float*>(view.data);
  EXPECT_EQ(std::vector<float>(y, y + 30), toy_expected(turned));
  hr_executor_destroy(executor);
}

TEST_F(CApi, MemoryThatIsNotAlignedIsCopiedOrRefused) {
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, nullptr, &executor), HR_OK);
  const std::vector<float> x = toy_input();
  std::vector<char> bytes(1 + 48 * sizeof(float));
  std::memcpy(bytes.data() + 1, x.data(), 48 * sizeof(float));
  TensorView input(nullptr, {6, 8});
  input.tensor.data = bytes.data() + 1;
  EXPECT_EQ(hr_executor_set_input_zero_copy(executor, 0, &input.tensor), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("is not aligned to its element of 4 bytes"));
  ASSERT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_OK);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  DLTensor view{};
  ASSERT_EQ(hr_executor_get_output(executor, 0, &view), HR_OK);
  const auto* y = static_cast<const float*>(view.data);
  EXPECT_EQ(std::vector<float>(y, y + 30), toy_expected(x));
  hr_executor_destroy(executor);
}

// Before the first run, after memory was set for an output, and after a run that failed, nothing is in the output.
TEST_F(CApi, AnOutputThatNoRunFilledInIsACode) {
  hr_executor* executor = nullptr;
  ASSERT_EQ(hr_executor_create(artifact_, nullptr, nullptr, &executor), HR_OK);
  DLTensor view{};
  EXPECT_EQ(hr_executor_get_output(executor, 0, &view), HR_USAGE);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("output 'y' was not computed yet"));
  EXPECT_EQ(hr_executor_run(executor), HR_USER);  // the input is missing
  EXPECT_EQ(hr_executor_get_output(executor, 1, &view), HR_USAGE);
  std::vector<float> x = toy_input();
  const TensorView input(x.data(), {6, 8});
  ASSERT_EQ(hr_executor_set_input(executor, 0, &input.tensor), HR_OK);
  EXPECT_EQ(hr_executor_get_output(executor, 0, &view), HR_USAGE);
  ASSERT_EQ(hr_executor_run(executor), HR_OK);
  ASSERT_EQ(hr_executor_get_output(executor, 0, &view), HR_OK);
  std::vector<float> mine(30);
  const TensorView output(mine.data(), {30});
  ASSERT_EQ(hr_executor_set_output_zero_copy(executor, 0, &output.tensor), HR_OK);
  EXPECT_EQ(hr_executor_get_output(executor, 0, &view), HR_USAGE);
  EXPECT_EQ(hr_executor_get_output(executor, 1, &view), HR_OK);
  const TensorView shared(x.data(), {30});
  ASSERT_EQ(hr_executor_set_input_zero_copy(executor, 0, &input.tensor), HR_OK);
  ASSERT_EQ(hr_executor_set_output_zero_copy(executor, 0, &shared.tensor), HR_OK);
  EXPECT_EQ(hr_executor_run(executor), HR_USER);  // the output is a part of the input
  EXPECT_EQ(hr_executor_get_output(executor, 1, &view), HR_USAGE);
  hr_executor_destroy(executor);
}

TEST_F(CApi, LastErrorIsPerThread) {
  hr_artifact* artifact = nullptr;
  EXPECT_EQ(hr_artifact_open("/caf\xe9", &artifact), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("'/caf\xe9'"));  // bytes, as they were given
  EXPECT_EQ(hr_artifact_open("/nonexistent", &artifact), HR_USER);
  EXPECT_EQ(artifact, nullptr);
  EXPECT_EQ(hr_last_error()->reason, HR_REASON_NOT_FOUND);
  std::thread([] { EXPECT_EQ(hr_last_error()->code, HR_OK); }).join();
  EXPECT_THAT(hr_last_error()->message, HasSubstr("there is no file '/nonexistent'"));
}

TEST(CApiMissing, CpuFeatureIsAMissingDependency) {
  headrace::artifact::Manifest manifest = toy_manifest();
  manifest.programs[0].target.features = {"avx1024"};
  const TempFile file(make_artifact(manifest));
  hr_artifact* artifact = nullptr;
  EXPECT_EQ(hr_artifact_open(file.path().c_str(), &artifact), HR_MISSING_DEPENDENCY);
  EXPECT_EQ(hr_last_error()->reason, HR_REASON_CPU_FEATURE_MISSING);
}

}  // namespace
