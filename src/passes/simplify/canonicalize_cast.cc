#include "passes/simplify/canonicalize_cast.h"

#include "ops/call_fusion.h"
#include "ops/op_handles.h"
#include "ops/tensor/elementwise.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

bool is_widening_cast(const Expr& expr) {
  const auto* call = relay::call_of(expr, op::kCast);
  if (call == nullptr) return false;
  const auto* from = relay::tensor_type_of(call->args[0]);
  return from != nullptr && from->dtype.bits() < call->attrs_as<ops::CastAttrs>().dtype.bits();
}

bool reads_elements(const CallNode& call) { return ops::fusion_kind_of(call) <= ops::FusionKind::broadcast; }

class CastCopier {
 public:
  Expr rewrite(const Expr& before, const Expr& after) {
    const auto* call = before.as<CallNode>();
    if (call == nullptr || !reads_elements(*call)) return after;
    const auto* rebuilt = after.as<CallNode>();
    Array<Expr> args = rebuilt->args;
    bool is_changed = false;
    for (size_t i = 0; i < args.size(); ++i) {
      // The first reader keeps the cast; one reader may read it twice.
      const bool is_shared = is_widening_cast(call->args[i]) && !is_first(call->args[i], before);
      if (!is_shared) continue;
      args.set(i, copy_with(*args[i].as<CallNode>(), [](CallNode&) {}));
      is_changed = true;
    }
    return is_changed ? Expr(copy_with(*rebuilt, [&](CallNode& copy) { copy.args = args; })) : after;
  }

 private:
  bool is_first(const Expr& cast, const Expr& reader) {
    return first_reader_.emplace(cast.object(), reader.object()).first->second == reader.object();
  }
  std::unordered_map<const Object*, const Object*> first_reader_;
};

}  // namespace

IRModule canonicalize_cast(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    CastCopier copier;
    return relay::rewrite_post_order(
        body, relay::is_entered, [&](const Expr& before, const Expr& after) { return copier.rewrite(before, after); });
  });
}

}  // namespace headrace::passes
