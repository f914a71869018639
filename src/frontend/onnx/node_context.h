// What a converter is given: one ONNX node, its inputs as relay expressions, its attributes, and what is known of them.
#pragma once

#include <set>

#include "frontend/onnx/facts.h"
#include "frontend/onnx/import_error.h"
#include "frontend/onnx/model.h"
#include "frontend/onnx/tensor.h"

namespace headrace::onnx {

using Exprs = std::vector<Expr>;

// Constants that converters make up (positions, weights of interpolation) are at most this long.
inline constexpr int64_t kMostTableEntries = int64_t{1} << 22;

// Thrown by converters; the importer collects them.
struct Refused {
  hr_reason reason;
  std::string message;
  std::string value = {};  // the one that must be known
};

class NodeContext {
 public:
  // `inputs` has an expression an input, null for one that is left out. Trailing ones left out are cut.
  NodeContext(const Node& node, int64_t opset, Exprs inputs, Facts& facts, TensorSource& tensors, Span span);

  int64_t opset() const { return opset_; }
  const Span& span() const { return span_; }
  const Node& node() const { return node_; }

  // Inputs, by position.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].defined(); }
  const Exprs& inputs() const { return inputs_; }
  // Refuses when it is left out.
  Expr input(size_t i) const;
  // The data of an input whose value decides what is built; refuses when it is not known. `name` is ONNX's.
  NDArray constant(size_t i, std::string_view name);
  Shape ints(size_t i, std::string_view name);
  double number(size_t i, std::string_view name);

  // Types and values of expressions made so far.
  TensorType type(const Expr& expr) { return facts_.type(expr); }
  DataType dtype(const Expr& expr) { return type(expr)->dtype; }
  size_t rank(const Expr& expr) { return type(expr)->shape.size(); }
  std::vector<PrimExpr> dims(const Expr& expr) { return type(expr)->shape.to_vector(); }
  // `x` in a dtype: itself where it has that one, else a cast of it.
  Expr cast(const Expr& x, DataType dtype);
  // `x` in the dtype that its sums, products and norms are computed in: float32 for float16 and bfloat16, whose sums
  // would pass their range or lose small terms, else its own. The result is cast back at the end.
  Expr widened(const Expr& x);
  // The whole shape, or one dimension; refuses when symbolic or past 2^31 - 1.
  Shape known_shape(const Expr& expr);
  int64_t known_dim(const Expr& expr, size_t axis);
  Facts& facts() { return facts_; }

  // Attributes. Each says the kind it has in ONNX; another kind in the model is refused.
  bool has_attr(std::string_view name) const { return node_.find_attribute(name) != nullptr; }
  int64_t int_attr(std::string_view name);  // a required one
  int64_t int_attr(std::string_view name, int64_t otherwise);
  bool flag_attr(std::string_view name, bool otherwise);  // 0 or 1
  // The element type that an integer names.
  ElementType element_type_attr(std::string_view name, ElementType otherwise);
  // The same of one that must be floating point.
  DataType float_type_attr(std::string_view name, ElementType otherwise);
  double float_attr(std::string_view name, double otherwise);
  std::string string_attr(std::string_view name, std::string_view otherwise);
  std::optional<Shape> ints_attr(std::string_view name);
  std::optional<std::vector<float>> floats_attr(std::string_view name);
  NDArray tensor_attr(std::string_view name);  // null when there is none
  // Attributes that say nothing about what is computed here.
  void ignore_attrs(std::initializer_list<std::string_view> names);
  // Those that no converter asked for; a model that has one means something that is not done here.
  std::vector<std::string_view> unread_attrs() const;

  // Outputs.
  size_t output_count() const { return output_count_; }
  bool wants(size_t i) const { return i < output_count_ && !node_.outputs[i].empty(); }

  // A scalar constant of a dtype.
  Expr scalar(double value, DataType dtype) { return relay::make_scalar(value, dtype); }
  // Input i, a tensor of one element, as a scalar; `name` is what the operator calls it.
  Expr one_number(size_t i, std::string_view name);
  // An int64 tensor.
  Expr int_constant(const Shape& shape, const std::vector<int64_t>& values) const;
  // Refuses to build a constant of more elements than any sane model asks for.
  void check_table_size(int64_t count) const;
  // Counted from 0; refuses when outside [-rank, rank).
  size_t axis_of(int64_t axis, size_t rank, std::string_view name = "axis") const;
  // `data` reshaped to dimensions, of which several may be symbolic; refuses when relay's reshape cannot say it.
  Expr reshape(const Expr& data, const std::vector<PrimExpr>& dims);
  // As above for known sizes, without reshape's special values.
  Expr reshape(const Expr& data, const Shape& shape);

  template <typename... Args>
  [[noreturn]] void refuse(hr_reason reason, fmt::format_string<Args...> format, Args&&... args) const {
    throw Refused{reason, fmt::format(format, std::forward<Args>(args)...), {}};
  }
  template <typename... Args>
  [[noreturn]] void invalid(fmt::format_string<Args...> format, Args&&... args) const {
    throw Refused{HR_REASON_BAD_MODEL, fmt::format(format, std::forward<Args>(args)...), {}};
  }
  // Refuses, as not supported, a dtype of `what` that `allowed` says no to.
  void check_dtype(const Expr& expr, std::string_view what, bool (*allowed)(DataType), std::string_view wanted);

 private:
  const Attribute* read_attr(std::string_view name, AttributeKind kind, std::string_view kind_name);

  const Node& node_;
  int64_t opset_;
  Exprs inputs_;
  size_t output_count_;
  Facts& facts_;
  TensorSource& tensors_;
  Span span_;
  std::set<std::string_view> read_;
};

// The relay dtype of an ONNX element type; nothing for those that no tensor of ours has (string, complex).
std::optional<DataType> find_dtype(ElementType type);
// A tensor of the model as an NDArray, sharing the file's memory where it can; Refused for a dtype without one,
// UserError for a malformed tensor.
NDArray load_array(TensorSource& tensors, const TensorProto& tensor);
// A node's name, or its first output's where it has none.
std::string node_label(const Node& node);
// "Conv", "com.example.Foo"
std::string op_label(const Node& node);

}  // namespace headrace::onnx
