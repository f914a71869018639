#include "kit/onnx_data.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/file/read_model.h"

namespace headrace::kit {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// prefix_0.pb, prefix_1.pb ... in numeric order, as far as they go.
std::vector<fs::path> numbered_files(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> files;
  while (true) {
    fs::path file = folder / fmt::format("{}_{}.pb", prefix, files.size());
    if (!fs::exists(file)) return files;
    files.push_back(std::move(file));
  }
}

OnnxCase read_case(std::string_view suite, const fs::path& folder) {
  OnnxCase result{.suite = std::string(suite), .name = folder.filename().string(), .model = folder / "model.onnx"};
  for (const fs::path& entry : sorted_entries(folder)) {
    if (entry.filename().string().starts_with("test_data_set_")) {
      result.data_sets.push_back({numbered_files(entry, "input"), numbered_files(entry, "output")});
    }
  }
  return result;
}

// Loads a tensor into a buffer of its own, because tensors of `bytes` are views and the file may go away.
onnx::TensorData load_detached(std::string_view bytes, const std::string& source) {
  onnx::TensorProto proto = onnx::read_tensor_proto(bytes, source);
  onnx::TensorData data = onnx::TensorSource(source).load(proto);
  if (data.type == onnx::ElementType::kString) {
    auto owner = std::make_shared<std::vector<std::string>>(data.strings.begin(), data.strings.end());
    data.strings.assign(owner->begin(), owner->end());
    data.owner = std::move(owner);
  } else if (!data.owner && !data.bytes.empty()) {
    auto owner = std::make_shared<std::vector<std::byte>>(data.bytes.begin(), data.bytes.end());
    data.bytes = *owner;
    data.owner = std::move(owner);
  }
  return data;
}

void read_value(std::string_view bytes, const std::string& source, const onnx::ValueType& type,
                std::vector<onnx::TensorData>& tensors);

// SequenceProto and OptionalProto hold their tensors in field 3, their sequences in field 5, optionals in field 7.
void read_container(std::string_view bytes, const std::string& source, const onnx::ValueType& type,
                    std::vector<onnx::TensorData>& tensors) {
  onnx::ValueKind inner = type.inner.at(0).kind;
  uint32_t wanted = inner == onnx::ValueKind::kTensor ? 3U : inner == onnx::ValueKind::kSequence ? 5U : 7U;
  onnx::Source place{bytes.data(), source};
  onnx::Place root{.what = "value"};
  onnx::FieldReader reader(place, bytes, root);
  while (reader.next()) {
    if (reader.field() == wanted) {
      read_value(reader.read_bytes(), source, type.inner[0], tensors);
    } else {
      reader.skip();
    }
  }
}

void read_value(std::string_view bytes, const std::string& source, const onnx::ValueType& type,
                std::vector<onnx::TensorData>& tensors) {
  switch (type.kind) {
    case onnx::ValueKind::kTensor:
      tensors.push_back(load_detached(bytes, source));
      return;
    case onnx::ValueKind::kSequence:
    case onnx::ValueKind::kOptional:
      read_container(bytes, source, type, tensors);
      return;
    default:
      throw_user_error("'{}' holds a value that is neither a tensor nor a sequence or optional of tensors", source);
  }
}

}  // namespace

fs::path onnx_data_folder() {
  const char* folder = std::getenv("HEADRACE_ONNX_TESTDATA");
  return folder ? folder : "/usr/share/libonnx-testdata/data";
}

std::vector<OnnxCase> find_suite_cases(std::string_view suite, const fs::path& folder) {
  std::vector<OnnxCase> cases;
  for (const fs::path& entry : sorted_entries(folder)) {
    if (fs::exists(entry / "model.onnx")) cases.push_back(read_case(suite, entry));
  }
  return cases;
}

std::vector<OnnxCase> find_onnx_cases(const fs::path& folder) {
  std::vector<OnnxCase> cases;
  for (const OnnxSuite& suite : kOnnxSuites) {
    fs::path suite_folder = folder / suite.name;
    if (!fs::is_directory(suite_folder)) {
      throw_user_error("no ONNX test data at '{}': install the package libonnx-testdata, or set HEADRACE_ONNX_TESTDATA",
                       suite_folder.string());
    }
    std::vector<OnnxCase> own = find_suite_cases(suite.name, suite_folder);
    const size_t found = own.size();
    std::move(own.begin(), own.end(), std::back_inserter(cases));
    if (found < suite.fewest_cases) {
      throw_user_error("'{}' has {} cases where at least {} are expected", suite_folder.string(), found,
                       suite.fewest_cases);
    }
  }
  return cases;
}

OnnxValue read_onnx_value(const fs::path& file, const onnx::ValueType& type) {
  auto mapped = MappedFile::open(file.string(), "test data file");
  std::string_view bytes(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  OnnxValue value{.kind = type.kind};
  read_value(bytes, file.string(), type, value.tensors);
  return value;
}

}  // namespace headrace::kit
