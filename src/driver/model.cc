#include "driver/model.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/read_text.h"
#include "driver/register_all.h"
#include "frontend/onnx/graph_inputs.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/file/read_model.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/weights_file.h"
#include "relay/unique_binders.h"

namespace headrace::driver {

namespace {

Model load_relay(const std::string& path, const LoadOptions& options) {
  if (!options.shapes.empty() || !options.dims.empty() || !options.bound.empty())
    throw_user_error(
        "'{}' is relay text, whose inputs have the shapes that it says; shapes, dimensions and bound inputs are for "
        "ONNX",
        path);
  std::vector<NDArray> weights;
  if (!options.weights.empty()) weights = relay::read_weights(options.weights);
  const std::string folder = std::filesystem::path(path).parent_path();
  const IRModule module =
      relay::parse_module(read_text(path, "program"), path,
                          {.weights = options.weights.empty() ? nullptr : &weights, .import_paths = {folder}});
  Model model = make_model(module);
  for (const auto& [name, source] : module->source_map()) {
    if (name != path) model.files.push_back(name);  // a file that the text imports
  }
  return model;
}

ModelPort port_of(const onnx::ValueInfo& info) {
  ModelPort port{std::string(info.name), onnx::element_type_name(info.type.element_type), {}};
  port.has_shape = info.type.shape.has_value();
  if (info.type.shape) {
    for (const onnx::Dim& dim : *info.type.shape) port.shape.push_back({dim.value, std::string(dim.symbol)});
  }
  return port;
}

ModelPort port_of(const std::string& name, const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  ModelPort port{name, tensor == nullptr ? to_string(type) : tensor->dtype.to_string(), {}};
  if (tensor == nullptr) return port;
  for (const PrimExpr& dim : tensor->shape) {
    const auto value = as_int(dim);
    port.shape.push_back({value.value_or(-1), value ? "" : to_string(dim)});
  }
  return port;
}

ModelPorts ports_of(const Model& model) {
  const auto main = model.module->lookup("main").cast<relay::FunctionNode>();
  ModelPorts ports;
  for (const relay::Var& param : main->params) ports.inputs.push_back(port_of(param->name_hint, param->checked_type()));
  const std::vector<Type> results = leaves_of(main->body->checked_type());
  for (size_t i = 0; i < results.size(); ++i) ports.outputs.push_back(port_of(model.outputs[i], results[i]));
  return ports;
}

ModelPorts ports_of(const onnx::Graph& graph) {
  ModelPorts ports;
  for (const onnx::ValueInfo* input : onnx::true_inputs(graph)) ports.inputs.push_back(port_of(*input));
  for (const onnx::ValueInfo& output : graph.outputs) ports.outputs.push_back(port_of(output));
  return ports;
}

std::map<std::string, std::vector<std::string>> dim_names_of(const onnx::Graph& graph) {
  std::map<std::string, std::vector<std::string>> names;
  const auto add = [&](const onnx::ValueInfo& info) {
    if (!info.type.shape) return;
    std::vector<std::string> own;
    for (const onnx::Dim& dim : *info.type.shape) own.emplace_back(onnx::symbol_of(dim));
    if (std::any_of(own.begin(), own.end(), [](const std::string& name) { return !name.empty(); }))
      names.emplace(info.name, std::move(own));
  };
  for (const onnx::ValueInfo* input : onnx::true_inputs(graph)) add(*input);
  for (const onnx::ValueInfo& output : graph.outputs) add(output);
  return names;
}

// Formats example sizes for the inputs of `graph` that have open dimensions and that `options` do not set. Fixed
// dimensions stay, and open ones get typical sizes: batch 1, pictures of 224 by 224, otherwise 16.
std::string size_example(const onnx::Graph& graph, const LoadOptions& options) {
  std::map<std::string, int64_t> symbols = options.dims;
  OpenSizes sizes;
  bool all_named = true;
  for (const onnx::ValueInfo* input : onnx::true_inputs(graph)) {
    const ModelPort port = port_of(*input);
    if (options.shapes.contains(port.name) || options.bound.contains(port.name)) continue;
    std::vector<int64_t> shape;
    bool is_open = !input->type.shape;  // not even its rank is known
    if (is_open) shape.push_back(1);
    all_named = all_named && !is_open;
    for (const ModelDim& dim : port.shape) {
      const size_t i = shape.size();
      const int64_t guess = i == 0 ? 1 : port.shape.size() == 4 && i >= 2 ? 224 : 16;
      const bool is_named = !onnx::symbol_of((*input->type.shape)[i]).empty();
      is_open = is_open || (dim.value < 0 && !options.dims.contains(dim.symbol));
      all_named = all_named && (dim.value >= 0 || is_named);
      const auto add_symbol = [&] {
        const auto [it, is_new] = symbols.try_emplace(dim.symbol, guess);
        if (is_new) sizes.dims.emplace_back(dim.symbol, guess);
        return it->second;
      };
      shape.push_back(dim.value >= 0 ? dim.value : is_named ? add_symbol() : guess);
    }
    if (is_open) sizes.shapes.emplace_back(port.name, std::move(shape));
  }
  if (!all_named) sizes.dims.clear();
  return options.show_sizes(sizes);
}

void check_no_weights(const std::string& path, const std::string& weights) {
  if (!weights.empty())
    throw_user_error("'{}' brings its weights itself; the weights file '{}' is for relay text", path, weights);
}

// Returns whether the path is that of an open descriptor, such as an ONNX model in memory.
bool is_descriptor(const std::string& path) { return path.starts_with("/proc/self/fd/"); }

onnx::Model read_onnx(const std::string& path) {
  onnx::Model model = onnx::read_model(path);
  if (is_descriptor(path)) model.directory.clear();  // external data must not name the process's other descriptors
  return model;
}

// Asks the backends in their order; the reasons of all make up the refusal.
onnx::ClaimNode claim_of(const partition::Backends& backends) {
  if (backends.empty()) return {};
  return [backends](const ops::OnnxNode& node) -> Expected<std::vector<TensorType>> {
    std::vector<std::string> reasons;
    for (const auto& backend : backends) {
      Expected<std::vector<TensorType>> types = backend->claim(node);
      if (types) return types;
      reasons.push_back(fmt::format("{}: {}", backend->name(), types.refusal().message));
    }
    return Refusal{HR_REASON_OP_UNSUPPORTED, fmt::format("{}", fmt::join(reasons, "; "))};
  };
}

Model load_onnx(const std::string& path, const LoadOptions& options) {
  check_no_weights(path, options.weights);
  const onnx::Model source = read_onnx(path);
  const onnx::ImportOptions import{options.shapes, options.bound, claim_of(options.backends), options.dims};
  const std::vector<std::string> open = onnx::symbolic_dimensions(source, import);
  if (!open.empty()) {
    throw_user_error("'{}' leaves these dimensions open: {}; give them sizes, as in {}", path, fmt::join(open, ", "),
                     size_example(source.graph, options));
  }
  onnx::ImportedModel imported = onnx::import_model(source, import);
  Model model{std::move(imported.module), std::move(imported.inputs), std::move(imported.outputs),
              std::move(imported.files), options.bound};
  model.dims = dim_names_of(source.graph);
  return model;
}

// Checks the names of main's parameters, which become the names of the program's inputs.
void check_names(const std::vector<std::string>& names) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      throw_user_error("parameter {} of @main has no name, which its input would have; give the variable one", i);
    const auto [first, is_new] = places.emplace(names[i], i);
    if (!is_new)
      throw_user_error(
          "parameters {} and {} of @main are both named '{}', and inputs are known by their names; rename one",
          first->second, i, names[i]);
  }
}

