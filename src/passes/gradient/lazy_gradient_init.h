// LazyGradientInit: sums and products with tensors of zeros or ones, which gradients are full of, are not computed.
//
//   multiply(x, ones) -> x    multiply(x, zeros) -> zeros    add(x, zeros) -> x    where both operands have one type
//   zeros_like(x) -> zeros(...)    ones_like(x) -> ones(...)                       where x has a static shape
//
// Run it after FirstOrderGradient. Zeros and ones are found through lets and items of tuples, and are then made where
// they are used; DeadCodeElimination drops what nothing uses any more. Relay decides the same when the program runs:
// its tensors become values of the data type GradCell (One, Zero, or Raw of a tensor). Here tensors stay tensors, so
// that the program compiles. Needs types. Changes the sign of zeros, and a product with zeros is zero where the other
// factor is infinite or NaN.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule lazy_gradient_init(const IRModule& module);

}  // namespace headrace::passes
