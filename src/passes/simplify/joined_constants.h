// Decides whether arithmetic on constants at compile time keeps what the program computes (docs/numerics.md).
#pragma once

#include "tensor/ndarray.h"

namespace headrace::passes::simplify {

// `result` is a sum of constants in which nothing has overflowed, and no element has lost digits to underflow. Always
// true of integers, which wrap the same in any order.
bool is_good_sum(const NDArray& result);

// The same of `result`, the product of `a` and `b`: a zero may have been a number too small for the dtype. May say no
// to a good product with zeros among very small factors.
bool is_good_product(const NDArray& a, const NDArray& b, const NDArray& result);

// The same where `result` are weights, whose terms are summed: trained networks have channels that are all but dead,
// and a product 2^48 times smaller than the largest may lose its digits.
bool is_good_weight(const NDArray& a, const NDArray& b, const NDArray& result);

// Which signs the numbers of a tensor have; zeros have none.
struct Signs {
  bool positive = false, negative = false;

  Signs negated() const { return {negative, positive}; }
  // Returns whether a sum of the two may be far smaller than both: (x + c) - c rounds x to the spacing of c, which
  // programs do on purpose. Compares no positions, so two tensors of mixed signs oppose each other.
  bool oppose(Signs other) const { return (positive && other.negative) || (negative && other.positive); }
  Signs operator|(Signs other) const { return {positive || other.positive, negative || other.negative}; }
};
Signs signs_of(const NDArray& data);

// Returns whether x * (a * b) overflows and loses digits to underflow only where (x * a) * b does, or almost: either
// neither factor enlarges, or neither shrinks, or both lie between 2^-32 and 2^32 in a dtype with the exponents of
// float32. The first product, which disappears, cannot have been out of range then, unless x was near the limits of its
// dtype. True for integers.
bool keeps_range(const NDArray& a, const NDArray& b);

}  // namespace headrace::passes::simplify
