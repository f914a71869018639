#include "frontend/onnx/foreign_node.h"

#include "frontend/onnx/file/field_reader.h"

namespace headrace::onnx {

ForeignNodes::ForeignNodes(const Model& model, const ClaimNode& claim, const std::vector<GraphInput>& inputs)
    : model_(model), claim_(claim) {
  for (const GraphInput& input : inputs) {
    if (!input.var || !input.info->type.shape) continue;
    const std::vector<Dim>& dims = *input.info->type.shape;
    const auto* type = input.var->type_annotation.as<TensorTypeNode>();
    for (size_t i = 0; type != nullptr && i < dims.size() && i < type->shape.size(); ++i) {
      const auto size = as_int(type->shape[i]);
      if (size && !dims[i].symbol.empty()) symbols_.emplace(dims[i].symbol, *size);
    }
  }
}

ForeignNodes::Hidden ForeignNodes::declare(const Graph& graph) {
  Hidden hidden;
  if (!claim_) return hidden;
  for (const auto* infos : {&graph.value_infos, &graph.outputs}) {
    for (const ValueInfo& info : *infos)
      hidden.emplace_back(info.name, std::exchange(declared_[info.name], &info.type));
  }
  return hidden;
}

// The last first: a name may be declared twice.
void ForeignNodes::restore(const Hidden& hidden) {
  for (auto one = hidden.rbegin(); one != hidden.rend(); ++one) declared_[one->first] = one->second;
}

TensorType ForeignNodes::declared_type(std::string_view name) const {
  const auto found = declared_.find(name);
  if (found == declared_.end() || found->second == nullptr || found->second->kind != ValueKind::kTensor ||
      !found->second->shape)
    return {};
  const std::optional<DataType> dtype = find_dtype(found->second->element_type);
  if (!dtype) return {};
  Array<PrimExpr> shape;
  for (const Dim& dim : *found->second->shape) {
    const auto symbol = symbols_.find(dim.symbol);
    if (dim.value < 0 && (dim.symbol.empty() || symbol == symbols_.end())) return {};
    shape.push_back(make_int(dim.value >= 0 ? dim.value : symbol->second));
  }
  return make_tensor_type(shape, *dtype);
}

int64_t ForeignNodes::opset_of(const Node& node, const FunctionCall* call) const {
  const auto of = [&](const std::vector<OpsetImport>& imports) {
    for (const OpsetImport& import : imports) {
      const bool is_default = is_default_domain(node.domain) && is_default_domain(import.domain);
      if (is_default || import.domain == node.domain) return import.version;
    }
    return int64_t{0};
  };
  const int64_t own = call != nullptr ? of(call->function->opset_imports) : 0;
  const int64_t version = own != 0 ? own : of(model_.opset_imports);
  return version != 0 ? version : 1;
}

Expected<Exprs> ForeignNodes::import(const Node& node, const Exprs& inputs, Facts& facts,
                                     const FunctionCall* call) const {
  const auto has_reference = [](const Attribute& one) { return !one.ref_name.empty(); };
  if (std::any_of(node.attributes.begin(), node.attributes.end(), has_reference))
    return Refusal{HR_REASON_OP_UNSUPPORTED, "no backend is asked about nodes whose attributes a function gives"};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] && !node.inputs[i].empty())
      return Refusal{HR_REASON_OP_UNSUPPORTED, "no backend is asked about nodes whose inputs a call leaves out"};
  }
  if (node.has_graphs()) return Refusal{HR_REASON_OP_UNSUPPORTED, "no backend is asked about nodes with subgraphs"};
  ops::OnnxNode shown{.bytes = std::string(node.message),
                      .op = op_label(node),
                      .opset = opset_of(node, call),
                      .span = make_span(node_label(node, call))};
  for (const Expr& input : inputs) {
    if (input) shown.inputs.push_back(input);
  }
  for (const std::string_view output : node.outputs) shown.results.push_back(declared_type(output));
  Expected<std::vector<TensorType>> types = claim_(shown);
  if (!types) return types.refusal();
  if (types.value().size() != node.outputs.size())
    return Refusal{HR_REASON_SHAPE_UNSUPPORTED,
                   fmt::format("the backend that takes it says the types of {} results, and it has {}",
                               types.value().size(), node.outputs.size())};
  if (!ops::are_known(types.value()))
    return Refusal{HR_REASON_SHAPE_UNSUPPORTED,
                   "the backend that takes it says a type of a result whose sizes are not all numbers"};
  shown.results = types.value();
  const Expr results = facts.typed(ops::extern_onnx(shown));
  if (node.outputs.size() == 1) return Exprs{results};
  Exprs outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    outputs.push_back(facts.typed(relay::make_tuple_get_item(results, static_cast<int64_t>(i), shown.span)));
  return outputs;
}

}  // namespace headrace::onnx
