#include "frontend/onnx/node/node_context.h"

#include <algorithm>

#include "arith/canonical.h"
#include "frontend/onnx/file/field_reader.h"
#include "ops/loops/dims.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

size_t count_given(const std::vector<std::string_view>& names) {
  size_t count = names.size();
  while (count > 0 && names[count - 1].empty()) --count;
  return count;
}

}  // namespace

NodeContext::NodeContext(const Node& node, int64_t opset, Exprs inputs, Facts& facts, TensorSource& tensors, Span span,
                         const FunctionCall* call)
    : node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      output_count_(count_given(node.outputs)),
      facts_(facts),
      tensors_(tensors),
      span_(std::move(span)),
      call_(call) {
  while (!inputs_.empty() && !inputs_.back()) inputs_.pop_back();
}

Expr NodeContext::input(size_t i) const {
  if (!has(i)) invalid("input {} is left out, but the operator needs it", i);
  return inputs_[i];
}

NDArray NodeContext::constant(size_t i, std::string_view name) {
  const NDArray data = facts_.constant(input(i));
  if (!data) {
    throw Refused{HR_REASON_DATA_DEPENDENT,
                  fmt::format("its input {} '{}' ({}) must be known when the model is imported; bind the graph input "
                              "that it is computed from to a constant (--bind NAME=FILE.npy, in Python "
                              "bound={{NAME: array}}), or fix the input shapes",
                              i, name, printable(node_.inputs[i])),
                  std::string(node_.inputs[i])};
  }
  return data;
}

Shape NodeContext::ints(size_t i, std::string_view name) {
  const NDArray data = constant(i, name);
  if (data.dtype().is_float() || data.dtype().is_bool() || data.shape().size() > 1) {
    invalid("its input {} '{}' must be a list of integers, got {} of {} dimensions", i, name, data.dtype(),
            data.shape().size());
  }
  Shape values;
  for (int64_t k = 0; k < data.num_elements(); ++k) values.push_back(element_as_int(data.tensor(), k));
  return values;
}

double NodeContext::number(size_t i, std::string_view name) {
  const NDArray data = constant(i, name);
  if (data.num_elements() != 1) invalid("its input {} '{}' must be one number", i, name);
  return element_as_double(data.tensor(), 0);
}

Expr NodeContext::cast(const Expr& x, DataType dtype) {
  return this->dtype(x) == dtype ? x : ops::cast(x, dtype, span_);
}

Expr NodeContext::widened(const Expr& x) {
  const DataType own = dtype(x);
  return own.is_float() && own.bits() == 16 ? ops::cast(x, DataType::float_(32), span_) : x;
}

int64_t NodeContext::known_dim(const Expr& expr, size_t axis) {
  const PrimExpr dim = type(expr)->shape.at(axis);
  const auto value = as_int(dim);
  if (!value) {
    refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "dimension {} of an input is '{}'; fix the input shapes", axis,
           to_string(dim));
  }
  // So that converters can multiply two sizes.
  if (*value > INT32_MAX) refuse(HR_REASON_SHAPE_UNSUPPORTED, "a dimension of {} is not supported", *value);
  return *value;
}

Shape NodeContext::known_shape(const Expr& expr) {
  Shape shape;
  for (size_t i = 0; i < rank(expr); ++i) shape.push_back(known_dim(expr, i));
  return shape;
}

std::string NodeContext::unique_name() const {
  const std::string_view own = node_.outputs.empty() ? std::string_view() : node_.outputs.front();
  return call_ == nullptr ? std::string(own) : fmt::format("{}/{}", call_->label, own);
}

const Attribute* NodeContext::find_attr(std::string_view name) const {
  const Attribute* own = node_.find_attribute(name);
  if (own == nullptr || own->ref_name.empty()) return own;
  if (call_ == nullptr) {
    invalid("attribute {} refers to the attribute {} of a function, but the node is in no function", printable(name),
            printable(own->ref_name));
  }
  const auto it = call_->attributes.find(own->ref_name);
  return it == call_->attributes.end() ? nullptr : it->second;
}

const Attribute* NodeContext::read_attr(std::string_view name, AttributeKind kind, std::string_view kind_name) {
  const Attribute* attribute = find_attr(name);
  if (attribute == nullptr) return nullptr;
  read_.insert(node_.find_attribute(name)->name);
  if (attribute->kind != kind)
    invalid("attribute {} is not {} {}", printable(name), kind_name.starts_with('i') ? "an" : "a", kind_name);
  return attribute;
}

