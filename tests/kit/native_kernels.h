// Compute forms and kernels, compiled for this machine and run: what tests of rules, schedules and code generators
// share.
#pragma once

#include "codegen/native.h"
#include "relay/expr.h"
#include "tensor/ndarray.h"
#include "tir/compute.h"

namespace headrace::kit {

// The compute form of a function whose body calls ops that have rules (also nested, through tuples and their items):
// the rules' stages one after the other. Its outputs are the results, tuples flattened. The function need not be typed.
tir::Compute compute_of(const relay::Function& function);

// Kernels compiled together and loaded as one library.
class NativeKernels {
 public:
  // Each function must have its own symbol.
  explicit NativeKernels(std::vector<tir::PrimFunc> functions);
  ~NativeKernels();
  NativeKernels(const NativeKernels&) = delete;
  NativeKernels& operator=(const NativeKernels&) = delete;

  // Runs kernel `i`; gives its outputs. Every buffer ends where an inaccessible page begins and is aligned to its
  // element only; parallel loops run in parts, the last part first. A status other than 0 fails the test.
  std::vector<NDArray> run(size_t i, const std::vector<NDArray>& inputs) const;

  // The widest vectors of this machine.
  static int vector_bits();

 private:
  std::vector<tir::PrimFunc> functions_;
  void* library_ = nullptr;
  int fd_ = -1;
};

}  // namespace headrace::kit
