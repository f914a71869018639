// Words to passes: ops that give their argument as it is.
#include "ops/families.h"
#include "ops/register.h"

namespace headrace::ops {

static OpBuilder annotation(const char* name, const char* doc, FusionKind kind) {
  OpBuilder builder(name, doc);
  builder.value([](const RelationInput& input) { return input.arg_value(0); })
      .fusion(kind)
      .fact(kKeepsElements, KeepsElements::note)
      .eval([](const EvalInput& input) { return input.args; });
  return builder;
}

void register_annotation_ops() {
  annotation("annotation.stop_fusion",
             "x, which FuseOps computes before what reads it: x[...] -> the same type. Ops before it and "
             "behind it are in different kernels; it costs nothing itself.",
             FusionKind::opaque)
      .arg("data", "Tensor", "T[...]: x")
      .relation([](const RelationInput& input) -> Type { return input.tensor(0); });
  annotation("annotation.checkpoint",
             "x, marked as a value that a gradient may begin to compute again from: x -> the same type, of tensors, "
             "tuples or other values. FirstOrderGradient takes gradients through it and keeps the mark, but computes "
             "nothing twice.",
             FusionKind::elementwise)
      .arg("data", "Any", "any type: x")
      .relation([](const RelationInput& input) {
        return input.arg_types[0].is<IncompleteTypeNode>() ? Type() : input.arg_types[0];
      });
}

}  // namespace headrace::ops
