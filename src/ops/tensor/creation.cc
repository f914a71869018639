#include "ops/tensor/creation.h"

#include <cmath>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/move.h"
#include "tensor/convert_number.h"

namespace headrace::ops {

void InitOpAttrs::fields(FieldList<InitOpAttrs>& f) {
  f.field<&InitOpAttrs::shape>("shape", {.default_value = Shape(), .has_default = true, .doc = "the result's shape"})
      .field<&InitOpAttrs::dtype>("dtype",
                                  {.default_value = "float32", .has_default = true, .doc = "the result's dtype"});
}

void ArangeAttrs::fields(FieldList<ArangeAttrs>& f) {
  f.field<&ArangeAttrs::dtype>("dtype", {.doc = "the result's dtype"});
}

void ShapeOfAttrs::fields(FieldList<ShapeOfAttrs>& f) {
  f.field<&ShapeOfAttrs::dtype>("dtype", {.default_value = "int32", .has_default = true, .doc = "a dtype of numbers"});
}

namespace {

using relay::make_call;

// Returns the shape argument's value, `?` where it is not known.
Array<PrimExpr> shape_argument(const RelationInput& input, size_t i) {
  const TensorType type = input.tensor(i);
  if (!type || type->shape.size() != 1 || !(type->dtype.is_int() || type->dtype.is_uint()))
    input.fail(fmt::format("shape must be an integer tensor of one dimension, got {}", to_string(input.arg_types[i])));
  if (const auto value = input.arg_value(i)) return Array<PrimExpr>(*value);
  const auto length = as_int(type->shape[0]);
  if (!length) input.fail(fmt::format("the number of dimensions must be known: shape is {}", show(type)));
  Array<PrimExpr> dims;
  for (int64_t k = 0; k < *length; ++k) dims.push_back(make_any());
  return dims;
}

// Returns the result of an init op whose shape is its attribute, or its argument after `leading` others.
Type init_type(const RelationInput& input, size_t leading) {
  const auto& attrs = input.call.attrs_as<InitOpAttrs>();
  const size_t args = input.arg_types.size();
  if (args != leading && args != leading + 1)
    input.fail(fmt::format("takes {} or {} arguments, got {}", leading, leading + 1, args));
  if (args > leading && !attrs.shape.empty()) input.fail("shape is given twice, as attribute and as argument");
  const Array<PrimExpr> dims = args > leading ? shape_argument(input, leading) : to_dims(attrs.shape);
  for (const PrimExpr& dim : dims) {
    if (as_int(dim) && *as_int(dim) < 0) input.fail(fmt::format("shape has a negative size: {}", show_dims(dims)));
  }
  if (attrs.dtype.is_void() || attrs.dtype.is_handle()) input.fail(fmt::format("no tensor has dtype {}", attrs.dtype));
  return make_tensor_type(dims, attrs.dtype);
}

void check_scalar(const RelationInput& input, size_t i, std::string_view what) {
  const TensorType type = input.tensor(i);
  if (type && !type->shape.empty()) input.fail(fmt::format("{} must be a scalar, got {}", what, show(type)));
}

Type relate_full(const RelationInput& input) {
  check_scalar(input, 0, "fill_value");
  const Type result = init_type(input, 1);
  if (const TensorType fill = input.tensor(0))
    check_same_dtype(input, result.cast<TensorTypeNode>(), fill, "fill_value");
  return result;
}

Type relate_init(const RelationInput& input) { return init_type(input, 0); }

Type relate_full_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), fill = input.tensor(1);
  check_scalar(input, 1, "fill_value");
  if (data && fill) check_same_dtype(input, data, fill, "fill_value");
  return data;
}

NDArray filled(NDArray result, const NDArray& scalar) {
  move_elements(scalar, result, [](const Shape&) { return int64_t{0}; });
  return result;
}

std::vector<NDArray> eval_full(const EvalInput& input) { return {filled(input.make_output(), input.args[0])}; }
std::vector<NDArray> eval_full_like(const EvalInput& input) { return {filled(input.make_output(), input.args[1])}; }

EvalFn eval_number(double value) {
  return [value](const EvalInput& input) {
    NDArray result = input.make_output();
    NDArray scalar = NDArray::empty({}, result.dtype());
    set_element(scalar.tensor(), 0, value);
    return std::vector<NDArray>{filled(result, scalar)};
  };
}

