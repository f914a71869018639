// Downsets of a graph: sets of units that hold, with each unit, all units that it depends on. What has been computed
// when a stage begins is a downset, so that a plan is a chain of downsets and a stage is what two of them differ in.
#pragma once

#include <optional>

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

struct Lattice {
  struct Step {
    int32_t below;  // a downset with one unit less
    int32_t unit;
  };
  std::vector<int64_t> begins{0};  // first step of each downset
  std::vector<Step> steps;

  // Downset 0 is empty, the last one has all units, smaller ones come first.
  int32_t size() const { return static_cast<int32_t>(begins.size()) - 1; }
  std::span<const Step> below(int32_t downset) const {
    const auto at = static_cast<size_t>(downset);
    return {steps.data() + begins[at], static_cast<size_t>(begins[at + 1] - begins[at])};
  }
  // Appends the units that `upper` has and `lower`, which is below it, has not.
  void append_between(int32_t lower, int32_t upper, std::vector<int32_t>& units) const;
};

// Returns all downsets; nothing when there are more than `max_downsets`. Time and memory grow with max_downsets times
// the number of units.
std::optional<Lattice> all_downsets(const SplitGraph& graph, int32_t max_downsets);

// Returns the downsets that a topological order of the units goes through.
Lattice prefixes_of(std::span<const int32_t> order);

}  // namespace headrace::plan
