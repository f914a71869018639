// Another runtime on the same model, in a Python process of its own: `python3 -m headrace.peer`.
//
// It exchanges tensors as .npy files in a folder and talks in lines: we write `save` or `time`, it answers `saved N`,
// or the seconds of one run. Its first line is `ready VERSION`, `missing WHAT` or `error SENTENCE`.
#pragma once

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/ndarray.h"

namespace headrace::tools {

class Peer {
 public:
  // `name`: "onnxruntime"; `inputs`: of the model, by name. The Python is HEADRACE_PYTHON, else python3. MissingError
  // when Python, the package headrace or the peer is not installed; UserError with the peer's sentence when it rejects
  // the model.
  Peer(const std::string& name, const std::string& model, const std::map<std::string, NDArray>& inputs, int threads);
  // Says early what the constructor would say of a Python, package or peer that is not installed (MissingError) and of
  // a file that the peer cannot read.
  static void require(const std::string& name, const std::string& model);

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

  // Removed with what is in it.
  struct Folder {
    std::filesystem::path path;
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
  };
  // Waited for: it ends when its input does.
  struct Process {
    int id = -1;
    Process() = default;
    ~Process();
    Process(const Process&) = delete;
  };
  struct CloseFile {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<FILE, CloseFile>;

  // Each cleans up after itself, also when a constructor throws; in this order, so that the pipes are closed first.
  std::unique_ptr<Folder> folder_;
  std::string name_, version_;
  Process process_;
  File to_, from_;
};

}  // namespace headrace::tools
