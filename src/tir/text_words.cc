#include "tir/text_words.h"

#include "ir/intrinsics.h"

namespace headrace::tir {

namespace {

constexpr OperatorText kOperators[] = {
    {BinaryOp::logical_or, "||", 1},
    {BinaryOp::logical_and, "&&", 2},
    {BinaryOp::eq, "==", 3},
    {BinaryOp::ne, "!=", 3},
    {BinaryOp::lt, "<", 3},
    {BinaryOp::le, "<=", 3},
    {BinaryOp::gt, ">", 3},
    {BinaryOp::ge, ">=", 3},
    {BinaryOp::add, "+", 4},
    {BinaryOp::sub, "-", 4},
    {BinaryOp::mul, "*", 5},
    {BinaryOp::div, "/", 5},
    {BinaryOp::div, "truncdiv", 0},
    {BinaryOp::mod, "truncmod", 0},
    {BinaryOp::floor_div, "floordiv", 0},
    {BinaryOp::floor_mod, "floormod", 0},
    {BinaryOp::min, "min", 0},
    {BinaryOp::max, "max", 0},
};

// Returns whether the lexer reads a word as a number.
bool is_number_word(std::string_view word) {
  if (!word.starts_with("nan") && !word.starts_with("inf")) return false;
  const std::string_view tail = word.substr(3);
  return tail.empty() || tail == "f" || tail == "f16" || tail == "f32" || tail == "f64" || tail == "bf16";
}

}  // namespace

std::optional<DataType> dtype_of_word(std::string_view word) {
  const bool may_be = word.starts_with("int") || word.starts_with("uint") || word.starts_with("float") ||
                      word.starts_with("bfloat") || word.starts_with("bool") || word == "handle" || word == "void";
  if (!may_be) return std::nullopt;
  try {
    return DataType::parse(word);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::optional<Intrinsic> intrinsic_of(std::string_view word) { return find_intrinsic(word); }

std::optional<ForKind> for_kind_of(std::string_view word) {
  for (int i = 0; i <= static_cast<int>(ForKind::unrolled); ++i) {
    if (name_of(static_cast<ForKind>(i)) == word) return static_cast<ForKind>(i);
  }
  return std::nullopt;
}

bool is_reserved_word(std::string_view word) {
  static constexpr std::string_view kWords[] = {"prim_func", "attrs",     "for",    "in",   "if",    "else",
                                                "let",       "allocate",  "assert", "seq",  "True",  "False",
                                                "evaluate",  "broadcast", "select", "ramp", "const", "logical_not"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords) || is_number_word(word) ||
         operator_of_function(word) != nullptr || intrinsic_of(word) || dtype_of_word(word);
}

const OperatorText& text_of(BinaryOp op, DataType operand) {
  const bool is_function = op == BinaryOp::div && !operand.is_float();
  for (const OperatorText& candidate : kOperators) {
    if (candidate.op == op && !(is_function && candidate.precedence > 0)) return candidate;
  }
  throw InternalError(fmt::format("the operator {} has no text", name_of(op)));
}

const OperatorText* operator_of_sign(std::string_view sign) {
  for (const OperatorText& candidate : kOperators) {
    if (candidate.precedence > 0 && candidate.text == sign) return &candidate;
  }
  return nullptr;
}

const OperatorText* operator_of_function(std::string_view word) {
  for (const OperatorText& candidate : kOperators) {
    if (candidate.precedence == 0 && candidate.text == word) return &candidate;
  }
  return nullptr;
}

std::optional<DataType> usual_dtype(Intrinsic intrinsic, const Array<PrimExpr>& args) {
  const ResultRule rule = row_of(intrinsic).result;
  if (rule == ResultRule::none) return DataType::int_(32);  // not used
  if (rule == ResultRule::given) return std::nullopt;
  const size_t source = rule == ResultRule::choice ? 1 : 0;
  if (args.size() <= source) return std::nullopt;
  const DataType dtype = args[source]->dtype;
  if (rule == ResultRule::truth) return DataType::bool_(dtype.lanes());
  return rule == ResultRule::element ? dtype.element() : dtype;
}

}  // namespace headrace::tir
