#include "ops/tensor/extern_onnx.h"

#include <algorithm>
#include <charconv>

#include "object/base64.h"
#include "ops/families.h"
#include "ops/tensor/onnx_node_fields.h"

namespace headrace::ops {

void ExternOnnxAttrs::fields(FieldList<ExternOnnxAttrs>& f) {
  f.field<&ExternOnnxAttrs::node>("node", {.doc = "the NodeProto in base64"})
      .field<&ExternOnnxAttrs::op>("op", {.doc = "its operator, with the domain if that is not the default one"})
      .field<&ExternOnnxAttrs::opset>("opset", {.doc = "the version of the operator's domain"})
      .field<&ExternOnnxAttrs::results>("results", {.doc = "the type of each output, such as \"float32[1,8]\""});
}

namespace {

std::string text_of(const TensorType& type) {
  return fmt::format("{}[{}]", type->dtype, fmt::join(as_shape(type->shape).value(), ","));
}

// Reads "float32[1,8]"; nothing for another text.
std::optional<TensorType> type_of_text(std::string_view text) {
  const size_t open = text.find('[');
  if (open == text.npos || !text.ends_with(']')) return std::nullopt;
  DataType dtype;
  try {
    dtype = DataType::parse(std::string(text.substr(0, open)));
  } catch (const UserError&) {
    return std::nullopt;
  }
  Shape shape;
  for (std::string_view rest = text.substr(open + 1, text.size() - open - 2); !rest.empty();) {
    int64_t dim = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    if (error != std::errc() || dim < 0) return std::nullopt;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    shape.push_back(dim);
    if (!rest.empty() && (rest[0] != ',' || rest.size() == 1)) return std::nullopt;
    if (!rest.empty()) rest.remove_prefix(1);
  }
  return make_tensor_type(to_dims(shape), dtype);
}

// Refuses a call whose other attributes and operands are not those of its node: backends rely on either.
void check_node(const RelationInput& input, const ExternOnnxAttrs& attrs) {
  std::optional<OnnxNodeFields> node;
  try {
    node = read_onnx_node(decode_base64(attrs.node));
  } catch (const UserError& error) {
    input.fail(fmt::format("its attribute node is not the base64 of a NodeProto: {}", error.message()));
  }
  if (!node) input.fail("its attribute node is not the base64 of a NodeProto: the bytes are not such a message");
  if (node->op != attrs.op)
    input.fail(fmt::format("its attribute op is '{}', and its node is of the operator '{}'", attrs.op, node->op));
  if (attrs.opset < 1) input.fail(fmt::format("its attribute opset is {}; versions begin at 1", attrs.opset));
  if (attrs.results.size() != node->num_outputs)
    input.fail(
        fmt::format("it lists {} results, and its node has {} outputs", attrs.results.size(), node->num_outputs));
  const auto* operands = input.arg_types[0].as<TupleTypeNode>();
  if (operands != nullptr && operands->items.size() != node->num_inputs)
    input.fail(fmt::format("it has {} operands, and its node {} inputs that are not left out", operands->items.size(),
                           node->num_inputs));
}

Type relate(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<ExternOnnxAttrs>();
  if (attrs.results.empty()) input.fail("it has no results");
  Array<Type> results;
  for (const std::string& text : attrs.results) {
    const auto type = type_of_text(text);
    if (!type) input.fail(fmt::format("'{}' is not a type of a result; write one such as float32[1,8]", text));
    results.push_back(*type);
  }
  check_node(input, attrs);
  return results.size() == 1 ? results[0] : Type(make_tuple_type(results));
}

}  // namespace

void register_extern_onnx_op() {
  OpBuilder("extern.onnx",
            "A node of an ONNX model for which there is no op, which the backend that claimed it computes: a tuple of "
            "tensors -> the results that it lists. It has no native code and no evaluation. Source: ONNX.")
      .arg("inputs", "Tuple[Tensor]", "the node's inputs, without those that are left out")
      .attrs<ExternOnnxAttrs>()
      .relation(relate)
      .fusion(FusionKind::opaque);
}

bool are_known(const std::vector<TensorType>& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const TensorType& type) { return type && as_shape(type->shape).has_value(); });
}

Expr extern_onnx(const OnnxNode& node) {
  return call_with<ExternOnnxAttrs>("extern.onnx",
                                    {relay::make_tuple({node.inputs.begin(), node.inputs.end()}, node.span)}, node.span,
                                    [&](ExternOnnxAttrs& attrs) {
                                      attrs.node = encode_base64(std::as_bytes(std::span(node.bytes)));
                                      attrs.op = node.op;
                                      attrs.opset = node.opset;
                                      for (const TensorType& type : node.results)
                                        attrs.results.push_back(text_of(type));
                                    });
}

}  // namespace headrace::ops
