// The text form of tir, version 1: prints what parse.h reads back as an equal program.
//
//   #[tir_version = "1"]
//
//   prim_func @scale(x: Buffer[(n, 16), float32]) -> (y: Buffer[(n, 16), float32]) attrs {"tir.noalias" = True} {
//     for i in parallel(n) {
//       allocate acc: Buffer[(16), float32] in registers;
//       acc[ramp(0, 1, 16)] = x[i, ramp(0, 1, 16)] * broadcast(2f, 16);
//       y[i, ramp(0, 1, 16)] = acc[ramp(0, 1, 16)];
//     }
//   }
//
// - Inputs stand before the arrow, outputs behind it. `n` is bound by the first parameter whose shape or strides name
//   it; `n:int32` has another dtype than int64. Buffer[(n, 4), float32, strides=(8, 1)] is not dense.
// - The function's global_symbol is its name unless attrs say otherwise ("global_symbol" = None: it has none).
// - Statements: `y[i] = e;`, `for i in serial(n) { }` (parallel, vectorized, unrolled; `serial(begin=2, extent=n)`;
//   `for i: int32 in ...`), `if (c) { } else { }`, `assert c, "message";`, `evaluate e;`, and, for all that follows in
//   the block, `let v: int64 = e;` and `allocate b: Buffer[...] in registers;` (or in workspace). A block of one
//   statement is that statement; `seq { }` is a sequence whatever its length.
// - `%0 = e;` names an expression for the statements that follow: parts that an expression shares, when they are large,
//   and what nests deeply. It is the expression, not a variable.
// - Signs are + - * / < <= > >= == != && ||, where / is the quotient of floats. floordiv, floormod (toward minus
//   infinity), truncdiv, truncmod (toward zero), min, max, logical_not, select are functions; so are casts
//   (`float32(n)`, `int32x8(v)`), ramp(base, stride, lanes), broadcast(value, lanes), let(v: int64 = value, body) and
//   the intrinsics: `exp(x)`. An intrinsic of another dtype than its usual one says so: `reinterpret[int32](x)`.
// - Literals: 3 (int64), 3i32, 3u8, True; 1.5f (float32), 1.5f64, 1.5f16, 1.5bf16, nanf, -inff. A float is the double
//   that the node holds, in the shortest decimal that reads back; nan(0x7ff8000000000001)f has a double's NaN bits.
//   const(300, int8) is a number of any dtype, in range or not. Next to another integer dtype a plain number takes it.
// - A name that is not an identifier, or a word of this form, is written %"conv 1", %max.
#pragma once

#include "ir/module.h"
#include "tir/stmt.h"

namespace headrace::tir {

// Prints a module. Deterministic: equal functions with equal names give equal bytes. UserError on parts without a text
// form: dtypes without a name, attributes other than numbers, strings, dtypes, lists and maps, functions that are not
// tir's, a let inside an expression whose parts nest or repeat too much to be written out.
std::string print_module(const IRModule& module);
// Prints a module of this function alone, named by its global_symbol ("function" when it has none).
std::string print_function(const PrimFunc& function);

// Returns one line about a statement or an expression, for messages; deep parts are left out.
std::string summary(const Stmt& stmt);
std::string summary(const PrimExpr& e);

}  // namespace headrace::tir