// Infers the value of a tensor whose elements are one expression; the shape is known here.
std::optional<std::vector<PrimExpr>> repeated(const Type& type, const PrimExpr& value) {
  const auto shape = as_shape(type.as<TensorTypeNode>()->shape);
  if (!shape) return std::nullopt;
  return std::vector<PrimExpr>(static_cast<size_t>(num_elements(*shape)), value);
}

std::optional<std::vector<PrimExpr>> full_value(const RelationInput& input) {
  const auto fill = input.arg_value(0);
  return fill ? repeated(relate_full(input), fill->front()) : std::nullopt;
}
std::optional<std::vector<PrimExpr>> full_like_value(const RelationInput& input) {
  const auto fill = input.arg_value(1);
  return fill ? repeated(input.arg_types[0], fill->front()) : std::nullopt;
}
ValueInferenceFn number_value(int64_t number) {
  return [number](const RelationInput& input) { return repeated(relate_init(input), make_int(number)); };
}

// ---- arange

// Returns the number of steps from start to before stop; nothing when it cannot be counted.
template <typename T>
std::optional<int64_t> count_steps(T start, T stop, T step) {
  if constexpr (std::is_floating_point_v<T>) {
    const T count = std::ceil((stop - start) / step);
    if (!(count < T(0x1p62))) return std::nullopt;
    return count > 0 ? static_cast<int64_t>(count) : 0;
  } else {
    const bool rises = step > 0;
    if (rises ? start >= stop : start <= stop) return 0;
    // As unsigned numbers: a distance may be more than the greatest int64.
    const auto low = static_cast<uint64_t>(rises ? start : stop), high = static_cast<uint64_t>(rises ? stop : start);
    const uint64_t stride = rises ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
    const uint64_t count = (high - low - 1) / stride + 1;
    return count < (uint64_t{1} << 62) ? std::optional(static_cast<int64_t>(count)) : std::nullopt;
  }
}

template <typename T>
std::optional<T> scalar_number(const RelationInput& input, size_t i) {
  if (const NDArray constant = input.arg_constant(i)) {
    const NDArray dense = constant.to_dense();
    if constexpr (std::is_floating_point_v<T>) return element_as_double(dense.tensor(), 0);
    return static_cast<T>(element_as_int(dense.tensor(), 0));
  }
  const auto value = input.arg_value(i);
  const auto number = value ? as_int(value->front()) : std::nullopt;
  return number ? std::optional(static_cast<T>(*number)) : std::nullopt;
}

template <typename T>
PrimExpr arange_length_of(const RelationInput& input) {
  const auto start = scalar_number<T>(input, 0), stop = scalar_number<T>(input, 1), step = scalar_number<T>(input, 2);
  if (step == T{0}) input.fail("step is 0");
  if (start && stop && step) {
    const auto count = count_steps(*start, *stop, *step);
    if (!count) input.fail(fmt::format("cannot count from {} to {} in steps of {}", *start, *stop, *step));
    return make_int(*count);
  }
  const auto symbolic_stop = input.arg_value(1);
  return start == T{0} && step == T{1} && symbolic_stop ? symbolic_stop->front() : make_any();
}

PrimExpr arange_length(const RelationInput& input) {
  const DataType dtype = input.call.attrs_as<ArangeAttrs>().dtype;
  if (dtype.is_float()) return arange_length_of<double>(input);
  return dtype.is_uint() ? arange_length_of<uint64_t>(input) : arange_length_of<int64_t>(input);
}

Type relate_arange(const RelationInput& input) {
  const DataType dtype = input.call.attrs_as<ArangeAttrs>().dtype;
  if (!(dtype.is_int() || dtype.is_uint() || dtype.is_float()))
    input.fail(fmt::format("dtype must be numbers, got {}", dtype));
  static constexpr std::string_view kNames[] = {"start", "stop", "step"};
  for (size_t i = 0; i < 3; ++i) {
    const TensorType type = input.tensor(i);
    if (!type) return {};
    check_scalar(input, i, kNames[i]);
    if (type->dtype != dtype) input.fail(fmt::format("{} has dtype {}, expected {}", kNames[i], type->dtype, dtype));
  }
  return make_tensor_type({arange_length(input)}, dtype);
}

