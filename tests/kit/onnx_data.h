// The ONNX node tests of the Debian package libonnx-testdata: where they are and what belongs to each.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/file/tensor.h"

namespace headrace::kit {

// One set of inputs with the outputs they must give, in the order of the graph's inputs and outputs.
struct OnnxDataSet {
  std::vector<std::filesystem::path> inputs;
  std::vector<std::filesystem::path> outputs;
};

struct OnnxCase {
  std::string suite;  // "node", "pytorch-converted", "pytorch-operator", "simple"
  std::string name;   // "test_abs"
  std::filesystem::path model;
  std::vector<OnnxDataSet> data_sets = {};
};

struct OnnxSuite {
  std::string_view name;
  size_t fewest_cases;  // fewer mean that the package changed or discovery broke
};

inline constexpr OnnxSuite kOnnxSuites[] = {
    {"node", 932}, {"pytorch-converted", 82}, {"pytorch-operator", 35}, {"simple", 23}};

// Returns the folder of the package, or the one named by HEADRACE_ONNX_TESTDATA.
std::filesystem::path onnx_data_folder();

// Returns the cases below one folder, sorted by name.
std::vector<OnnxCase> find_suite_cases(std::string_view suite, const std::filesystem::path& folder);

// Returns every case of every suite, sorted by suite and name. Throws UserError when the folder is missing or a suite
// has fewer cases than kOnnxSuites says.
std::vector<OnnxCase> find_onnx_cases(const std::filesystem::path& folder = onnx_data_folder());

// The content of a .pb file of a data set. The messages have no marker, so the kind comes from the model's declaration.
struct OnnxValue {
  onnx::ValueKind kind = onnx::ValueKind::kUnknown;
  std::vector<onnx::TensorData> tensors =
      {};  // one for a tensor, any number for a sequence of tensors, 0 or 1 (optional)
};

// Reads a TensorProto, a SequenceProto of tensors, or an OptionalProto of one of these, as `type` says. The result
// does not depend on the file. Throws UserError for a malformed file and for kinds that hold no tensors.
OnnxValue read_onnx_value(const std::filesystem::path& file, const onnx::ValueType& type);

}  // namespace headrace::kit
