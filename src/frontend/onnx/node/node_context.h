// The argument of a converter: one ONNX node, its inputs as relay expressions with known types and values, and its
// attributes.
#pragma once

#include <set>

#include "frontend/onnx/node/facts.h"
#include "frontend/onnx/node/import_error.h"
#include "frontend/onnx/file/model.h"
#include "frontend/onnx/file/tensor.h"
#include "frontend/onnx/node/function_call.h"

namespace headrace::onnx {

using Exprs = std::vector<Expr>;

// The largest number of elements of constants that converters generate (positions, weights of interpolation).
inline constexpr int64_t kMostTableEntries = int64_t{1} << 22;

// Thrown by converters; the importer collects them.
struct Refused {
  hr_reason reason;
  std::string message;
  std::string value = {};  // the name of the value that must be known, if that is the reason
};

class NodeContext {
 public:
  // `inputs` has an expression for each input, null for an omitted one. Trailing omitted inputs are removed. `call` is
  // the call whose function the node belongs to; null: it is a node of the graph.
  NodeContext(const Node& node, int64_t opset, Exprs inputs, Facts& facts, TensorSource& tensors, Span span,
              const FunctionCall* call = nullptr);

  int64_t opset() const { return opset_; }
  const Span& span() const { return span_; }
  const Node& node() const { return node_; }
  // Returns a name that no other node has: that of the first output, after the labels of the calls around the node.
  std::string unique_name() const;

  // Inputs, by position.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].defined(); }
  const Exprs& inputs() const { return inputs_; }
  // Returns input i. Throws Refused if it is omitted.
  Expr input(size_t i) const;
  // Return the value of an input that must be known when importing. Throw Refused if it is unknown. `name` is the
  // input's name in the ONNX specification.
  NDArray constant(size_t i, std::string_view name);
  Shape ints(size_t i, std::string_view name);
  double number(size_t i, std::string_view name);

  // Return types and values of expressions.
  TensorType type(const Expr& expr) { return facts_.type(expr); }
  DataType dtype(const Expr& expr) { return type(expr)->dtype; }
  size_t rank(const Expr& expr) { return type(expr)->shape.size(); }
  std::vector<PrimExpr> dims(const Expr& expr) { return type(expr)->shape.to_vector(); }
  // Casts `x` to a dtype; returns `x` itself if it already has it.
  Expr cast(const Expr& x, DataType dtype);
  // Casts `x` to the dtype in which its sums, products and norms are computed: float32 for float16 and bfloat16, whose
  // sums would overflow or lose small terms, otherwise its own. Converters cast the result back at the end.
  Expr widened(const Expr& x);
  // Return the shape, or one dimension. Throw Refused if it is symbolic or larger than 2^31 - 1.
  Shape known_shape(const Expr& expr);
  int64_t known_dim(const Expr& expr, size_t axis);
  Facts& facts() { return facts_; }

  // Return attributes. Throw Refused if the model's attribute has another kind than the getter. `otherwise` is the
  // default of an optional attribute.
  bool has_attr(std::string_view name) const { return find_attr(name) != nullptr; }
  int64_t int_attr(std::string_view name);  // a required attribute
  int64_t int_attr(std::string_view name, int64_t otherwise);
  bool flag_attr(std::string_view name, bool otherwise);  // 0 or 1
  // Returns the element type whose number the attribute holds.
  ElementType element_type_attr(std::string_view name, ElementType otherwise);
  // Returns that element type as a dtype. Throws Refused if it is not floating point.
  DataType float_type_attr(std::string_view name, ElementType otherwise);
  double float_attr(std::string_view name, double otherwise);
  std::string string_attr(std::string_view name, std::string_view otherwise);
  std::optional<Shape> ints_attr(std::string_view name);
  std::optional<std::vector<float>> floats_attr(std::string_view name);
  std::vector<std::string_view> strings_attr(std::string_view name);  // empty if the node has no such attribute
  NDArray tensor_attr(std::string_view name);                         // null if the node has no such attribute
  // Marks attributes that do not affect the result as read.
  void ignore_attrs(std::initializer_list<std::string_view> names);
  // Returns the node's attributes that the converter did not read. They ask for behaviour that is not implemented.
  std::vector<std::string_view> unread_attrs() const;

  // Outputs.
  size_t output_count() const { return output_count_; }
  bool wants(size_t i) const { return i < output_count_ && !node_.outputs[i].empty(); }

  // Makes a scalar constant of a dtype.
  Expr scalar(double value, DataType dtype) { return relay::make_scalar(value, dtype); }
  // Returns input i, a tensor of one element, as a scalar. `name` is the input's name in the ONNX specification.
  Expr one_number(size_t i, std::string_view name);
  // Makes an int64 tensor.
  Expr int_constant(const Shape& shape, const std::vector<int64_t>& values) const;
  // Throws Refused if a generated constant would have more than kMostTableEntries elements.
  void check_table_size(int64_t count) const;
  // Converts an axis in [-rank, rank) to one counted from 0. Throws Refused for any other.
  size_t axis_of(int64_t axis, size_t rank, std::string_view name = "axis") const;
  // Reshapes `data`. Several dimensions may be symbolic. Throws Refused if relay's reshape cannot express the shape.
  Expr reshape(const Expr& data, const std::vector<PrimExpr>& dims);
  // Reshapes `data` to known sizes, in which 0 and -1 have no special meaning.
  Expr reshape(const Expr& data, const Shape& shape);

  template <typename... Args>
  [[noreturn]] void refuse(hr_reason reason, fmt::format_string<Args...> format, Args&&... args) const {
    throw Refused{reason, fmt::format(format, std::forward<Args>(args)...), {}};
  }
  template <typename... Args>
  [[noreturn]] void invalid(fmt::format_string<Args...> format, Args&&... args) const {
    throw Refused{HR_REASON_BAD_MODEL, fmt::format(format, std::forward<Args>(args)...), {}};
  }
  // Throws Refused, as not supported, if `allowed` is false for the dtype of `expr`. `what` and `wanted` name the
  // expression and the allowed dtypes in the message.
  void check_dtype(const Expr& expr, std::string_view what, bool (*allowed)(DataType), std::string_view wanted);

 private:
  // Returns the node's attribute, or the one of the call that it refers to; null if there is none.
  const Attribute* find_attr(std::string_view name) const;
  const Attribute* read_attr(std::string_view name, AttributeKind kind, std::string_view kind_name);

  const Node& node_;
  int64_t opset_;
  Exprs inputs_;
  size_t output_count_;
  Facts& facts_;
  TensorSource& tensors_;
  Span span_;
  const FunctionCall* call_;
  std::set<std::string_view> read_;
};

// Returns the relay dtype of an ONNX element type; nullopt for types that relay does not have (string, complex).
std::optional<DataType> find_dtype(ElementType type);
// Loads a tensor of the model as an NDArray, which shares the file's memory where possible. Throws Refused for an
// element type without a relay dtype, and UserError for a malformed tensor.
NDArray load_array(TensorSource& tensors, const TensorProto& tensor);
// Returns a node's name, or the name of its first output if it has none. For a node of a function, it follows the label
// of the call: "layer1/Gelu_2".
std::string node_label(const Node& node, const FunctionCall* call = nullptr);
// "Conv", "com.example.Foo"
std::string op_label(const Node& node);

}  // namespace headrace::onnx
