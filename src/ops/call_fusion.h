// What calls of ops that users registered say of themselves, where an op of ours says it once for all calls.
#pragma once

#include <optional>

#include "ops/op_keys.h"

namespace headrace::ops {

// "elementwise"
std::string_view name_of(FusionKind kind);

struct CallFusion {
  FusionKind kind = FusionKind::opaque;
  std::string why_opaque = {};  // empty when it is not
};
// Asked of a typed call. UserError at the call when what computes it does not fit it.
using CallFusionFn = std::function<CallFusion(const relay::CallNode&)>;
inline constexpr OpKey<CallFusionFn> kCallFusion{"CallFusion"};

// How a call fuses: by kCallFusion, else by kFusionKind. Opaque when the op says neither, when it says it of typed
// calls and this one has no types yet, and for calls of what is no op. UserError as kCallFusion.
FusionKind fusion_kind_of(const relay::CallNode& call);
// The same for who moves the call to data of another shape or layout, which what computes this very call cannot tell:
// nothing unless the op has a kFusionKind.
std::optional<FusionKind> promised_kind_of(const relay::CallNode& call);

// Why no call of the op ever fuses, where its kind does not say it.
inline constexpr OpKey<std::string> kWhyOpaque{"WhyOpaque"};
// Why no call of the op ever fuses, as far as the op itself tells; empty when calls may.
std::string why_opaque(const OpNode& op);
// Why this typed call of an op does not fuse; empty when it does. UserError as kCallFusion, and for another call.
std::string why_opaque(const relay::CallNode& call);

// Throws the UserError for a call that takes its operands from memory, as calls that fuse with nothing do, in a group
// that computes one of them: FuseOps makes no such group, so a user wrote the function.
[[noreturn]] void refuse_computed_operand(const relay::CallNode& call);

// Nothing here knows the op's loops: the global function of this name computes it, or the one that a module of the
// artifact provides. It is called with a DLTensor* for each input, then for each output.
inline constexpr OpKey<std::string> kExternal{"External"};
// The name, when `call` is a call of such an op; else null.
const std::string* external_of(const Expr& call);

}  // namespace headrace::ops
