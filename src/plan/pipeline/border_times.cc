#include "plan/pipeline/border_times.h"

#include "plan/pipeline/limits.h"

namespace headrace::plan {
namespace {

// Walks the tree in which the parent of a downset is the first one below it, and keeps count of the consumers of each
// tensor on the way.
class BorderWalk {
 public:
  BorderWalk(const SplitGraph& graph, const Lattice& lattice)
      : graph_(graph), lattice_(lattice), readers_(graph.tensor_bytes.size(), 0) {
    for (const int64_t bytes : graph.tensor_bytes) times_.push_back(least_transfer(graph, bytes));
    Lists parents;
    parents.close();
    for (int32_t downset = 1; downset < lattice.size(); ++downset) {
      parents.items.push_back(lattice.below(downset).front().below);
      parents.close();
    }
    children_ = inverse(parents, as_index(lattice.size()));
  }

  BorderTimes run() {
    made_.out_ns.assign(as_index(lattice_.size()), 0);
    made_.in_ns = made_.out_ns;
    std::vector<std::pair<int32_t, size_t>> way{{0, 0}};  // downsets, and the next child of each
    while (!way.empty()) {
      auto& [downset, next] = way.back();
      const auto children = children_[as_index(downset)];
      if (next < children.size()) {
        const int32_t child = children[next++];
        enter(child);
        way.emplace_back(child, 0);
      } else {
        if (downset != 0) leave(downset);
        way.pop_back();
      }
    }
    return std::move(made_);
  }

 private:
  void enter(int32_t downset) {
    const Lattice::Step step = lattice_.below(downset).front();
    int64_t &out = made_.out_ns[as_index(downset)], &in = made_.in_ns[as_index(downset)];
    out = made_.out_ns[as_index(step.below)];
    in = made_.in_ns[as_index(step.below)];
    for (const int32_t tensor : graph_.outputs[as_index(step.unit)]) {
      out += times_[as_index(tensor)].out_ns;
      in += times_[as_index(tensor)].in_ns;
    }
    for (const int32_t tensor : graph_.inputs[as_index(step.unit)]) {
      if (++readers_[as_index(tensor)] < static_cast<int32_t>(graph_.tensor_consumers[as_index(tensor)].size()))
        continue;
      out -= times_[as_index(tensor)].out_ns;
      in -= times_[as_index(tensor)].in_ns;
    }
  }

  void leave(int32_t downset) {
    for (const int32_t tensor : graph_.inputs[as_index(lattice_.below(downset).front().unit)])
      --readers_[as_index(tensor)];
  }

  const SplitGraph& graph_;
  const Lattice& lattice_;
  std::vector<int32_t> readers_;  // by tensor
  std::vector<LeastTransfer> times_;
  Lists children_;
  BorderTimes made_;
};

}  // namespace

BorderTimes border_times(const SplitGraph& graph, const Lattice& lattice) { return BorderWalk(graph, lattice).run(); }

}  // namespace headrace::plan
