// The constants of an artifact: each content once, each with its place in the weights section.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "tensor/ndarray.h"

namespace headrace::plan {

class WeightTable {
 public:
  // Returns the index of the weight with that dtype, shape and content; adds it at the end when it is new. The table
  // keeps the tensor (and with it a mapped model file) alive.
  int64_t add(const NDArray& tensor);

  // Replaces the stored tensors by others with the same contents in the same order; the old ones are released.
  void replace_tensors(std::vector<NDArray> tensors) { tensors_ = std::move(tensors); }

  const std::vector<artifact::Weight>& weights() const { return weights_; }
  const std::vector<NDArray>& tensors() const { return tensors_; }  // dense, in the same order
  int64_t nbytes() const { return nbytes_; }                        // size of the section

 private:
  std::vector<artifact::Weight> weights_;
  std::vector<NDArray> tensors_;
  std::map<std::string, size_t> by_content_;
  int64_t nbytes_ = 0;
};

}  // namespace headrace::plan
