// Words to passes: ops that give their argument as it is.
#include "ops/families.h"
#include "ops/register.h"

namespace headrace::ops {

void register_annotation_ops() {
  OpBuilder("annotation.stop_fusion",
            "x, which FuseOps computes before what reads it: x[...] -> the same type. Ops before it and behind it are "
            "in different kernels; it costs nothing itself.")
      .arg("data")
      .relation([](const RelationInput& input) -> Type { return input.tensor(0); })
      .value([](const RelationInput& input) { return input.arg_value(0); })
      .fusion(FusionKind::opaque)
      .keeps_elements()
      .eval([](const EvalInput& input) { return std::vector<NDArray>{input.args[0]}; });
  OpBuilder("annotation.checkpoint",
            "x, marked as a value that a gradient may begin to compute again from: x[...] -> the same type. "
            "FirstOrderGradient takes gradients through it and keeps the mark, but computes nothing twice.")
      .arg("data")
      .relation([](const RelationInput& input) -> Type { return input.tensor(0); })
      .value([](const RelationInput& input) { return input.arg_value(0); })
      .fusion(FusionKind::elementwise)
      .keeps_elements()
      .eval([](const EvalInput& input) { return std::vector<NDArray>{input.args[0]}; });
}

}  // namespace headrace::ops
