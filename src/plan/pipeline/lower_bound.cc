// With weights w >= 0 of the classes: some device of each class c works at least the share of the units that c gets, so
// period * sum(w[c] * devices[c]) >= sum over units of min over c of w[c] * time[unit, c], whatever the shares are.
#include "plan/pipeline/lower_bound.h"

#include <algorithm>
#include <cmath>

namespace headrace::plan {
namespace {

class WeightedBound {
 public:
  explicit WeightedBound(const SplitGraph& graph) : graph_(graph) {}

  int64_t run() {
    const size_t classes = graph_.num_classes();
    std::vector<double> weight(classes, 1.0);
    double best = bound(weight);
    // Weights are changed one at a time by a factor that shrinks, as long as the bound grows.
    double factor = 4;
    const int rounds = classes == 1 ? 0 : graph_.num_units > 100'000 ? 4 : 12;
    for (int round = 0; round < rounds; ++round) {
      bool grew = false;
      for (size_t i = 0; i < classes; ++i) {
        for (const double change : {factor, 1 / factor}) {
          std::vector<double> tried = weight;
          tried[i] *= change;
          const double value = bound(tried);
          if (value <= best) continue;
          best = value;
          weight = std::move(tried);
          grew = true;
        }
      }
      if (!grew) factor = std::sqrt(factor);
    }
    // Sums of doubles round: what they may have gained is taken off.
    return static_cast<int64_t>(std::ceil(best * (1 - 1e-9) - 1e-3));
  }

 private:
  double bound(const std::vector<double>& weight) const {
    const size_t classes = weight.size();
    double time = 0, devices = 0;
    for (size_t i = 0; i < classes; ++i)
      devices += weight[i] * static_cast<double>(graph_.devices.classes[i].devices.size());
    for (size_t at = 0; at < graph_.compute_ns.size(); at += classes) {
      double least = INFINITY;
      for (size_t i = 0; i < classes; ++i) {
        if (graph_.compute_ns[at + i] < kNever)
          least = std::min(least, weight[i] * static_cast<double>(graph_.compute_ns[at + i]));
      }
      time += least;
    }
    return time / devices;
  }

  const SplitGraph& graph_;
};

}  // namespace

int64_t lower_bound(const SplitGraph& graph) {
  int64_t most = 0;
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    int64_t least = kNever;
    for (size_t i = 0; i < graph.num_classes(); ++i) {
      const int64_t replicas =
          std::min<int64_t>(graph.max_replicas, static_cast<int64_t>(graph.devices.classes[i].devices.size()));
      least = std::min(least, (graph.compute(unit, i) + replicas - 1) / replicas);
    }
    most = std::max(most, least);
  }
  return std::max(most, WeightedBound(graph).run());
}

}  // namespace headrace::plan