int64_t NodeContext::int_attr(std::string_view name) {
  const Attribute* attribute = read_attr(name, AttributeKind::kInt, "integer");
  if (attribute == nullptr) invalid("attribute {} is missing", printable(name));
  return attribute->i;
}

int64_t NodeContext::int_attr(std::string_view name, int64_t otherwise) {
  const Attribute* attribute = read_attr(name, AttributeKind::kInt, "integer");
  return attribute != nullptr ? attribute->i : otherwise;
}

bool NodeContext::flag_attr(std::string_view name, bool otherwise) {
  const int64_t value = int_attr(name, otherwise ? 1 : 0);
  if (value != 0 && value != 1) invalid("attribute {} is {}, expected 0 or 1", printable(name), value);
  return value == 1;
}

ElementType NodeContext::element_type_attr(std::string_view name, ElementType otherwise) {
  const int64_t number = int_attr(name, static_cast<int64_t>(otherwise));
  if (number < 0 || number > INT32_MAX)
    invalid("attribute {} is {}, which is not an element type", printable(name), number);
  return static_cast<ElementType>(number);
}

DataType NodeContext::float_type_attr(std::string_view name, ElementType otherwise) {
  const ElementType type = element_type_attr(name, otherwise);
  const auto dtype = find_dtype(type);
  if (!dtype || !dtype->is_float()) {
    invalid("attribute {} names {}, expected a floating-point type", printable(name), element_type_name(type));
  }
  return *dtype;
}

double NodeContext::float_attr(std::string_view name, double otherwise) {
  const Attribute* attribute = read_attr(name, AttributeKind::kFloat, "float");
  return attribute != nullptr ? static_cast<double>(attribute->f) : otherwise;
}

std::string NodeContext::string_attr(std::string_view name, std::string_view otherwise) {
  const Attribute* attribute = read_attr(name, AttributeKind::kString, "string");
  return std::string(attribute != nullptr ? attribute->s : otherwise);
}

std::optional<Shape> NodeContext::ints_attr(std::string_view name) {
  const Attribute* attribute = read_attr(name, AttributeKind::kInts, "list of integers");
  return attribute != nullptr ? std::optional(attribute->ints) : std::nullopt;
}

std::optional<std::vector<float>> NodeContext::floats_attr(std::string_view name) {
  const Attribute* attribute = read_attr(name, AttributeKind::kFloats, "list of floats");
  return attribute != nullptr ? std::optional(attribute->floats) : std::nullopt;
}

std::vector<std::string_view> NodeContext::strings_attr(std::string_view name) {
  const Attribute* attribute = read_attr(name, AttributeKind::kStrings, "list of strings");
  return attribute != nullptr ? attribute->strings : std::vector<std::string_view>();
}

NDArray NodeContext::tensor_attr(std::string_view name) {
  const Attribute* attribute = read_attr(name, AttributeKind::kTensor, "tensor");
  return attribute != nullptr ? load_array(tensors_, attribute->tensors.at(0)) : NDArray();
}

void NodeContext::ignore_attrs(std::initializer_list<std::string_view> names) { read_.insert(names); }

std::vector<std::string_view> NodeContext::unread_attrs() const {
  // Old opsets carry this hint about memory in every operator.
  constexpr std::string_view kConsumed = "consumed_inputs";
  std::vector<std::string_view> names;
  for (const Attribute& attribute : node_.attributes) {
    if (!read_.contains(attribute.name) && attribute.name != kConsumed && find_attr(attribute.name) != nullptr)
      names.push_back(attribute.name);
  }
  return names;
}

