// Decides whether arithmetic on constants at compile time keeps what the program computes (docs/numerics.md).
#pragma once

#include "tensor/ndarray.h"

namespace headrace::passes::simplify {

// Returns whether `result`, a sum of constants, is free of overflow and lost no digits to underflow. Always true for
// integers, which wrap the same in any order.
bool is_good_sum(const NDArray& result);

// Returns whether `result`, the product of `a` and `b`, is free of overflow and lost no digits to underflow. A zero in
// it may be an underflow, so it also looks at the factors. May return false for a good product that has zeros among
// very small factors.
bool is_good_product(const NDArray& a, const NDArray& b, const NDArray& result);

// Returns whether `result`, a product that is used as weights, is good enough: as is_good_product, but elements more
// than 2^48 times smaller than the largest may lose digits. Weights are summed, so such elements hardly count, and
// trained networks have channels that are almost zero.
bool is_good_weight(const NDArray& a, const NDArray& b, const NDArray& result);

// The signs that occur among the numbers of a tensor. Zeros have no sign.
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
