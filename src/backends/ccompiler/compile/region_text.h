// Writes a region as C: a function for each different call, and one that calls them in order on planned memory.
#pragma once

#include <string>

#include "partition/backend.h"

namespace headrace::backends::ccompiler {

struct RegionText {
  std::string text;             // for a file that begins with codegen::c_source_head()
  int64_t workspace_bytes = 0;  // for the values between inputs and outputs
};

// Writes the region, named f, as the functions
//   f_k(a, b, y)                  for each different call: one of an op, its types and its shapes
//   f_(inputs, outputs, workspace)
//                                 all of it, on plain pointers; `workspace` has workspace_bytes, aligned to
//                                 HR_ALIGNMENT
//   f__wrapper_(inputs, outputs, workspace)
//                                 does the same on DLTensor*
//   f(env, args)                  the kernel (headrace/kernel_abi.h)
// An input that is used twice is one parameter, and a node that is used twice is computed once. Refuses, with the
// reason of supports(), a body that holds anything but supported calls, constants, tuples and items of tuples.
Expected<RegionText> region_text(const partition::RegionSource& region);

}  // namespace headrace::backends::ccompiler
