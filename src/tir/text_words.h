// Words and signs of the text form that the printer and the parser share.
#pragma once

#include <optional>

#include "tir/stmt.h"

namespace headrace::tir {

inline constexpr std::string_view kTextVersion = "1";

// Returns the dtype that a word such as float32x16 names; nothing for other words.
std::optional<DataType> dtype_of_word(std::string_view word);
// Returns the intrinsic of that name.
std::optional<Intrinsic> intrinsic_of(std::string_view word);
std::optional<ForKind> for_kind_of(std::string_view word);
// Returns whether a word must be quoted to be used as a name.
bool is_reserved_word(std::string_view word);

// How an operator is written: as a sign between its operands, or as a function. Division of integers is a function:
// floordiv, truncdiv say which; `/` is the quotient of floats.
struct OperatorText {
  BinaryOp op;
  std::string_view text;
  int precedence;  // 0: a function
  bool is_left_associative() const { return precedence >= 4; }
};
const OperatorText& text_of(BinaryOp op, DataType operand);
const OperatorText* operator_of_sign(std::string_view sign);
const OperatorText* operator_of_function(std::string_view word);

// Returns the dtype that an intrinsic has unless the text gives one; nothing where the text must give one.
std::optional<DataType> usual_dtype(Intrinsic intrinsic, const Array<PrimExpr>& args);

}  // namespace headrace::tir