std::vector<NDArray> eval_arange(const EvalInput& input) {
  NDArray result = input.make_output();
  const bool exact = !result.dtype().is_float();
  const double start = element_as_double(input.args[0].tensor(), 0),
               step = element_as_double(input.args[2].tensor(), 0);
  // They wrap: a multiple of the step may be more than the sum is.
  const auto first = static_cast<uint64_t>(exact ? element_as_int(input.args[0].tensor(), 0) : 0),
             by = static_cast<uint64_t>(exact ? element_as_int(input.args[2].tensor(), 0) : 0);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    if (exact) {
      set_element_int(result.tensor(), i, static_cast<int64_t>(first + static_cast<uint64_t>(i) * by));
    } else {
      set_element(result.tensor(), i, start + static_cast<double>(i) * step);
    }
  }
  return {result};
}

std::optional<std::vector<PrimExpr>> arange_value(const RelationInput& input) {
  const auto start = input.arg_value(0), step = input.arg_value(2);
  const auto length = as_int(arange_length(input));
  if (!start || !step || !length) return std::nullopt;
  std::vector<PrimExpr> result;
  for (int64_t i = 0; i < *length; ++i) result.push_back(start->front() + step->front() * make_int(i));
  return result;
}

// ---- shape_of, ndarray_size

DataType shape_dtype(const RelationInput& input) {
  const DataType dtype = input.call.attrs_as<ShapeOfAttrs>().dtype;
  if (!dtype.is_int() && !dtype.is_uint() && !dtype.is_float())
    input.fail(fmt::format("dtype must be of numbers, got {}", dtype));
  return dtype;
}

bool holds_size(DataType dtype, int64_t size) {
  if (dtype.is_float()) return round_number(static_cast<double>(size), dtype) == static_cast<double>(size);
  const int bits = dtype.bits() - (dtype.is_int() ? 1 : 0);
  return bits >= 63 || size < int64_t{1} << bits;
}

std::string size_too_large(DataType dtype, int64_t size) {
  return fmt::format("{} does not hold the size {}; ask for a wider dtype, such as dtype=\"int64\"", dtype, size);
}

// Refuses a dtype that does not hold a size that is known.
void check_size(const RelationInput& input, const PrimExpr& size) {
  const DataType dtype = shape_dtype(input);
  const auto known = as_int(size);
  if (known && !holds_size(dtype, *known)) input.fail(size_too_large(dtype, *known));
}

void set_size(const NDArray& result, int64_t index, int64_t size) {
  if (!holds_size(result.dtype(), size)) throw_user_error("{}", size_too_large(result.dtype(), size));
  if (result.dtype().is_float()) return set_element(result.tensor(), index, static_cast<double>(size));
  set_element_int(result.tensor(), index, size);
}

Type relate_shape_of(const RelationInput& input) {
  const DataType dtype = shape_dtype(input);
  const TensorType data = input.tensor(0);
  if (!data) return {};
  for (const PrimExpr& dim : data->shape) check_size(input, dim);
  return make_tensor_type({make_int(static_cast<int64_t>(data->shape.size()))}, dtype);
}

std::optional<std::vector<PrimExpr>> shape_value(const RelationInput& input) {
  return input.tensor(0)->shape.to_vector();
}

std::vector<NDArray> eval_shape_of(const EvalInput& input) {
  NDArray result = input.make_output();
  for (size_t i = 0; i < input.args[0].shape().size(); ++i)
    set_size(result, static_cast<int64_t>(i), input.args[0].shape()[i]);
  return {result};
}

Type relate_ndarray_size(const RelationInput& input) {
  if (const TensorType data = input.tensor(0)) check_size(input, arith::product(data->shape));
  return make_scalar_type(shape_dtype(input));
}

std::optional<std::vector<PrimExpr>> size_value(const RelationInput& input) {
  return std::vector<PrimExpr>{arith::product(input.tensor(0)->shape)};
}

std::vector<NDArray> eval_ndarray_size(const EvalInput& input) {
  NDArray result = input.make_output();
  set_size(result, 0, input.args[0].num_elements());
  return {result};
}

Expr init(std::string_view op, Array<Expr> args, Shape shape, DataType dtype, Span span) {
  auto attrs = make_object<InitOpAttrs>();
  attrs->shape = std::move(shape);
  attrs->dtype = dtype;
  return make_call(op, std::move(args), attrs, std::move(span));
}