size_t NodeContext::axis_of(int64_t axis, size_t rank, std::string_view name) const {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) invalid("{} is {}, but the tensor has {} dimensions", name, axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

Expr NodeContext::one_number(size_t i, std::string_view name) {
  const Expr value = input(i);
  const Array<PrimExpr> shape = type(value)->shape;
  const auto known = as_shape(shape);
  if (known && num_elements(*known) != 1)
    invalid("its {} has the shape {}, expected one number", name, ops::show_dims(shape));
  return shape.empty() ? value : ops::reshape(value, Shape{}, true, span_);
}

Expr NodeContext::int_constant(const Shape& shape, const std::vector<int64_t>& values) const {
  return relay::make_constant(make_int_tensor(shape, DataType::int_(64), values), span_);
}

void NodeContext::check_table_size(int64_t count) const {
  if (count > kMostTableEntries)
    refuse(HR_REASON_SHAPE_UNSUPPORTED, "it would need a table of {} entries, at most {} are made", count,
           kMostTableEntries);
}

Expr NodeContext::reshape(const Expr& data, const Shape& shape) { return ops::reshape(data, shape, true, span_); }

Expr NodeContext::reshape(const Expr& data, const std::vector<PrimExpr>& dims) {
  const std::vector<PrimExpr> from = this->dims(data);
  const bool has_zero = std::any_of(dims.begin(), dims.end(), [](const PrimExpr& dim) { return is_int(dim, 0); });
  Shape shape;
  bool inferred = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (const auto value = as_int(dims[i])) {
      shape.push_back(*value);
    } else if (!has_zero && i < from.size() && arith::is_equal(dims[i], from[i])) {
      shape.push_back(0);
    } else if (!inferred) {
      shape.push_back(-1);
      inferred = true;
    } else {
      refuse(HR_REASON_DYNAMIC_UNSUPPORTED, "a shape with the dimensions '{}' is needed; fix the input shapes",
             ops::show_dims(Array<PrimExpr>(dims)));
    }
  }
  return ops::reshape(data, shape, has_zero, span_);
}

void NodeContext::check_dtype(const Expr& expr, std::string_view what, bool (*allowed)(DataType),
                              std::string_view wanted) {
  const DataType got = dtype(expr);
  if (!allowed(got)) {
    refuse(HR_REASON_DTYPE_UNSUPPORTED, "{} of dtype {} is not supported; it must be {}", what, got, wanted);
  }
}

std::optional<DataType> find_dtype(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return DataType::float_(32);
    case ElementType::kDouble:
      return DataType::float_(64);
    case ElementType::kFloat16:
      return DataType::float_(16);
    case ElementType::kBfloat16:
      return DataType::bfloat16();
    case ElementType::kUint8:
      return DataType::uint(8);
    case ElementType::kUint16:
      return DataType::uint(16);
    case ElementType::kUint32:
      return DataType::uint(32);
    case ElementType::kUint64:
      return DataType::uint(64);
    case ElementType::kInt8:
      return DataType::int_(8);
    case ElementType::kInt16:
      return DataType::int_(16);
    case ElementType::kInt32:
      return DataType::int_(32);
    case ElementType::kInt64:
      return DataType::int_(64);
    case ElementType::kBool:
      return DataType::bool_();
    case ElementType::kFloat8E4M3Fn:
      return DataType(DataType::kFloat8E4M3Fn, 8);
    case ElementType::kFloat8E4M3Fnuz:
      return DataType(DataType::kFloat8E4M3Fnuz, 8);
    case ElementType::kFloat8E5M2:
      return DataType(DataType::kFloat8E5M2, 8);
    case ElementType::kFloat8E5M2Fnuz:
      return DataType(DataType::kFloat8E5M2Fnuz, 8);
    case ElementType::kFloat4E2M1:
      return DataType(DataType::kFloat4E2M1Fn, 4);
    case ElementType::kUint4:
      return DataType::uint(4);
    case ElementType::kInt4:
      return DataType::int_(4);
    case ElementType::kUint2:
      return DataType::uint(2);
    case ElementType::kInt2:
      return DataType::int_(2);
    default:
      return std::nullopt;
  }
}

NDArray load_array(TensorSource& tensors, const TensorProto& tensor) {
  const auto dtype = find_dtype(tensor.type);
  if (!dtype) {
    throw Refused{HR_REASON_DTYPE_UNSUPPORTED,
                  fmt::format("tensor {} has element type {}, which is not supported", printable(tensor.name),
                              element_type_name(tensor.type)),
                  {}};
  }
  TensorData data = tensors.load(tensor);
  if (data.bytes.empty()) return NDArray::empty(data.dims, *dtype);
  // The memory may be a file mapped read-only; `read_only` keeps writers away.
  NDArray array = NDArray::view(const_cast<std::byte*>(data.bytes.data()), data.dims, *dtype,
                                [owner = std::move(data.owner)] { static_cast<void>(owner); });
  array.object()->read_only = true;
  return array;
}

std::string node_label(const Node& node, const FunctionCall* call) {
  std::string_view own = node.name;
  for (const std::string_view output : node.outputs) {
    if (own.empty()) own = output;
  }
  return call == nullptr ? std::string(own) : fmt::format("{}/{}", call->label, own);
}

std::string op_label(const Node& node) {
  return is_default_domain(node.domain) ? std::string(node.op_type) : fmt::format("{}.{}", node.domain, node.op_type);
}

}  // namespace headrace::onnx
