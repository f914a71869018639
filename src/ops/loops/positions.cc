#include "ops/loops/positions.h"

namespace headrace::ops {

namespace {

std::string too_many_positions(DataType dtype, int64_t count, std::string_view advice) {
  return fmt::format("{} elements have positions that {} does not hold; {}", count, dtype, advice);
}

// Returns the number of bits of the greatest number up to which a dtype holds all integers.
int exact_bits(DataType dtype) {
  if (!dtype.is_float()) return dtype.bits() - (dtype.is_int() ? 1 : 0);
  if (dtype == DataType::bfloat16()) return 8;
  return dtype.bits() == 16 ? 11 : dtype.bits() == 32 ? 24 : 53;
}

bool holds_positions(DataType dtype, int64_t count, Positions positions) {
  return holds_up_to(dtype, positions == Positions::of_elements ? count - 1 : count);
}

}  // namespace

bool holds_up_to(DataType dtype, int64_t greatest) {
  const int bits = exact_bits(dtype);
  return bits >= 63 || greatest < int64_t{1} << bits || (dtype.is_float() && greatest == int64_t{1} << bits);
}

void check_positions(const RelationInput& input, DataType dtype, const PrimExpr& count, std::string_view advice,
                     Positions positions) {
  const auto known = as_int(count);
  if (known && !holds_positions(dtype, *known, positions)) input.fail(too_many_positions(dtype, *known, advice));
}

void check_positions(DataType dtype, int64_t count, std::string_view advice, Positions positions) {
  if (!holds_positions(dtype, count, positions)) throw_user_error("{}", too_many_positions(dtype, count, advice));
}

}  // namespace headrace::ops