void register_constants() {
  OpBuilder("full", "A tensor of the scalar fill_value in each element.")
      .arg("fill_value", "Tensor", "dtype[]: the value")
      .arg("shape", "Tensor", "int[rank of the result], optional: shape as a tensor")
      .any_args()
      .attrs<InitOpAttrs>()
      .relation(relate_full)
      .fusion(FusionKind::elementwise)
      .eval(eval_full)
      .value(full_value)
      .fact(kRepeats, {});
  OpBuilder("zeros", "A tensor of zeros.")
      .arg("shape", "Tensor", "int[rank of the result], optional: shape as a tensor")
      .any_args()
      .attrs<InitOpAttrs>()
      .relation(relate_init)
      .fusion(FusionKind::elementwise)
      .eval(eval_number(0))
      .value(number_value(0))
      .fact(kRepeats, {});
  OpBuilder("ones", "A tensor of ones.")
      .arg("shape", "Tensor", "int[rank of the result], optional: shape as a tensor")
      .any_args()
      .attrs<InitOpAttrs>()
      .relation(relate_init)
      .fusion(FusionKind::elementwise)
      .eval(eval_number(1))
      .value(number_value(1))
      .fact(kRepeats, {});
  OpBuilder("full_like", "The scalar fill_value in the shape of data.")
      .arg("data", "Tensor", "T[...]: only its type counts")
      .arg("fill_value", "Tensor", "T[]: the value")
      .relation(relate_full_like)
      .fusion(FusionKind::elementwise)
      .eval(eval_full_like)
      .value(full_like_value)
      .fact(kRepeats, {.type_operand = 0});
}

}  // namespace

void register_creation_ops() {
  register_constants();
  OpBuilder("arange", "start, start + step, ... before stop: ceil((stop - start) / step) elements.")
      .arg("start", "Tensor", "dtype[]: the first value")
      .arg("stop", "Tensor", "dtype[]: the end, which is left out")
      .arg("step", "Tensor", "dtype[], not 0: from one value to the next")
      .attrs<ArangeAttrs>()
      .relation(relate_arange)
      .fusion(FusionKind::injective)
      .eval(eval_arange)
      .value(arange_value)
      .fact(kRepeats, {});
  OpBuilder("shape_of", "The shape of a tensor as a tensor: x[...] -> [rank].")
      .arg("data", "Tensor", "T[...]: only its shape counts")
      .attrs<ShapeOfAttrs>()
      .relation(relate_shape_of)
      .fusion(FusionKind::opaque)
      .eval(eval_shape_of)
      .value(shape_value);
  OpBuilder("ndarray_size", "The number of elements of a tensor, a scalar.")
      .arg("data", "Tensor", "T[...]: only its shape counts")
      .attrs<ShapeOfAttrs>()
      .relation(relate_ndarray_size)
      .fusion(FusionKind::opaque)
      .eval(eval_ndarray_size)
      .value(size_value);
}

Expr full(Expr fill_value, Shape shape, DataType dtype, Span span) {
  return init("full", {fill_value}, shape, dtype, span);
}
Expr full(Expr fill_value, Expr shape, DataType dtype, Span span) {
  return init("full", {fill_value, shape}, {}, dtype, span);
}
Expr zeros(Shape shape, DataType dtype, Span span) { return init("zeros", {}, shape, dtype, span); }
Expr ones(Shape shape, DataType dtype, Span span) { return init("ones", {}, shape, dtype, span); }
Expr full_like(Expr data, Expr fill_value, Span span) { return make_call("full_like", {data, fill_value}, {}, span); }

Expr arange(Expr start, Expr stop, Expr step, DataType dtype, Span span) {
  auto attrs = make_object<ArangeAttrs>();
  attrs->dtype = dtype;
  return make_call("arange", {start, stop, step}, attrs, span);
}

static Expr shape_op(std::string_view op, Expr data, DataType dtype, Span span) {
  auto attrs = make_object<ShapeOfAttrs>();
  attrs->dtype = dtype;
  return make_call(op, {data}, attrs, span);
}
Expr shape_of(Expr data, DataType dtype, Span span) { return shape_op("shape_of", data, dtype, span); }
Expr ndarray_size(Expr data, DataType dtype, Span span) { return shape_op("ndarray_size", data, dtype, span); }

}  // namespace headrace::ops
