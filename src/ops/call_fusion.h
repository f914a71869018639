// Fusion kinds of single calls, for ops of users; a built-in op has one kind for all its calls.
#pragma once

#include <optional>

#include "ops/op_keys.h"

namespace headrace::ops {

// Returns the kind's name: "elementwise".
std::string_view name_of(FusionKind kind);

struct CallFusion {
  FusionKind kind = FusionKind::opaque;
  std::string why_opaque = {};  // empty when it is not
};
// Asked of a typed call. UserError at the call when what computes it does not fit it.
using CallFusionFn = std::function<CallFusion(const relay::CallNode&)>;
inline constexpr OpKey<CallFusionFn> kCallFusion{"CallFusion"};

// Returns how a call fuses: by kCallFusion, else by kFusionKind. Opaque when the op has neither, when kCallFusion needs
// types that the call does not have yet, and for a callee that is not an op. UserError as kCallFusion.
FusionKind fusion_kind_of(const relay::CallNode& call);
// Returns the kind that holds for data of any shape and layout, for passes that move the call; a kind computed from
// this one call does not qualify. Nothing unless the op has a kFusionKind.
std::optional<FusionKind> promised_kind_of(const relay::CallNode& call);

// Returns how a typed call of this kind reads an operand of a type: as the kind says, except that a broadcast op reads
// an operand of the result's shape elementwise.
FusionKind read_kind(const relay::CallNode& call, FusionKind kind, const Type& operand);
// Returns whether FuseOps may put a call of kind `producer` into one kernel with a later call; `read` is the widest of
// the kinds as which the calls on the paths between read their operands (read_kind). FuseOps also asks the groups that
// these calls are in already.
bool may_share_kernel(FusionKind producer, FusionKind read);

// Why no call of the op ever fuses, where its kind does not say it.
inline constexpr OpKey<std::string> kWhyOpaque{"WhyOpaque"};
// Returns why no call of the op ever fuses, judged by the op alone; empty when calls may.
std::string why_opaque(const OpNode& op);
// Returns why this typed call of an op does not fuse; empty when it does. UserError as kCallFusion, and for another
// call.
std::string why_opaque(const relay::CallNode& call);

// Throws the UserError for a call that takes its operands from memory, as calls that fuse with nothing do, in a group
// that computes one of them: FuseOps makes no such group, so a user wrote the function.
[[noreturn]] void refuse_computed_operand(const relay::CallNode& call);

// Marks an op whose loops are not known: a global function of this name, or a function of a module in the artifact,
// computes it. It gets a DLTensor* for each input, then for each output.
inline constexpr OpKey<std::string> kExternal{"External"};
// Returns the name when `call` is a call of such an op; else null.
const std::string* external_of(const Expr& call);

}  // namespace headrace::ops
