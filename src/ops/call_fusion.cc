#include "ops/call_fusion.h"

namespace headrace::ops {

FusionKind fusion_kind_of(const relay::CallNode& call) {
  const OpNode& op = *call.as_op();
  if (const CallFusionFn* fusion = op.find(kCallFusion)) return (*fusion)(call).kind;
  const FusionKind* kind = op.find(kFusionKind);
  return kind == nullptr ? FusionKind::opaque : *kind;
}

const std::string* external_of(const Expr& call) {
  const auto* node = call.as<relay::CallNode>();
  const OpNode* op = node == nullptr ? nullptr : node->as_op();
  return op == nullptr ? nullptr : op->find(kExternal);
}

}  // namespace headrace::ops
