// Facts about ops that passes ask in place of names: an op has a fact when the key is set. Ops of users may have those
// of lower/user_ops/user_facts.h (docs/user-ops.md). A fact is a promise about every call; no pass checks it, except
// where a comment here says so. An op with an effect (kStateful) needs none: passes leave its calls alone.
#pragma once

#include "ops/layout_form.h"
#include "ops/op_keys.h"

namespace headrace::ops {

// The result is the first argument's elements in their order, in another shape and the same dtype: it may share the
// argument's memory, and then nothing computes the op. Of ops of users the type relation is checked against it.
enum class KeepsElements : uint8_t {
  note,       // says something to passes about its operand: it is not joined with other views or dropped with them
  broadcast,  // mostly serves a broadcast: fuses like any op of its kind
  view,       // FuseOps leaves it alone, since a view of its operand costs nothing
};
inline constexpr OpKey<KeepsElements> kKeepsElements{"KeepsElements"};
// Returns whether the op does nothing but give its operand another shape: not for a note.
bool only_reshapes(const OpNode& op);

// The op fills its result from a rule or by repeating elements, so the result may be far larger than what describes it.
struct Repeats {
  std::optional<size_t> type_operand = {};  // an operand whose elements do not count, only its type
};
inline constexpr OpKey<Repeats> kRepeats{"Repeats"};

// The factors s for which op(x * s) == op(x) * s, x being the first argument.
enum class CommutingFactors : uint8_t { none, positive, any };
// Gives the factors that commute with a typed call: one factor for each index of `axis`, an axis of the first argument
// that the result must have at the same place and of the same size; without an axis, one factor for all elements.
using CommutingFactorsFn = std::function<CommutingFactors(const relay::CallNode& call, std::optional<size_t> axis)>;
inline constexpr OpKey<CommutingFactorsFn> kCommutingFactors{"CommutingFactors"};

// Keeps the layout of its first argument: the result has the argument's axes in their order, except kDroppedAxes, and
// op(transpose(x), other arguments, changed attributes) == transpose(op(x, other arguments, attributes)). Of a result
// that is a tuple this is so for each tensor of as many axes, and the others are the same. Gives the changed attributes
// for an argument that is stored in `form`: those of the call, which may be null, where none names an axis. Nothing
// when the call does not keep that form. The call is typed.
using KeepLayoutFn = std::function<std::optional<Attrs>(const relay::CallNode& call, const LayoutForm& form)>;
inline constexpr OpKey<KeepLayoutFn> kKeepLayout{"KeepLayout"};
// Gives the axes of the first argument, from 0, that the result of a typed call lacks, such as those a sum adds up.
using DroppedAxesFn = std::function<std::vector<size_t>(const relay::CallNode& call)>;
inline constexpr OpKey<DroppedAxesFn> kDroppedAxes{"DroppedAxes"};

// Gives another expression for a call whose result has one axis of a data-dependent size: a tuple of a buffer
// of the call's type with a number in place of the unknown size, and int64[1], how many indices of that axis count.
// Null when the call has no such form. The call is typed.
using BoundedFormFn = std::function<Expr(const relay::CallNode& call)>;
inline constexpr OpKey<BoundedFormFn> kBoundedForm{"BoundedForm"};

// Gives the expression of plain ops that computes a typed call of an op that has no kernel of its own. `types` are
// those of the call's arguments, then that of its result. QnnCanonicalize puts it in the place of the call, bit for
// bit.
using PlainFormFn = std::function<Expr(const relay::CallNode& call, const Array<Type>& types)>;
inline constexpr OpKey<PlainFormFn> kPlainForm{"PlainForm"};

// How a call reads an argument of unknown size: the axis of argument `arg` that has it, and the axis of the result.
struct UnknownAxis {
  size_t arg = 0, axis = 0, result_axis = 0;
};
// Returns whether a typed call treats each index of that axis apart: index i of the result's axis depends on no other
// index of the argument's, and whatever stands at an index makes no call fail. It may then read a buffer in which only
// the first indices count.
using TreatsApartFn = std::function<bool(const relay::CallNode& call, const UnknownAxis& where)>;
inline constexpr OpKey<TreatsApartFn> kTreatsApart{"TreatsApart"};

// Returns the one axis of unknown size of a tensor whose other sizes are integers; nothing for any other type.
std::optional<size_t> unknown_axis(const TensorTypeNode* type);

}  // namespace headrace::ops
