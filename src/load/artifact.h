// Opens artifacts and makes executors of their programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "executors/executor.h"
#include "runtime/library.h"
#include "runtime/module.h"

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

// Makes an executor of one program; it keeps the artifact open. Refuses with NOT_FOUND (no such program),
// CPU_FEATURE_MISSING, DEVICE_MISSING or SYMBOL_MISSING. Throws UserError on a number of threads or a processor out of
// range, and for lack of memory.
Expected<std::shared_ptr<executors::Executor>> try_make_executor(std::shared_ptr<const Artifact> artifact,
                                                                 const std::string& program,
                                                                 const executors::ExecutorOptions& options = {});
// Does the same, and throws a refusal as an error (Expected::value_or_throw).
std::shared_ptr<executors::Executor> make_executor(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                                   const executors::ExecutorOptions& options = {});

}  // namespace headrace::load
