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

  // Where stage `index` reads `buffer`; loads with the same index are one.
  using Places = std::vector<Array<PrimExpr>>;
  const Places& places(size_t index, const Buffer& buffer) const;
  bool reads(size_t index, const Buffer& buffer) const { return !places(index, buffer).empty(); }
  // The buffers that stage `index` reads, each once.
  const std::vector<Buffer>& buffers(size_t index) const { return stages_[index].buffers; }
  // The stages that read `buffer`, in order.
  const std::set<size_t>& readers(const Buffer& buffer) const;

  // Stage `index` has become `stage`.
  void update(size_t index, const tir::ComputeStage& stage);
  // Stage `index` is no more; the others keep their numbers.
  void drop(size_t index);

 private:
  struct OfStage {
    std::vector<Buffer> buffers;
    std::unordered_map<const BufferNode*, Places> places;
  };
  std::vector<OfStage> stages_;
  std::unordered_map<const BufferNode*, std::set<size_t>> readers_;
};

// Whether two indices are the same place, as far as one can see without arithmetic.
bool same_index(const Array<PrimExpr>& a, const Array<PrimExpr>& b);

}  // namespace headrace::lower
