// Words to passes: ops that give their argument as it is.
#include "ops/families.h"
#include "ops/register.h"

namespace headrace::ops {

static void register_annotation(const char* name, const char* doc, FusionKind kind) {
  OpBuilder(name, doc)
      .arg("data", "Tensor", "T[...]: x")
      .relation([](const RelationInput& input) -> Type { return input.tensor(0); })
      .value([](const RelationInput& input) { return input.arg_value(0); })
      .fusion(kind)
      .fact(kKeepsElements, KeepsElements::note)
      .eval([](const EvalInput& input) { return std::vector<NDArray>{input.args[0]}; });
}

void register_annotation_ops() {
  register_annotation("annotation.stop_fusion",
                      "x, which FuseOps computes before what reads it: x[...] -> the same type. Ops before it and "
                      "behind it are in different kernels; it costs nothing itself.",
                      FusionKind::opaque);
  register_annotation("annotation.checkpoint",
                      "x, marked as a value that a gradient may begin to compute again from: x[...] -> the same type. "
                      "FirstOrderGradient takes gradients through it and keeps the mark, but computes nothing twice.",
                      FusionKind::elementwise);
}

}  // namespace headrace::ops
