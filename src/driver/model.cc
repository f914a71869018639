#include "driver/model.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/onnx/import.h"
#include "frontend/onnx/read_model.h"
#include "ops/all_ops.h"
#include "relay/infer_type.h"
#include "relay/parse.h"

namespace headrace::driver {

namespace {

size_t count_tensors(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return 1;
  size_t count = 0;
  for (const Type& item : tuple->items) count += count_tensors(item);
  return count;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_user_error("cannot read '{}': {}", path, std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

Model load_onnx(const std::string& path, const LoadOptions& options) {
  const onnx::Model source = onnx::read_model(path);
  const onnx::ImportOptions import{options.shapes, options.bound};
  const std::vector<std::string> open = onnx::symbolic_dimensions(source, import);
  if (!open.empty()) {
    throw_user_error(
        "'{}' leaves these dimensions open: {}; give the inputs their shapes, as in --shape {}=1,3,224,224", path,
        fmt::join(open, ", "), open.front().substr(0, open.front().find_first_of("[ ")));
  }
  onnx::ImportedModel imported = onnx::import_model(source, import);
  return {std::move(imported.module), std::move(imported.inputs), std::move(imported.outputs)};
}

Model load_relay(const std::string& path, const LoadOptions& options) {
  if (!options.shapes.empty() || !options.bound.empty())
    throw_user_error(
        "'{}' is relay text, whose inputs have the shapes that it says; shapes and bound inputs are for ONNX", path);
  return make_model(relay::parse_module(read_text(path), path));
}

}  // namespace

Model load_model(const std::string& path, const LoadOptions& options) {
  ops::register_all_ops();
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".relay") return load_relay(path, options);
  if (extension == ".onnx") return load_onnx(path, options);
  throw_user_error("'{}' is no model that can be read: its name ends in neither .onnx nor .relay", path);
}

Model make_model(const IRModule& module) {
  ops::register_all_ops();
  Model model{relay::infer_type(module), {}, {}};
  const auto* main = model.module->lookup("main").as<relay::FunctionNode>();
  if (main == nullptr) throw_user_error("'@main' is no relay function");
  for (const relay::Var& param : main->params) model.inputs.push_back(param->name_hint);
  const size_t count = count_tensors(main->body->checked_type());
  for (size_t i = 0; i < count; ++i) model.outputs.push_back(fmt::format("output{}", i));
  return model;
}

}  // namespace headrace::driver
