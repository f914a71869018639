#include "ops/call_fusion.h"

#include <algorithm>

#include "arith/canonical.h"

namespace headrace::ops {

namespace {

bool is_typed(const relay::CallNode& call) {
  return call.has_checked_type() &&
         std::all_of(call.args.begin(), call.args.end(), [](const Expr& arg) { return arg->has_checked_type(); });
}

bool same_shape(const Type& a, const Type& b) {
  const auto *x = a.as<TensorTypeNode>(), *y = b.as<TensorTypeNode>();
  if (x == nullptr || y == nullptr || x->shape.size() != y->shape.size()) return false;
  for (size_t i = 0; i < x->shape.size(); ++i) {
    if (!arith::is_equal(x->shape[i], y->shape[i])) return false;
  }
  return true;
}

}  // namespace

std::string_view name_of(FusionKind kind) {
  switch (kind) {
    case FusionKind::elementwise:
      return "elementwise";
    case FusionKind::broadcast:
      return "broadcast";
    case FusionKind::injective:
      return "injective";
    case FusionKind::reduction:
      return "reduction";
    case FusionKind::anchor:
      return "anchor";
    case FusionKind::tuple:
      return "tuple";
    case FusionKind::opaque:
      return "opaque";
  }
  return "";
}

FusionKind fusion_kind_of(const relay::CallNode& call) {
  const OpNode* op = call.as_op();
  if (op == nullptr) return FusionKind::opaque;
  if (const CallFusionFn* fusion = op->find(kCallFusion))
    return is_typed(call) ? (*fusion)(call).kind : FusionKind::opaque;
  const FusionKind* kind = op->find(kFusionKind);
  return kind == nullptr ? FusionKind::opaque : *kind;
}

std::optional<FusionKind> promised_kind_of(const relay::CallNode& call) {
  const OpNode* op = call.as_op();
  if (op == nullptr || op->find(kFusionKind) == nullptr) return std::nullopt;
  return fusion_kind_of(call);
}

FusionKind read_kind(const relay::CallNode& call, FusionKind kind, const Type& operand) {
  const bool is_whole = kind == FusionKind::broadcast && same_shape(operand, call.checked_type());
  return is_whole ? FusionKind::elementwise : kind;
}

bool may_share_kernel(FusionKind producer, FusionKind read) {
  switch (producer) {
    case FusionKind::elementwise:
    case FusionKind::broadcast:
      return read <= FusionKind::reduction;
    case FusionKind::injective:
      return read <= FusionKind::injective;
    case FusionKind::anchor:
      return read == FusionKind::elementwise;
    case FusionKind::reduction:
    case FusionKind::tuple:
    case FusionKind::opaque:
      break;
  }
  return false;
}

std::string why_opaque(const OpNode& op) {
  if (const std::string* why = op.find(kWhyOpaque)) return *why;
  const FusionKind* said = op.find(kFusionKind);
  if (said != nullptr) return *said > FusionKind::anchor ? fmt::format("it is registered as {}", name_of(*said)) : "";
  return op.find(kCallFusion) == nullptr ? "nothing says how it is computed" : "";
}

std::string why_opaque(const relay::CallNode& call) {
  const OpNode* op = call.as_op();
  if (op == nullptr) throw_at(call.span, "why_opaque", "only calls of ops fuse");
  const CallFusionFn* fusion = op->find(kCallFusion);
  return fusion == nullptr ? why_opaque(*op) : (*fusion)(call).why_opaque;
}

void refuse_computed_operand(const relay::CallNode& call) {
  throw_at(call.span, call.as_op()->name,
           "a function marked Primitive computes an operand of it, but it shares no kernel: remove the attribute, and "
           "FuseOps makes such functions");
}

const std::string* external_of(const Expr& call) {
  const auto* node = call.as<relay::CallNode>();
  const OpNode* op = node == nullptr ? nullptr : node->as_op();
  return op == nullptr ? nullptr : op->find(kExternal);
}

}  // namespace headrace::ops
