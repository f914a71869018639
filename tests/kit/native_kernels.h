// Compiles kernels for this machine and runs them, for tests of rules, schedules and code generators.
#pragma once

#include "codegen/native.h"
#include "tensor/ndarray.h"

namespace headrace::kit {

// Kernels compiled together and loaded as one library.
class NativeKernels {
 public:
  // Compiles functions, each with a symbol of its own.
  explicit NativeKernels(std::vector<tir::PrimFunc> functions);
  // Compiles functions as C (codegen/c_source.h) with the machine's C compiler and `options`. A warning fails the test
  // where the options say so.
  NativeKernels(std::vector<tir::PrimFunc> functions, const std::string& options);
  ~NativeKernels();
  NativeKernels(const NativeKernels&) = delete;
  NativeKernels& operator=(const NativeKernels&) = delete;

  // Runs kernel `i`; gives its outputs, each a line of elements. Every buffer ends where an inaccessible page begins
  // and is aligned to its element only; parallel loops run in parts, the last part first. A status other than 0 fails
  // the test.
  std::vector<NDArray> run(size_t i, const std::vector<NDArray>& inputs) const;

  // Returns the sentence that kernel `i` stops with; empty when it does not.
  std::string error_of(size_t i, const std::vector<NDArray>& inputs) const;

  // Returns the widest vectors of this machine.
  static int vector_bits();

 private:
  int32_t call(size_t i, const std::vector<NDArray>& inputs, std::vector<NDArray>* outputs, std::string* message) const;

  std::vector<tir::PrimFunc> functions_;
  void* library_ = nullptr;
  int fd_ = -1;
};

}  // namespace headrace::kit
