// Whether arithmetic on constants at compile time keeps what the program computes.
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

}  // namespace headrace::passes::simplify
