// Another runtime on the same model, in a Python process of its own: `python3 -m headrace.peer`.
//
// It exchanges tensors as .npy files in a folder and talks in lines: we write `save` or `time`, it answers `saved N`,
// or the seconds of one run. Its first line is `ready VERSION`, `missing WHAT` or `error SENTENCE`.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tensor/ndarray.h"

namespace headrace::tools {

class Peer {
 public:
  // `name`: "onnxruntime". The Python is HEADRACE_PYTHON, else python3. MissingError when Python, the package headrace
  // or the peer is not installed; UserError with the peer's sentence when it rejects the model.
  Peer(const std::string& name, const std::string& model, const std::vector<std::string>& input_names,
       const std::vector<NDArray>& inputs, int threads);
  ~Peer();
  // Says early what the constructor would say of a Python, package or peer that is not installed: MissingError.
  static void require(const std::string& name);
  Peer(const Peer&) = delete;

  const std::string& version() const { return version_; }
  // Runs once; the outputs in the model's order.
  std::vector<NDArray> run();
  // Runs once; seconds, measured by the peer around its run call.
  double time();

 private:
  explicit Peer(const std::string& name);
  std::string read_version();
  void start(const std::vector<std::string>& command);
  std::string read_line();
  std::string ask(const char* request);

  std::filesystem::path folder_;
  std::string name_, version_;
  int process_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace headrace::tools
