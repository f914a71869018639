// Test cases for the rules: small relay functions with inputs, whose native code is compared with the interpreter.
#pragma once

#include "relay/expr.h"
#include "tensor/ndarray.h"

namespace headrace::lower {

constexpr DataType kF16 = DataType::float_(16), kBF16 = DataType::bfloat16(), kF32 = DataType::float_(32),
                   kF64 = DataType::float_(64);
constexpr DataType kI8 = DataType::int_(8), kI32 = DataType::int_(32), kI64 = DataType::int_(64),
                   kU8 = DataType::uint(8), kBool = DataType::bool_();

// An input, filled with values in [low, high] from a sequence that depends on the case's name.
struct In {
  Shape shape;
  DataType dtype = kF32;
  double low = -2, high = 2;
  bool has_specials = false;  // some elements are NaN, infinities and signed zeros
};

class RuleCases {
 public:
  using Build = std::function<Expr(const std::vector<Expr>&)>;

  // Adds a case. `tolerance` is relative to the largest magnitude of the expected result, and absolute below 1. With 0
  // the results must be equal in every bit, except the sign of zero and the bits of NaN. Integers must always be equal.
  void add(std::string name, const std::vector<In>& inputs, const Build& build, double tolerance = 2e-6);
  // Adds a case from a function's text, with the given inputs or with generated ones.
  void add_text(std::string name, std::string_view program, const std::vector<NDArray>& inputs, double tolerance);
  void add_text(std::string name, std::string_view program, const std::vector<In>& inputs, double tolerance);
  // Lowers, compiles and runs all cases with vectors of 128, 256 and 512 bits, as far as the machine supports them.
  // From a long list, test size ci runs each case with one width, and test size few every fifth case; from a short one,
  // test size few runs each case with one width.
  void check() const;
  // Runs all cases with the kernels written as C and compiled together, with vectors of 256 bits.
  void check_as_c() const;

 private:
  struct Case {
    std::string name;
    relay::Function function;
    std::vector<NDArray> inputs;
    double tolerance;
  };
  void check_width(int vector_bits, const std::vector<const Case*>& cases) const;

  std::vector<Case> cases_;
};

}  // namespace headrace::lower
