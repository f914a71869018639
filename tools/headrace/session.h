// Opens artifacts and models for the verbs that run them.
#pragma once

#include "tools/headrace/options.h"
#include "load/run.h"

namespace headrace::tools {

// Throws UserError if the path names a model where an artifact is expected.
void refuse_model(const std::string& path);

// Opens an artifact. Throws refusals as errors (Expected::value_or_throw).
std::shared_ptr<const load::Artifact> open_artifact(const std::string& path);

// Returns whether a path names an artifact (model.so, model.so.1), not a model.
bool is_artifact(const std::string& path);

// Opens an artifact (.so), or compiles a model into memory. `limits` receives the index_limits of a compiled model.
std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common,
                                                      std::vector<int64_t>& limits);

}  // namespace headrace::tools
