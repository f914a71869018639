// Opening artifacts and models for the verbs that run them.
#pragma once

#include "tools/headrace/options.h"
#include "load/run.h"

namespace headrace::tools {

// UserError when the name is that of a model, where an artifact is wanted.
void refuse_model(const std::string& path);

// A refusal is an error (Expected::value_or_throw).
std::shared_ptr<const load::Artifact> open_artifact(const std::string& path);

// Whether a path names an artifact (.so) and no model.
bool is_artifact(const std::string& path);

// The artifact of a model file: an artifact (.so) as it is, anything else compiled into memory. `limits` gets the
// index_limits of a model that was compiled.
std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common,
                                                      std::vector<int64_t>& limits);

}  // namespace headrace::tools
