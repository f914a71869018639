// The table of intrinsics: one row for each member of Intrinsic (ir/prim_expr.h). Text, verifier, vectoriser and
// interpreter read the rows; each code generator has a table of its own with one row for each
// (codegen/llvm/intrinsic.cc, codegen/c_intrinsic.cc), whose completeness the compiler checks.
//
// A new intrinsic is written in four files: the enumerator in ir/prim_expr.h (the last one; greatest() names it), its
// row in ir/intrinsics.cc, and one row in each of the two code generators. The functions of C's library that generated
// code may call follow from the rows in C (codegen/c_library.h).
#pragma once

#include "ir/prim_expr.h"

namespace headrace {

inline constexpr size_t kIntrinsicCount = static_cast<size_t>(greatest(Intrinsic{})) + 1;

// The operands that an intrinsic takes. Except for `choice` and `place`, all have one dtype.
enum class OperandRule : uint8_t {
  real,     // floats
  number,   // numbers of any kind, bools among them
  integer,  // integers and bools
  bits,     // anything but pointers
  choice,   // a condition, then two values of one dtype
  place,    // a place in a buffer or a pointer, then a number of elements
};

// The dtype of the result.
enum class ResultRule : uint8_t {
  operand,  // dtype of the operands
  truth,    // bool, with the lanes of the operands
  element,  // dtype of one lane of the operand
  choice,   // dtype of the values
  given,    // the call says it
  none,     // there is no result
};

enum class IntrinsicEffect : uint8_t {
  none,          // depends on the operands alone
  reads_memory,  // a buffer's elements
  hint,          // changes nothing that a program sees
};

// The evaluation of an intrinsic on one lane, null where it has none for that kind. Arguments are as many as the arity.
struct IntrinsicEvaluation {
  float (*floats)(const float*) = nullptr;  // float16 and bfloat16 too: the caller rounds
  double (*doubles)(const double*) = nullptr;
  bool (*tests)(double) = nullptr;  // a float widened to double
  // Integers and bools extended to 64 bits, of the given dtype; the caller cuts the result to it.
  uint64_t (*integers)(const uint64_t*, DataType) = nullptr;
};

struct IntrinsicRow {
  Intrinsic intrinsic;
  std::string_view name;  // in texts
  size_t arity;
  OperandRule operands;
  ResultRule result;
  IntrinsicEffect effect = IntrinsicEffect::none;
  bool is_lanewise = true;  // each lane of the result depends on that lane of the operands alone
  // Without any evaluation, the interpreter has a step of its own for it.
  IntrinsicEvaluation evaluation = {};
};

const IntrinsicRow& row_of(Intrinsic intrinsic);
std::optional<Intrinsic> find_intrinsic(std::string_view name);

// Returns the narrow dtype of the operands that an operation computes with; nothing for all others, among them those
// that only cast, choose or move numbers.
std::optional<DataType> computed_narrow_dtype(const PrimExpr& e);

// Returns whether a table has one row for each intrinsic, in their order. Rows have a member `intrinsic`.
template <typename Row, size_t N>
constexpr bool lists_every_intrinsic(const Row (&rows)[N]) {
  if (N != kIntrinsicCount) return false;
  for (size_t i = 0; i < N; ++i) {
    if (rows[i].intrinsic != static_cast<Intrinsic>(i)) return false;
  }
  return true;
}

}  // namespace headrace
