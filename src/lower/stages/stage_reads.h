// Which stages read which buffers, kept while stages are joined. Asking every stage anew, for every buffer, would make
// the work grow with the square of their number.
#pragma once

#include <set>
#include <unordered_map>

#include "tir/compute.h"

namespace headrace::lower {

class StageReads {
 public:
  explicit StageReads(const tir::Compute& compute);

  // Returns the indices at which stage `index` reads `buffer`; equal indices are listed once.
  using Places = std::vector<Array<PrimExpr>>;
  const Places& places(size_t index, const Buffer& buffer) const;
  bool reads(size_t index, const Buffer& buffer) const { return !places(index, buffer).empty(); }
  // Returns the buffers that stage `index` reads, each once.
  const std::vector<Buffer>& buffers(size_t index) const { return stages_[index].buffers; }
  // Returns the stages that read `buffer`, in order.
  const std::set<size_t>& readers(const Buffer& buffer) const;

  // Records that stage `index` is now `stage`.
  void update(size_t index, const tir::ComputeStage& stage);
  // Removes stage `index`; the others keep their numbers.
  void drop(size_t index);

 private:
  struct OfStage {
    std::vector<Buffer> buffers;
    std::unordered_map<const BufferNode*, Places> places;
  };
  std::vector<OfStage> stages_;
  std::unordered_map<const BufferNode*, std::set<size_t>> readers_;
};

// Returns whether two indices are equal without arithmetic: false does not mean that they differ.
bool same_index(const Array<PrimExpr>& a, const Array<PrimExpr>& b);

}  // namespace headrace::lower
