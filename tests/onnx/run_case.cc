#include "run_case.h"

#include <set>

#include "compare.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/node/node_context.h"
#include "frontend/onnx/file/read_model.h"
#include "object/structural_equal.h"
#include "ops/loops/dims.h"
#include "relay/visit.h"

namespace headrace::onnx_test {

namespace {

using onnx::ImportError;
using onnx::ImportOptions;
using onnx::Model;
using onnx::NodeRefusal;
using onnx::TensorData;

// Reads a tensor; the data stores bfloat16 tensors as uint16, their bits.
TensorData read_tensor(const std::filesystem::path& file, const onnx::ValueType& type) {
  TensorData data = kit::read_onnx_value(file, type).tensors.at(0);
  if (type.element_type == onnx::ElementType::kBfloat16 && data.type == onnx::ElementType::kUint16)
    data.type = onnx::ElementType::kBfloat16;
  return data;
}

// A case whose data does not have the shape that its own model declares says nothing.
void check_shape(const onnx::ValueInfo& info, const TensorData& data) {
  if (!info.type.shape) return;
  bool fits = info.type.shape->size() == data.dims.size();
  for (size_t i = 0; fits && i < data.dims.size(); ++i) {
    const onnx::Dim& dim = (*info.type.shape)[i];
    fits = dim.value < 0 || dim.value == data.dims[i];
  }
  if (!fits) {
    throw ImportError(
        {{"", "", HR_REASON_BAD_TENSOR,
          fmt::format("the data of input '{}' has another shape than its model declares", info.name), ""}},
        "", true);
  }
}

// Returns the tensors of a data set by name; other values are left out, since the importer refuses them.
std::map<std::string, NDArray> read_inputs(const Model& model, const kit::OnnxDataSet& set) {
  std::map<std::string, NDArray> inputs;
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const onnx::ValueInfo& info = model.graph.inputs.at(i);
    if (info.type.kind != onnx::ValueKind::kTensor || !onnx::element_size_bytes(info.type.element_type)) continue;
    const TensorData data = read_tensor(set.inputs[i], info.type);
    if (!onnx::find_dtype(data.type)) continue;
    check_shape(info, data);
    inputs.emplace(info.name, to_array(data));
  }
  return inputs;
}

ImportOptions fix_shapes(const Model& model, const std::map<std::string, NDArray>& inputs) {
  ImportOptions options;
  for (const onnx::ValueInfo& info : model.graph.inputs) {
    const auto data = inputs.find(std::string(info.name));
    if (data == inputs.end()) continue;
    bool is_static = info.type.shape.has_value();
    for (const onnx::Dim& dim : info.type.shape.value_or(std::vector<onnx::Dim>()))
      is_static = is_static && dim.value >= 0;
    if (!is_static) options.shapes[data->first] = data->second.shape();
  }
  return options;
}

// Returns the graph inputs that a value is computed from.
std::set<std::string> sources_of(const Model& model, const std::string& value) {
  std::set<std::string> seen{value}, sources;
  std::vector<std::string> pending{value};
  while (!pending.empty()) {
    const std::string name = std::move(pending.back());
    pending.pop_back();
    for (const onnx::ValueInfo& info : model.graph.inputs) {
      if (info.name == name) sources.insert(name);
    }
    for (const onnx::Node& node : model.graph.nodes) {
      if (std::find(node.outputs.begin(), node.outputs.end(), name) == node.outputs.end()) continue;
      for (std::string_view input : node.inputs) {
        if (seen.insert(std::string(input)).second) pending.emplace_back(input);
      }
    }
  }
  return sources;
}

// Binds the inputs that the refusals ask for; false when that changes nothing.
bool bind_needed(const Model& model, const std::vector<NodeRefusal>& refusals,
                 const std::map<std::string, NDArray>& inputs, ImportOptions& options) {
  bool bound = false;
  for (const NodeRefusal& refusal : refusals) {
    if (refusal.reason != HR_REASON_DATA_DEPENDENT) return false;
    for (const std::string& source : sources_of(model, refusal.value)) {
      const auto data = inputs.find(source);
      if (data == inputs.end()) continue;
      options.shapes.erase(source);
      bound = options.bound.emplace(source, data->second).second || bound;
    }
  }
  return bound;
}

// Asks for the conditions of the graph's Ifs, as the importer does for data that it must know: artifacts have no
// control flow yet. Returns nothing where the imported program has none.
std::vector<NodeRefusal> unknown_conditions(const Model& model, const onnx::ImportedModel& imported) {
  bool has_if = false;
  relay::post_order(imported.module->lookup("main").cast<relay::FunctionNode>()->body,
                    [&](const Expr& expr) { has_if = has_if || expr.is<relay::IfNode>(); });
  std::vector<NodeRefusal> conditions;
  for (const onnx::Node& node : model.graph.nodes) {
    if (has_if && node.op_type == "If")
      conditions.push_back({"", "If", HR_REASON_DATA_DEPENDENT, "", std::string(node.inputs[0])});
  }
  return conditions;
}

onnx::ImportedModel import_for(const Model& model, const std::map<std::string, NDArray>& inputs, bool& binds) {
  ImportOptions options = fix_shapes(model, inputs);
  while (true) {
    try {
      onnx::ImportedModel imported = onnx::import_model(model, options);
      if (!bind_needed(model, unknown_conditions(model, imported), inputs, options)) return imported;
      binds = true;
    } catch (const ImportError& error) {
      if (!bind_needed(model, error.refusals(), inputs, options)) throw;
      binds = true;
    }
  }
}

// Returns whether a node of the model draws random numbers: the data then gives dtype and shape only.
bool draws_numbers(const Model& model, const std::map<std::string, NDArray>& inputs) {
  static const std::set<std::string_view> kRandom = {"RandomNormal",      "RandomUniform", "RandomNormalLike",
                                                     "RandomUniformLike", "Bernoulli",     "Multinomial"};
  const auto is_zero = [&](std::string_view name) {
    const auto data = inputs.find(std::string(name));
    return data != inputs.end() && data->second.num_elements() == 1 && element_as_double(data->second.tensor(), 0) == 0;
  };
  return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [&](const onnx::Node& node) {
    const bool trains = node.op_type == "Dropout" && node.inputs.size() == 3 && !is_zero(node.inputs[1]);
    return trains || kRandom.contains(node.op_type);
  });
}

