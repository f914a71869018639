// FoldConstant: what depends on constants alone becomes a constant.
//
//   add(1f, 2f)              ->  3f
//   (a, b).1                 ->  b
//   shape_of(x), x (2, 3)    ->  meta constant [2, 3]     where the type says the whole shape
//   let %a = add(1f, 2f);    ->  multiply(%x, 3f)
//   multiply(%x, %a)
//
// A let of a constant goes, and the constant stands for its variable. Lets of anything else stay where they are, and
// with them the order of effects.
//
// A result that is large, and many times larger than all it is made of, stays a call where its readers compute their
// operands as they read them: as data it would fill the artifact and be read from memory, as a call it costs neither.
// Large means 64 kB for what only repeats elements (zeros, ones, full, broadcast_to and their likes, tile, repeat,
// arange), 16 MB for anything else; many times, 8; what zeros_like and the others take only the shape of is not what
// they are made of; readers are elementwise and injective ops, and main's result. Calls of such a result are folded by
// the same rule.
//
//   add(%x, broadcast_to(c, shape=[256, 1000]))       stays, c having 1000 elements
//   negative(broadcast_to(c, shape=[256, 1000]))      ->  meta constant (256, 1000)      computed once, 1 MB
//   nn.dense(%x, broadcast_to(c, shape=[256, 1000]))  ->  a meta constant as the weight, read as it is
//
// So not every constant expression becomes a Constant. What needs one finds one: shapes, axes and the like are small,
// weights are read by ops that take no operands into their kernels.
//
// Needs types for sizes and shape_of only. The reference interpreter evaluates, on the context's threads and within a
// budget that grows with the program's own data (interp/evaluate.h). A call that exceeds the budget stays, and the
// context's `note` is told of it (HR_REASON_FOLD_LIMIT). Ops with effects are left, and so is what reads a reference.
// What cannot be computed here (an op of a user's whose function is not registered, operands that an op refuses) stays
// a call: the program tells it if it comes there. Preserves results: the interpreter defines the ops.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule fold_constant(const IRModule& module, const pass::PassContext& context);
// The expression with its constant parts folded.
Expr fold_constant(const Expr& expr, const pass::PassContext& context);

}  // namespace headrace::passes
