// Indices of a compute form that are outside what they index, as far as that can be told from sizes.
#pragma once

#include "tir/compute.h"

namespace headrace::lower {

// A sentence on the first index that some iteration surely takes outside its dimension, and what to do; nothing where
// none is found. Told of are sums of axes, with integer factors, over known sizes, where nothing decides whether the
// element is read: what stands in a branch of if_then_else is the condition's business.
std::optional<std::string> find_index_outside(const tir::Compute& form);

}  // namespace headrace::lower