// Compares the result of a model that draws numbers with another executor's, and its shape and dtype with the data's.
std::string random_difference(const NDArray& got, const NDArray& first, const TensorData& expected) {
  if (!structural_equal(Value(got), Value(first))) return "it differs from what the first executor gives";
  const auto dtype = onnx::find_dtype(expected.type);
  if (got.shape() == Shape(expected.dims.begin(), expected.dims.end()) && got.dtype() == dtype) return "";
  return fmt::format("{} of shape ({}), expected {} of shape ({})", got.dtype(), fmt::join(got.shape(), ", "),
                     onnx::element_type_name(expected.type), fmt::join(expected.dims, ", "));
}

std::string check_set(const Model& model, const kit::OnnxDataSet& set, const std::vector<Executor>& executors,
                      bool& binds, bool& interprets) {
  const std::map<std::string, NDArray> inputs = read_inputs(model, set);
  const onnx::ImportedModel imported = import_for(model, inputs, binds);
  std::vector<NDArray> args;
  for (const std::string& name : imported.inputs) {
    if (!inputs.contains(name)) return fmt::format("the data has no input '{}'", name);
    args.push_back(inputs.at(name));
  }
  const bool is_random = draws_numbers(model, inputs);
  std::vector<NDArray> first;
  for (const Executor& executor : executors) {
    std::vector<NDArray> results;
    try {
      results = executor.run(imported.module, args);
    } catch (const UserError& error) {
      // Artifacts have no control flow yet, and data-dependent sizes only at the end of a program.
      const bool is_known = error.message().find(ops::kUnknownSize) != std::string::npos ||
                            error.message().find("is control flow") != std::string::npos;
      if (!is_known) throw;
      interprets = true;
      continue;
    }
    if (results.size() != set.outputs.size())
      return fmt::format("{}: {} outputs, expected {}", executor.name, results.size(), set.outputs.size());
    if (first.empty()) first = results;
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorData expected = read_tensor(set.outputs[i], model.graph.outputs.at(i).type);
      const std::string wrong =
          is_random ? random_difference(results[i], first[i], expected) : difference(results[i], expected);
      if (!wrong.empty()) return fmt::format("{}: output {}: {}", executor.name, i, wrong);
    }
  }
  return "";
}

// Notes what the node of a model of one node became.
void note_ops(const Model& model, const kit::OnnxDataSet& set, CaseResult& result) {
  if (model.graph.nodes.size() != 1) return;
  bool binds = false;
  const onnx::ImportedModel imported = import_for(model, read_inputs(model, set), binds);
  result.op = std::string(model.graph.nodes[0].op_type);
  result.relay_ops = ops_of(imported.module);
}

CaseResult check_case(const kit::OnnxCase& one, const std::vector<Executor>& executors) {
  CaseResult result{&one, Outcome::failed, "", {}};
  const Model model = onnx::read_model(one.model.string());
  bool binds = false, interprets = false;
  for (const kit::OnnxDataSet& set : one.data_sets) {
    result.message = check_set(model, set, executors, binds, interprets);
    if (!result.message.empty()) return result;
  }
  result.outcome = interprets ? Outcome::interpreted : binds ? Outcome::passed_bound : Outcome::passed_static;
  if (!one.data_sets.empty()) note_ops(model, one.data_sets[0], result);
  return result;
}

// Returns whether the importer refuses the opset, which it does before it looks at any node.
bool refuses_opset(const kit::OnnxCase& one, CaseResult& result) {
  try {
    onnx::default_opset(onnx::read_model(one.model.string()));
    return false;
  } catch (const UserError& error) {
    result.refusals.push_back({"", "", HR_REASON_OPSET_UNSUPPORTED, error.message(), ""});
    return true;
  }
}

}  // namespace

std::vector<std::string> ops_of(const IRModule& module) {
  std::vector<std::string> names;
  relay::post_order(module->lookup("main").cast<relay::FunctionNode>()->body, [&](const Expr& expr) {
    const auto* op = expr.as<OpNode>();
    if (op != nullptr && std::count(names.begin(), names.end(), op->name) == 0) names.push_back(op->name);
  });
  return names;
}

CaseResult run_case(const kit::OnnxCase& one, const std::vector<Executor>& executors) {
  CaseResult result{&one, Outcome::failed, "", {}};
  try {
    if (!refuses_opset(one, result)) return check_case(one, executors);
    result.outcome = Outcome::refused;
  } catch (const ImportError& error) {
    result.refusals = error.refusals();
    result.outcome = Outcome::refused;
    // The data's models are valid, so a contradiction that the importer reports is a defect of the importer.
    for (const NodeRefusal& refusal : result.refusals) {
      if (refusal.reason != HR_REASON_BAD_MODEL) continue;
      result.outcome = Outcome::failed;
      result.message = error.message();
    }
  } catch (const std::exception& error) {
    result.message = error.what();
  }
  return result;
}

}  // namespace headrace::onnx_test
