#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>

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
  const hr_executor_options options{.size = sizeof(hr_executor_options), .threads = 2};
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
  const hr_executor_options bad_size{.size = 1, .threads = 1};
  EXPECT_EQ(hr_executor_create(artifact_, nullptr, &bad_size, &executor), HR_USAGE);
  const hr_executor_options bad_threads{.size = sizeof(hr_executor_options), .threads = -5};
  EXPECT_EQ(hr_executor_create(artifact_, nullptr, &bad_threads, &executor), HR_USER);
  EXPECT_THAT(hr_last_error()->message, HasSubstr("-5 threads were asked for"));
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
