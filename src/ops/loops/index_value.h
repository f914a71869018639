// Indices as users give them, integers of any dtype, for `eval`.
#pragma once

#include <string>

#include "ops/op_keys.h"

namespace headrace::ops {

// Returns element i of a tensor of integers. A uint64 of 2^63 or more becomes the greatest int64, which is out of range
// for any axis, too.
int64_t index_at(const NDArray& indices, int64_t i);
// Returns element i modulo n > 0; at least 0.
int64_t wrapped_index_at(const NDArray& indices, int64_t i, int64_t n);
// Returns element i as the user gave it, for messages.
std::string index_text(const NDArray& indices, int64_t i);

// Returns element i, which must be in [0, n); with `from_end` a negative one counts from the end. UserError at the call
// otherwise, naming the element as it was given.
int64_t checked_index_at(const EvalInput& input, const NDArray& indices, int64_t i, int64_t n, bool from_end);

}  // namespace headrace::ops
