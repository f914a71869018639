#include "lower/stages/stage_reads.h"

#include "tir/rewrite.h"

namespace headrace::lower {

bool same_index(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const PrimExpr& x, const PrimExpr& y) {
    const auto value = as_int(x);
    return x == y || (value && is_int(y, *value));
  });
}

StageReads::StageReads(const tir::Compute& compute) : stages_(compute.stages.size()) {
  for (size_t i = 0; i < compute.stages.size(); ++i) update(i, compute.stages[i]);
}

const StageReads::Places& StageReads::places(size_t index, const Buffer& buffer) const {
  static const Places kNone;
  const auto it = stages_[index].places.find(buffer.get());
  return it == stages_[index].places.end() ? kNone : it->second;
}

const std::set<size_t>& StageReads::readers(const Buffer& buffer) const {
  static const std::set<size_t> kNone;
  const auto it = readers_.find(buffer.get());
  return it == readers_.end() ? kNone : it->second;
}

void StageReads::update(size_t index, const tir::ComputeStage& stage) {
  drop(index);
  OfStage& own = stages_[index];
  for (const PrimExpr& root : {stage.value, stage.epilogue}) {
    if (!root) continue;
    tir::for_each(root, [&](const PrimExpr& e) {
      const auto* load = e.as<BufferLoadNode>();
      if (load == nullptr) return;
      Places& places = own.places[load->buffer.get()];
      if (places.empty()) own.buffers.push_back(load->buffer);
      const auto same = [&](const Array<PrimExpr>& other) { return same_index(other, load->indices); };
      if (std::none_of(places.begin(), places.end(), same)) places.push_back(load->indices);
    });
  }
  for (const Buffer& buffer : own.buffers) readers_[buffer.get()].insert(index);
}

void StageReads::drop(size_t index) {
  for (const Buffer& buffer : stages_[index].buffers) readers_[buffer.get()].erase(index);
  stages_[index] = {};
}

}  // namespace headrace::lower
