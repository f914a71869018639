// Opening artifacts and models for the verbs that run them.
#pragma once

#include "tools/headrace/options.h"
#include "load/run.h"

namespace headrace::tools {

// UserError when the name is that of a model, where an artifact is wanted.
void refuse_model(const std::string& path);

// UserError with the refusal's sentence; a missing backend or CPU feature is exit code 4.
std::shared_ptr<const load::Artifact> open_artifact(const std::string& path);
std::shared_ptr<load::Executor> make_executor(std::shared_ptr<const load::Artifact> artifact,
                                              const std::string& program, int threads);

// What a compile into memory made; `name` is what messages call it.
std::shared_ptr<const load::Artifact> open_compiled(driver::CompiledModel compiled, const std::string& name);

// Whether a path names an artifact (.so) and no model.
bool is_artifact(const std::string& path);

// The artifact of a model file: an artifact (.so) as it is, anything else compiled into memory. `limits` gets the
// index_limits of a model that was compiled.
std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common,
                                                      std::vector<int64_t>& limits);

// A dependency that is not there; exit code 4.
class MissingError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace headrace::tools
