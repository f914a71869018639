#include "ops/qnn/simulated.h"

#include <cmath>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/qnn/parameters.h"

namespace headrace::ops {

void SimulatedQuantizeAttrs::fields(FieldList<SimulatedQuantizeAttrs>& f) {
  f.field<&SimulatedQuantizeAttrs::axis>(
      "axis", {.default_value = -1,
               .has_default = true,
               .doc = "the axis of data that a scale or zero point of more than one number has"});
}

namespace {

// The arguments in Relay's order.
enum SimulatedArgument : size_t { kSimulatedData, kCode, kSimulatedScale, kSimulatedZero };

// Checks argument `i`, a scale or zero point: a scalar, one number, or a number for each index of data's axis. Returns
// whether its type is known.
bool check_simulated(const RelationInput& input, const TensorType& data, size_t i, bool may_be_int32) {
  const std::string& name = input.call.as_op()->arguments[i].name;
  const int64_t axis = input.call.attrs_as<SimulatedQuantizeAttrs>().axis;
  const TensorType type = input.tensor(i);
  if (!type) return false;
  if (type->dtype != DataType::float_(32) && !(may_be_int32 && type->dtype == DataType::int_(32)))
    input.fail(fmt::format("{} must have dtype {}float32, got {}", name, may_be_int32 ? "int32 or " : "", show(type)));
  if (type->shape.empty()) return true;
  if (type->shape.size() != 1)
    input.fail(fmt::format("{} must be a scalar or have one dimension, got {}", name, show(type)));
  if (as_int(type->shape[0]) == 1) return true;
  const size_t own = normal_axis(input, axis, data->shape.size());
  if (!unify_dims(data->shape[own], type->shape[0]))
    input.fail(fmt::format("{} must have one number or as many as data {} along axis {}, got {}", name, show(data),
                           axis, show(type)));
  return true;
}

Type relate_simulated(const RelationInput& input) {
  const TensorType data = input.tensor(kSimulatedData), code = input.tensor(kCode);
  if (!data || !code) return {};
  if (data->dtype != DataType::float_(32)) input.fail(fmt::format("data must have dtype float32, got {}", show(data)));
  if (code->dtype != DataType::int_(32) || !code->shape.empty())
    input.fail(
        fmt::format("{} must be a scalar of int32, got {}", input.call.as_op()->arguments[kCode].name, show(code)));
  const bool scale = check_simulated(input, data, kSimulatedScale, false);
  const bool zero = check_simulated(input, data, kSimulatedZero, true);
  return scale && zero ? Type(data) : Type();
}

float simulated_quantize(float x, float scale, float zero, const SimulatedDtype& dtype) {
  const float sum = std::nearbyint(x / scale) + zero;
  const float above = sum > dtype.least ? sum : dtype.least;  // NaN becomes the least integer
  return above < dtype.greatest ? above : dtype.greatest;
}

float simulated_dequantize(float x, float scale, float zero, const SimulatedDtype&) { return (x - zero) * scale; }

template <auto compute>
std::vector<NDArray> eval_simulated(const EvalInput& input) {
  const NDArray &data = input.args[kSimulatedData], &scale = input.args[kSimulatedScale],
                &zero = input.args[kSimulatedZero];
  const int32_t code = Elements<int32_t>(input.args[kCode])[0];
  const auto* dtype = std::find_if(std::begin(kSimulatedDtypes), std::end(kSimulatedDtypes),
                                   [&](const SimulatedDtype& known) { return known.code == code; });
  if (dtype == std::end(kSimulatedDtypes)) return {data.copy()};
  const NDArray out = input.make_output();
  const Elements<float> x(data), scales(scale), y(out);
  const auto zero_at = reader_as<float>(zero.dtype());
  const bool has_scales = scale.num_elements() > 1, has_zeros = zero.num_elements() > 1;
  const int64_t axis = input.attrs<SimulatedQuantizeAttrs>().axis;
  for_each_channel(out.shape(), axis, has_scales || has_zeros, [&](int64_t i, int64_t channel) {
    y.set(i, compute(x[i], scales[has_scales ? channel : 0], zero_at(zero, has_zeros ? channel : 0), *dtype));
  });
  return {out};
}

OpBuilder simulated_op(const char* name, const std::string& doc, std::string_view dtype, std::string_view side,
                       std::string_view of) {
  OpBuilder op(name, doc +
                         " data f32[...], a scale float32 and a zero point int32 or float32, each [], [1] or [data's "
                         "dimension along axis] -> data's type. The code of the dtype is 1 for int8, 2 for uint8, 3 "
                         "for int32; with every other code the result is data.");
  op.arg("data", "Tensor", "float32[...]: x")
      .arg(fmt::format("{}_dtype", dtype), "Tensor", "int32[]: the code of the dtype")
      .arg(fmt::format("{}_scale", side), "Tensor",
           fmt::format("float32[], [1] or [data's dimension along axis]: the scale of {}", of))
      .arg(fmt::format("{}_zero_point", side), "Tensor",
           "int32 or float32[], [1] or [data's dimension along axis]: the zero point")
      .attrs<SimulatedQuantizeAttrs>()
      .relation(relate_simulated)
      .fusion(FusionKind::broadcast)
      .level(11);
  return op;
}

}  // namespace

void register_simulated_quantize_ops() {
  simulated_op("qnn.simulated_quantize",
               "The integers of qnn.quantize as float32, of a dtype that a code chooses: round(data / output_scale) + "
               "output_zero_point, cut to the dtype's range. Halves are rounded to even, NaN gives the least integer, "
               "and the greatest int32 is 2^31.",
               "out", "output", "the result")
      .eval(eval_simulated<simulated_quantize>);
  simulated_op("qnn.simulated_dequantize",
               "qnn.dequantize of integers that are held as float32: (data - input_zero_point) * input_scale.", "in",
               "input", "data")
      .eval(eval_simulated<simulated_dequantize>);
}

}  // namespace headrace::ops