// Returns the first bytes of a file, enough for the comments at the beginning of a text; none if it is not a regular
// file that can be read, which the readers of models report.
std::string begin_of(const std::string& path) {
  constexpr size_t kLooked = size_t{1} << 16;
  std::string begin;
  if (std::error_code ignored; !std::filesystem::is_regular_file(path, ignored)) return begin;
  begin.resize(kLooked);
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return begin;
}

// Returns the text after spaces and comments.
std::string_view after_comments(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    const std::string_view end = text.starts_with("//") ? "\n" : text.starts_with("/*") ? "*/" : "";
    if (end.empty()) return text;
    const size_t found = text.find(end, 2);
    if (found == std::string_view::npos) return {};
    text.remove_prefix(found + end.size());
  }
}

// Returns whether a message of protobuf that begins so may be an onnx.ModelProto: whether the tag is one of its fields.
bool may_be_onnx(std::string_view begin) {
  constexpr std::string_view kTags = "\x08\x12\x1a\x22\x28\x32\x3a\x42\x72\xa2\xca";
  return !begin.empty() && kTags.find(begin[0]) != std::string_view::npos;
}

}  // namespace

bool is_elf_file(const std::string& path) { return begin_of(path).starts_with("\x7f\x45LF"); }

std::optional<ModelFormat> find_model_format(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension();
  if (extension == ".relay") return ModelFormat::relay;
  if (extension == ".onnx" || is_descriptor(path)) return ModelFormat::onnx;
  const std::string begin = begin_of(path);
  if (after_comments(begin).starts_with("#[")) return ModelFormat::relay;
  return may_be_onnx(begin) ? std::optional(ModelFormat::onnx) : std::nullopt;
}

