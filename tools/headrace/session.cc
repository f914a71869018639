#include "tools/headrace/session.h"

#include <filesystem>

namespace headrace::tools {

namespace {

template <typename T>
T value_or_throw(Expected<T> expected) {
  if (expected) return std::move(expected.value());
  const Refusal& refusal = expected.refusal();
  if (refusal.code == HR_REASON_BACKEND_MISSING || refusal.code == HR_REASON_CPU_FEATURE_MISSING)
    throw MissingError(refusal.message);
  throw UserError(refusal.message);
}

}  // namespace

std::shared_ptr<const load::Artifact> open_artifact(const std::string& path) {
  return value_or_throw(load::open_artifact(path));
}

std::shared_ptr<load::Executor> make_executor(std::shared_ptr<const load::Artifact> artifact,
                                              const std::string& program, int threads) {
  return value_or_throw(load::Executor::make(std::move(artifact), program, threads));
}

bool is_artifact(const std::string& path) { return std::filesystem::path(path).extension() == ".so"; }

std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common) {
  if (is_artifact(model.path)) {
    if (!model.shapes.empty() || !model.bound.empty())
      throw_user_error("'{}' is compiled already: --shape and --bind are for models", model.path);
    return open_artifact(model.path);
  }
  const driver::Model source = driver::load_model(model.path, model.load_options());
  driver::CompiledModel compiled = driver::compile_to_memory(source, model.compile_options(common));
  return value_or_throw(load::open_artifact(std::move(compiled.descriptor), model.path));
}

}  // namespace headrace::tools
