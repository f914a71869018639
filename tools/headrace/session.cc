#include "tools/headrace/session.h"

#include <filesystem>

#include "tools/headrace/index_limits.h"
#include "tools/headrace/tensors.h"

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

void add_shapes_of_files(const std::string& path, const std::vector<std::string>& inputs, driver::LoadOptions& load) {
  if (!is_onnx(path)) return;
  const std::map<std::string, artifact::TensorSpec> given = specs_in_files(inputs);
  if (given.empty()) return;
  for (const driver::ModelPort& port : driver::read_ports(path).inputs) {
    const auto file = given.find(port.name);
    if (file == given.end() || load.bound.contains(port.name) || port.is_fixed()) continue;
    load.shapes.emplace(port.name, file->second.shape);
  }
}

void add_artifact(FileUses& uses, const std::string& path, const artifact::Manifest& manifest) {
  uses.add_inputs("the artifact", {path});
  if (manifest.side_file)
    uses.add_inputs("the artifact", {std::filesystem::path(path).parent_path() / manifest.side_file->name});
}

std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common,
                                                      const std::vector<std::string>& inputs,
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
  driver::LoadOptions load = model.load_options(options);
  add_shapes_of_files(model.path, inputs, load);
  driver::Model source = driver::load_model(model.path, load);
  uses.add_inputs("the model", source.files);
  uses.check();
  limits = index_limits(source.module);
  return driver::open_compiled(driver::compile_to_memory(std::move(source), options), model.path);
}

}  // namespace headrace::tools