ModelFormat model_format(const std::string& path) {
  if (const auto found = find_model_format(path)) return *found;
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    throw_user_error("'{}' is a folder, not a model", path);
  if (std::filesystem::path(path).extension() == ".so" || is_elf_file(path))
    throw_user_error("'{}' is a compiled artifact; give the model that it was made from", path);
  if (begin_of(path).empty()) return ModelFormat::onnx;
  throw_user_error(
      "'{}' is not a model that can be read: its name ends in neither .onnx nor .relay, and it begins neither as an "
      "ONNX model nor as Relay text does, with #[version = \"0.0.5\"]",
      path);
}

bool ModelPort::is_fixed() const {
  return has_shape && std::all_of(shape.begin(), shape.end(), [](const ModelDim& dim) { return dim.value >= 0; });
}

std::string sizes_as_flags(const OpenSizes& sizes) {
  std::vector<std::string> flags;
  for (const auto& [name, size] : sizes.dims) flags.push_back(fmt::format("--dim {}={}", name, size));
  if (!flags.empty()) return fmt::format("{}", fmt::join(flags, " "));
  for (const auto& [name, shape] : sizes.shapes)
    flags.push_back(fmt::format("--shape {}={}", name, fmt::join(shape, ",")));
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string shapes_as_dict(std::string_view argument, const OpenSizes& sizes) {
  std::vector<std::string> items;
  for (const auto& [name, shape] : sizes.shapes)
    items.push_back(fmt::format("\"{}\": ({}{})", name, fmt::join(shape, ", "), shape.size() == 1 ? "," : ""));
  return fmt::format("{}={{{}}}", argument, fmt::join(items, ", "));
}

std::string sizes_as_arguments(const OpenSizes& sizes) {
  if (sizes.dims.empty()) return shapes_as_dict("shapes", sizes);
  std::vector<std::string> items;
  for (const auto& [name, size] : sizes.dims) items.push_back(fmt::format("\"{}\": {}", name, size));
  return fmt::format("dims={{{}}}", fmt::join(items, ", "));
}

ModelPorts read_ports(const std::string& path, const std::string& weights) {
  register_all();
  if (model_format(path) == ModelFormat::relay) return ports_of(load_relay(path, {.weights = weights}));
  check_no_weights(path, weights);
  return ports_of(read_onnx(path).graph);
}

std::vector<std::string> model_files(const std::string& path) {
  std::vector<std::string> files{path};
  if (model_format(path) == ModelFormat::relay) return files;
  const onnx::Model model = read_onnx(path);
  for (const std::string& location : onnx::external_locations(model))
    files.push_back((std::filesystem::path(model.directory) / location).string());
  return files;
}

Model load_model(const std::string& path, const LoadOptions& options) {
  register_all();
  Model model = model_format(path) == ModelFormat::relay ? load_relay(path, options) : load_onnx(path, options);
  model.files.push_back(path);
  if (!options.weights.empty()) model.files.push_back(options.weights);
  return model;
}

Model make_model(const IRModule& module) {
  register_all();
  // Takes a snapshot, because the caller may add functions to the module later.
  Model model{relay::infer_type(relay::unique_binders(snapshot(module))), {}, {}};
  const auto* main = model.module->lookup("main").as<relay::FunctionNode>();
  if (main == nullptr) throw_user_error("'@main' is not a relay function");
  for (const relay::Var& param : main->params) model.inputs.push_back(param->name_hint);
  check_names(model.inputs);
  const std::vector<Type> results = leaves_of(main->body->checked_type());
  for (size_t i = 0; i < results.size(); ++i) model.outputs.push_back(fmt::format("output{}", i));
  return model;
}

}  // namespace headrace::driver
