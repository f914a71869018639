// Opens artifacts and makes executors of their programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "executors/graph/graph_runner.h"
#include "runtime/library.h"
#include "runtime/module.h"
#include "runtime/turn.h"

namespace headrace::load {

// An open artifact with its external modules. Immutable; threads share it.
struct Artifact {
  std::shared_ptr<const runtime::Library> library;
  // Its own functions are none; it imports the external modules of the file that are not imported by others.
  runtime::Module root;

  const artifact::Manifest& manifest() const { return library->manifest(); }
};

// Opens an artifact. Refuses as runtime::Library::open does, and with BACKEND_MISSING if this process has no loader for
// an external module; the message names the fallback that the manifest offers. Throws UserError if a loader rejects its
// blob.
Expected<std::shared_ptr<const Artifact>> open_artifact(const std::string& path);
Expected<std::shared_ptr<const Artifact>> open_artifact(Descriptor descriptor, const std::string& name);

// One program, ready to run: the runner and all that it borrows.
class Executor {
 public:
  // `threads` 0: the artifact's default, else one per processor. Refuses with NOT_FOUND (no such program),
  // CPU_FEATURE_MISSING or SYMBOL_MISSING. Throws UserError on a thread count out of range and for lack of memory.
  static Expected<std::shared_ptr<Executor>> make(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                                  int32_t threads);

  executors::GraphRunner& runner() { return *runner_; }
  const executors::GraphRunner& runner() const { return *runner_; }
  // Lock it to set tensors and run, if several threads may use the executor.
  runtime::Turn& turn() { return turn_; }

 private:
  explicit Executor(std::shared_ptr<const Artifact> artifact) : artifact_(std::move(artifact)) {}
  std::optional<Refusal> resolve(const artifact::Program& program);

  runtime::Turn turn_;
  std::shared_ptr<const Artifact> artifact_;
  std::vector<PackedFunc> imports_;  // of external steps, in order of steps
  std::unique_ptr<executors::GraphRunner> runner_;
  std::vector<executors::Callee> callees_;
};

// Makes an executor and throws a refusal as an error (Expected::value_or_throw).
std::shared_ptr<Executor> make_executor(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                        int32_t threads);

}  // namespace headrace::load
