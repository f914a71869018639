#include "kit/onnx_data.h"

#include <gtest/gtest.h>

#include <map>

#include "frontend/onnx/file/read_model.h"
#include "kit/errors.h"

namespace headrace::kit {
namespace {

// Reads every model of the package with every tensor in it, and every test value by the type the model declares.
TEST(OnnxData, EveryCaseReads) {
  std::vector<OnnxCase> cases = find_onnx_cases();
  int values = 0;
  for (const OnnxCase& one : cases) {
    SCOPED_TRACE(one.model.string());
    onnx::Model model = onnx::read_model(one.model.string());
    EXPECT_FALSE(model.graph.nodes.empty() && model.graph.outputs.empty());
    onnx::TensorSource source(model);
    for (const onnx::TensorProto& tensor : model.graph.initializers) source.load(tensor);
    ASSERT_FALSE(one.data_sets.empty());
    for (const OnnxDataSet& set : one.data_sets) {
      ASSERT_LE(set.inputs.size(), model.graph.inputs.size());
      ASSERT_EQ(set.outputs.size(), model.graph.outputs.size());
      for (size_t i = 0; i < set.inputs.size(); ++i) {
        values += static_cast<int>(read_onnx_value(set.inputs[i], model.graph.inputs[i].type).tensors.size());
      }
      for (size_t i = 0; i < set.outputs.size(); ++i) {
        values += static_cast<int>(read_onnx_value(set.outputs[i], model.graph.outputs[i].type).tensors.size());
      }
    }
  }
  EXPECT_GE(cases.size(), 1072U);
  EXPECT_GE(values, 3000);
}

TEST(OnnxData, ValuesOfAKnownCase) {
  // test_abs: y = |x| for x f32[3,4,5].
  for (const OnnxCase& one : find_onnx_cases()) {
    if (one.suite != "node" || one.name != "test_abs") continue;
    onnx::Model model = onnx::read_model(one.model.string());
    OnnxValue x = read_onnx_value(one.data_sets.at(0).inputs.at(0), model.graph.inputs.at(0).type);
    OnnxValue y = read_onnx_value(one.data_sets.at(0).outputs.at(0), model.graph.outputs.at(0).type);
    EXPECT_EQ(x.tensors.at(0).dims, (std::vector<int64_t>{3, 4, 5}));
    const auto* xs = reinterpret_cast<const float*>(x.tensors[0].bytes.data());
    const auto* ys = reinterpret_cast<const float*>(y.tensors.at(0).bytes.data());
    for (int i = 0; i < 60; ++i) EXPECT_EQ(ys[i], std::abs(xs[i]));
    return;
  }
  FAIL() << "there is not a test_abs";
}

TEST(OnnxData, SequencesAndOptionalsAreRecognised) {
  std::map<onnx::ValueKind, int> kinds;
  for (const OnnxCase& one : find_onnx_cases()) {
    onnx::Model model = onnx::read_model(one.model.string());
    for (const onnx::ValueInfo& output : model.graph.outputs) ++kinds[output.type.kind];
  }
  EXPECT_GT(kinds[onnx::ValueKind::kTensor], 1000);
  EXPECT_GT(kinds[onnx::ValueKind::kSequence], 5);
  EXPECT_GT(kinds[onnx::ValueKind::kOptional], 0);
  EXPECT_EQ(kinds[onnx::ValueKind::kUnknown], 0);
}

TEST(OnnxData, MissingFolderAndTooFewCasesAreErrors) {
  EXPECT_NE(user_error_of([] { find_onnx_cases("/no/such"); }).find("install the package libonnx-testdata"),
            std::string::npos);
  auto folder = std::filesystem::path(testing::TempDir()) / "few_cases";
  for (const OnnxSuite& suite : kOnnxSuites) std::filesystem::create_directories(folder / suite.name);
  EXPECT_NE(user_error_of([&] { find_onnx_cases(folder); }).find("has 0 cases where at least 932 are expected"),
            std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(OnnxData, ValueOfUnknownKindIsAnError) {
  std::filesystem::path file = find_onnx_cases().at(0).model;
  EXPECT_NE(user_error_of([&] { read_onnx_value(file, {}); }).find("neither a tensor nor a sequence"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::kit
