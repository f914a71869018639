// Opens artifacts and makes executors of their programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/expected.h"
#include "executors/executor.h"
#include "runtime/library.h"
#include "runtime/module.h"
#include "tensor/ndarray.h"

namespace headrace::load {

// An open artifact with its external modules. Immutable; threads share it.
struct Artifact {
  std::shared_ptr<const runtime::Library> library;
  // The external modules, as the manifest lists them. One that cannot be loaded, and that only regions with a native
  // form need, is a refusal that says why.
  std::vector<Expected<runtime::Module>> modules;
  // Its own functions are none; it imports the external modules of the file that are not imported by others.
  runtime::Module root;

  const artifact::Manifest& manifest() const { return library->manifest(); }
};

// Opens an artifact. Refuses as runtime::Library::open does, and with BACKEND_MISSING if this process has no loader for
// an external module. Throws UserError if a loader rejects its blob. A module that is there for regions with a native
// form alone may be missing: executors decide then (ExecutorOptions::fallback).
Expected<std::shared_ptr<const Artifact>> open_artifact(const std::string& path);
Expected<std::shared_ptr<const Artifact>> open_artifact(Descriptor descriptor, const std::string& name);
// Opens the artifact that a section of another artifact holds.
Expected<std::shared_ptr<const Artifact>> open_artifact(Descriptor descriptor, const artifact::ElfSection& section,
                                                        const std::string& name);

// Returns a view of a weight of the manifest, to be read only, which keeps the file open.
NDArray view_weight(const std::shared_ptr<const runtime::Library>& library, size_t index);

// Makes an executor of one program; it keeps the artifact open. Refuses with NOT_FOUND (no such program),
// CPU_FEATURE_MISSING, DEVICE_MISSING or SYMBOL_MISSING; for a region whose backend cannot be called, if the region has
// no native form or `options` forbid it, with BACKEND_MISSING or BACKEND_FAILED. Throws UserError on a number of
// threads or a processor out of range, and for lack of memory.
Expected<std::shared_ptr<executors::Executor>> try_make_executor(std::shared_ptr<const Artifact> artifact,
                                                                 const std::string& program,
                                                                 const executors::ExecutorOptions& options = {});
// Does the same, and throws a refusal as an error (Expected::value_or_throw).
std::shared_ptr<executors::Executor> make_executor(std::shared_ptr<const Artifact> artifact, const std::string& program,
                                                   const executors::ExecutorOptions& options = {});

}  // namespace headrace::load
