// Another runtime on the same model, in a Python process of its own: `python3 -m headrace.peer`.
//
// It exchanges tensors as .npy files in a folder and talks in lines: we write `save` or `time`, it answers `saved N`,
// or the seconds of one run. Its first line is `ready VERSION`, `missing WHAT` or `error SENTENCE`. Its inputs and
// outputs are bound once, to memory that every run uses again, where the peer can bind them.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/ndarray.h"
#include "tools/headrace/interruption.h"

namespace headrace::tools {

class Peer {
 public:
  // `name`: "onnxruntime"; `inputs`: of the model, by name; `level` of optimisation: "none", or empty for the peer's
  // default. The Python is HEADRACE_PYTHON, else python3. MissingError
  // when Python, the package headrace or the peer is not installed; UserError with the peer's sentence when it rejects
  // the model.
  Peer(const std::string& name, const std::string& model, const std::map<std::string, NDArray>& inputs, int threads,
       const std::string& level = {});
  // Says early what the constructor would say of a Python, package or peer that is not installed (MissingError) and of
  // a file that the peer cannot read.
  static void require(const std::string& name, const std::string& model);

  const std::string& version() const { return version_; }
  // Runs once; the outputs in the model's order.
  std::vector<NDArray> run();
  // Runs once; seconds, measured in the peer's process around the call that runs the model and nothing else.
  double time();

 private:
  explicit Peer(const std::string& name);
  std::string read_version();
  void start(const std::vector<std::string>& command);
  std::string read_line();
  std::string ask(const char* request);

  struct CloseFile {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<FILE, CloseFile>;

  // Each cleans up after itself, also when a constructor throws; in this order, so that the pipes are closed first.
  TemporaryFolder folder_{"headrace-peer-"};
  std::string name_, version_;
  ChildProcess process_;
  File to_, from_;
};

}  // namespace headrace::tools
