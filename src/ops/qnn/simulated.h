// qnn.simulated_quantize and qnn.simulated_dequantize: they compute floats with the values that quantized tensors would
// have, so that a program can choose the dtype in a run.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct SimulatedQuantizeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.SimulatedQuantizeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<SimulatedQuantizeAttrs>& f);
  int64_t axis = -1;
};

// A dtype that can be simulated: the code that stands for it in Relay, and the range of its integers in float32, in
// which the greatest int32 is 2^31. Every other code, such as Relay's 0, leaves the data alone.
struct SimulatedDtype {
  int32_t code;
  float least, greatest;
};
inline constexpr SimulatedDtype kSimulatedDtypes[] = {{1, -128, 127}, {2, 0, 255}, {3, -0x1p31F, 0x1p31F}};

}  // namespace headrace::ops
