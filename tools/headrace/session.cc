#include "tools/headrace/session.h"

#include <filesystem>

#include "tools/headrace/index_limits.h"

namespace headrace::tools {

void refuse_model(const std::string& path) {
  if (driver::find_model_format(path))
    throw_user_error("'{}' is a model; compile it first: headrace compile {} -o model.so", path, path);
}

std::shared_ptr<const load::Artifact> open_artifact(const std::string& path) {
  refuse_model(path);
  return load::open_artifact(path).value_or_throw();
}

bool is_artifact(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  if (name.ends_with(".so") || name.find(".so.") != std::string::npos) return true;
  return !name.ends_with(".onnx") && !name.ends_with(".relay") && driver::is_elf_file(path);
}

bool is_onnx(const std::string& path) {
  return !is_artifact(path) && driver::model_format(path) == driver::ModelFormat::onnx;
}

void add_artifact(FileUses& uses, const std::string& path, const artifact::Manifest& manifest) {
  uses.add_inputs("the artifact", {path});
  if (manifest.side_file)
    uses.add_inputs("the artifact", {std::filesystem::path(path).parent_path() / manifest.side_file->name});
}

std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common,
                                                      std::vector<int64_t>& limits, FileUses& uses) {
  if (is_artifact(model.path)) {
    if (const auto given = model.given(); !given.empty())
      throw_user_error("'{}' is compiled already: {} {} for models", model.path, fmt::join(given, ", "),
                       given.size() == 1 ? "is" : "are");
    auto artifact = open_artifact(model.path);
    add_artifact(uses, model.path, artifact->manifest());
    uses.check();
    return artifact;
  }
  const driver::CompileOptions options = model.compile_options(common);
  driver::Model source = driver::load_model(model.path, model.load_options(options));
  uses.add_inputs("the model", source.files);
  uses.check();
  limits = index_limits(source.module);
  return driver::open_compiled(driver::compile_to_memory(std::move(source), options), model.path);
}

}  // namespace headrace::tools
