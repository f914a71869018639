// Helpers of the importer's tests, which build models and import them. Included by tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/import.h"
#include "frontend/onnx/file/read_model.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "kit/onnx_writer.h"
#include "ops/tests/op_testing.h"

namespace headrace::onnx::testing {

using kit::AttributeSpec;
using kit::GraphWriter;
using ops::testing::expect_near;
using ops::testing::make_array;
using ::testing::HasSubstr;
using Attributes = std::vector<AttributeSpec>;
using Ints = std::vector<int64_t>;

inline NDArray f32(const Shape& shape, const std::vector<double>& data) { return make_array(shape, data); }
inline NDArray zeros(const Shape& shape) {
  return f32(shape, std::vector<double>(static_cast<size_t>(num_elements(shape))));
}
inline NDArray i64(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::int_(64));
}
inline NDArray u8(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::uint(8));
}
inline NDArray i8(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::int_(8));
}
inline NDArray i32(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::int_(32));
}
inline NDArray f16(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::float_(16));
}
inline NDArray boolean(const Shape& shape, const std::vector<double>& data) {
  return make_array(shape, data, DataType::bool_());
}

// Returns the elements of a tensor as doubles.
inline std::vector<double> doubles_of(const NDArray& array) {
  std::vector<double> result;
  for (int64_t i = 0; i < array.num_elements(); ++i) result.push_back(element_as_double(array.tensor(), i));
  return result;
}

inline ElementType element_type(DataType dtype) {
  for (int32_t i = 1; i <= static_cast<int32_t>(ElementType::kInt2); ++i) {
    const std::string name = element_type_name(static_cast<ElementType>(i));
    if (name == dtype.to_string()) return static_cast<ElementType>(i);
  }
  ADD_FAILURE() << "no ONNX type for " << dtype.to_string();
  return ElementType::kUndefined;
}

// The bytes must outlive the model.
inline Model read(const std::string& bytes) { return read_model(std::as_bytes(std::span(bytes)), "m.onnx"); }

inline ImportedModel import_bytes(const std::string& bytes, const ImportOptions& options = {}) {
  return import_model(read(bytes), options);
}
inline ImportedModel import_graph(GraphWriter graph, int64_t opset = 13, const ImportOptions& options = {}) {
  return import_bytes(kit::encode_model(std::move(graph).finish(), {{"", opset}}), options);
}
// Returns the encoded FunctionProto that has the nodes of `body`; they import that opset of the default domain, or none
// if it is 0.
inline std::string encode_function(std::string_view domain, std::string_view name,
                                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                   GraphWriter body, int64_t opset = 13) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_string(1, name.data(), name.size());
  for (const std::string& input : inputs) writer.add_string(4, input);
  for (const std::string& output : outputs) writer.add_string(5, output);
  const kit::EncodedGraph graph = std::move(body).finish();
  protozero::pbf_reader reader(graph.bytes);
  while (reader.next()) {
    if (reader.tag() != 1) {
      reader.skip();
      continue;
    }
    const auto node = reader.get_view();
    writer.add_message(7, node.data(), node.size());
  }
  std::string import;
  protozero::pbf_writer(import).add_int64(2, opset);
  if (opset != 0) writer.add_message(9, import);
  writer.add_string(10, domain.data(), domain.size());
  return bytes;
}

// Returns the encoded model with these functions.
inline std::string encode_with_functions(GraphWriter graph, const std::vector<std::string>& functions) {
  std::string bytes = kit::encode_model(std::move(graph).finish(), {{"", 13}, {"local", 1}}, 10);
  for (const std::string& function : functions) protozero::pbf_writer(bytes).add_message(25, function);
  return bytes;
}

// The message of the UserError that importing throws; empty when it throws none.
inline std::string import_error(GraphWriter graph, int64_t opset = 13, const ImportOptions& options = {}) {
  return kit::user_error_of([&] { import_graph(std::move(graph), opset, options); });
}

inline std::string main_text(const ImportedModel& imported) {
  return to_string(imported.module->lookup("main")->checked_type());
}

// An operand of the node under test; a null tensor leaves an optional input out.
struct Operand {
  NDArray data;
  bool is_constant = false;
  Operand() = default;
  Operand(NDArray data, bool is_constant = false) : data(std::move(data)), is_constant(is_constant) {}
};
inline Operand fixed(NDArray data) { return {std::move(data), true}; }

// A graph of one node named n with outputs y0, y1...; operands are inputs x0, x1... or initialisers of these names.
inline GraphWriter node_graph(std::string_view op, const std::vector<Operand>& operands, const Attributes& attributes,
                              size_t outputs = 1, std::string_view domain = {}) {
  GraphWriter graph;
  std::vector<std::string> inputs, results;
  for (size_t i = 0; i < operands.size(); ++i) {
    const NDArray& data = operands[i].data;
    const std::string name = data ? fmt::format("x{}", i) : "";
    inputs.push_back(name);
    if (!data) continue;
    if (operands[i].is_constant) {
      graph.initializer(name, element_type(data.dtype()), data.shape(), data.bytes());
    } else {
      graph.input(name, element_type(data.dtype()), {data.shape().begin(), data.shape().end()});
    }
  }
  for (size_t i = 0; i < outputs; ++i) results.push_back(fmt::format("y{}", i));
  graph.node_with_outputs(op, inputs, results, attributes, domain);
  for (const std::string& name : results) graph.output(name, ElementType::kUndefined);
  return graph;
}

inline ImportedModel import_node(std::string_view op, int64_t opset, const std::vector<Operand>& operands,
                                 const Attributes& attributes = {}, size_t outputs = 1) {
  return import_graph(node_graph(op, operands, attributes, outputs), opset);
}

// The outputs of one node, computed by the interpreter.
inline std::vector<NDArray> run_node(std::string_view op, int64_t opset, const std::vector<Operand>& operands,
                                     const Attributes& attributes = {}, size_t outputs = 1) {
  const ImportedModel imported = import_node(op, opset, operands, attributes, outputs);
  std::vector<NDArray> args;
  for (const Operand& operand : operands) {
    if (operand.data && !operand.is_constant) args.push_back(operand.data);
  }
  return interp::run_main(imported.module, args);
}

inline std::string node_error(std::string_view op, int64_t opset, const std::vector<Operand>& operands,
                              const Attributes& attributes = {}, size_t outputs = 1) {
  return kit::user_error_of([&] { import_node(op, opset, operands, attributes, outputs); });
}

}  // namespace headrace::onnx::testing
