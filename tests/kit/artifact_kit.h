// Artifacts for tests: code compiled from artifact_kernels.c, with the manifest that a test wants.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"
#include "artifact/manifest_json.h"
#include "artifact/trailer.h"
#include "base/architecture.h"
#include "base/temporary_name.h"
#include "kit/files.h"

namespace headrace::testing {

// A file in the temporary folder, removed at the end.
class TempFile {
 public:
  explicit TempFile(const std::vector<uint8_t>& bytes) {
    const char* folder = std::getenv("TMPDIR");
    path_ = temporary_name(std::string(folder != nullptr ? folder : "/tmp") + "/headrace_test_");
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) throw std::runtime_error("cannot make " + path_);
    ::close(descriptor);
    write(bytes);
  }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  void write(const std::vector<uint8_t>& bytes) const {
    kit::write_file(path_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

 private:
  std::string path_;
};

// Returns the bytes of the shared object, before manifest and trailer.
inline std::vector<uint8_t> toy_code() {
  const std::string code = kit::read_file(HEADRACE_TEST_ARTIFACT_CODE);
  return {code.begin(), code.end()};
}

// Returns the toy code with `text` as its manifest, and a trailer.
inline std::vector<uint8_t> make_artifact(std::string_view text) {
  constexpr std::string_view kMarker = "@@HEADRACE-MANIFEST@@";
  constexpr size_t kRoom = 65536;
  if (text.size() > kRoom) throw std::runtime_error("the manifest does not fit into the toy artifact");
  std::vector<uint8_t> bytes = toy_code();
  const auto at = std::search(bytes.begin(), bytes.end(), kMarker.begin(), kMarker.end());
  if (at == bytes.end()) throw std::runtime_error("no place for a manifest in the toy artifact");
  std::fill(at, at + kMarker.size(), ' ');
  std::copy(text.begin(), text.end(), at);
  artifact::append_trailer(bytes);
  return bytes;
}

inline artifact::TensorSpec spec(std::string name, std::vector<int64_t> shape) {
  return {.name = std::move(name), .dtype = DataType::float_(32), .shape = std::move(shape)};
}

inline artifact::Entry entry(artifact::Place place, int64_t index, std::vector<int64_t> shape) {
  artifact::Entry made;
  made.place = place;
  made.index = index;
  made.shape = std::move(shape);
  return made;
}

inline artifact::Step step(artifact::StepAction action, std::vector<int32_t> args, std::string op) {
  artifact::Step made;
  made.action = std::move(action);
  made.args = std::move(args);
  made.op = std::move(op);
  return made;
}

// Returns the toy program: x f32[6,8] -> y f32[30] = 2 relu(x w^T + b), same f32[6,8] = x.
inline artifact::Program toy_program(std::string name) {
  using artifact::Place;
  artifact::Program program;
  program.name = std::move(name);
  program.inputs = {spec("x", {6, 8})};
  program.outputs = {spec("y", {30}), spec("same", {6, 8})};
  program.target.triple = std::string(kHostArchitecture) + "-unknown-linux-gnu";
  program.target.cpu = "x86-64";
  program.compiler = "0.1.0";
  program.memory.arenas = {{.nbytes = 128}};
  program.memory.workspace_bytes = 64;
  program.memory.storages = {{.offset = 0, .nbytes = 120}};
  program.graph.entries = {entry(Place::kInput, 0, {6, 8}), entry(Place::kWeight, 0, {5, 8}),
                           entry(Place::kWeight, 1, {5}),   entry(Place::kStorage, 0, {6, 5}),
                           entry(Place::kStorage, 0, {30}), entry(Place::kOutput, 0, {30}),
                           entry(Place::kOutput, 1, {6, 8})};
  program.graph.steps = {step(artifact::KernelCall{"toy_dense_relu"}, {0, 1, 2, 3}, "fc1"),
                         step(artifact::KernelCall{"toy_add"}, {4, 4, 5}, "double"),
                         step(artifact::CopyStep{}, {0, 6}, "")};
  program.placement = {{.op = "fc1", .backend = "native", .reason = HR_REASON_NONE, .message = ""}};
  return program;
}

inline artifact::Manifest toy_manifest() {
  artifact::Manifest manifest;
  manifest.programs = {toy_program("default")};
  manifest.weights = {{.hash = std::string(32, 'a'), .offset = 0, .nbytes = 160, .dtype = {}, .shape = {5, 8}},
                      {.hash = std::string(32, 'b'), .offset = 192, .nbytes = 20, .dtype = {}, .shape = {5}}};
  return manifest;
}

inline std::vector<uint8_t> make_artifact(const artifact::Manifest& manifest) {
  return make_artifact(artifact::write_manifest(manifest));
}

// Returns an input of the toy program and its expected output, computed here and not by the code under test.
inline std::vector<float> toy_input() {
  std::vector<float> x(48);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) - 4.0f;
  return x;
}

inline std::vector<float> toy_expected(const std::vector<float>& x) {
  const std::vector<float> b = {0, 1, -2, 3, .25f};
  std::vector<float> y;
  for (size_t i = 0; i < 6; ++i) {
    const float* row = x.data() + i * 8;
    float sum = 0;
    for (size_t k = 0; k < 8; ++k) sum += row[k];
    for (float value :
         {row[0] + b[0], 2 * row[1] + b[1], sum + b[2], -row[7] + b[3], .5f * row[0] + .5f * row[1] + b[4]})
      y.push_back(2 * std::max(value, 0.0f));
  }
  return y;
}

// A contiguous float32 tensor over memory of the caller's.
struct TensorView {
  TensorView(float* data, std::vector<int64_t> dims) : shape(std::move(dims)) {
    tensor.data = data;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
  }
  TensorView(const TensorView&) = delete;
  TensorView& operator=(const TensorView&) = delete;
  std::vector<int64_t> shape;
  DLTensor tensor{};
};

}  // namespace headrace::testing
