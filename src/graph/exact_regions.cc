#include "graph/exact_regions.h"

#include <bit>
#include <map>
#include <set>

#include "base/error.h"
#include "graph/merge_regions.h"

namespace headrace::graph {

namespace {

// An acyclic quotient is an order in which the groups can be computed one after another. So the search goes over sets
// of computed nodes, fewest groups first: from each set, every group leads on whose nodes have all their inputs in the
// set or in the group. Nodes without a colour are computed as soon as they can be, since they cost nothing.
class FewestRegions {
 public:
  using Set = uint32_t;

  FewestRegions(const IndexGraph& graph, std::span<const int32_t> colour)
      : colour_(colour), inputs_(colour.size(), 0), linked_(colour.size(), 0) {
    for (int32_t from = 0; from < graph.num_nodes(); ++from) {
      for (const Edge& edge : graph.out(from)) {
        inputs_[static_cast<size_t>(edge.to)] |= bit(static_cast<size_t>(from));
        linked_[static_cast<size_t>(edge.to)] |= bit(static_cast<size_t>(from));
        linked_[static_cast<size_t>(from)] |= bit(static_cast<size_t>(edge.to));
      }
    }
  }

  // Returns the coloured groups.
  std::vector<Set> search() {
    const Set all = (Set{1} << colour_.size()) - 1, start = with_uncoloured(0);
    std::vector<Set> level{start};
    reached_.emplace(start, Step{});
    while (!reached_.contains(all)) {
      std::vector<Set> next;
      for (const Set done : level) extend(done, next);
      HEADRACE_CHECK(!next.empty(), "a graph without an order");
      level = std::move(next);
    }
    std::vector<Set> groups;
    for (Set at = all; at != start; at = reached_.at(at).before) groups.push_back(reached_.at(at).group);
    return groups;
  }

 private:
  struct Step {
    Set before = 0, group = 0;
  };

  static Set bit(size_t node) { return Set{1} << node; }

  Set with_uncoloured(Set done) const {
    for (size_t node = 0; node < colour_.size(); ++node) {  // in topological order, so once is enough
      if (colour_[node] == kNoColour && (inputs_[node] & ~done) == 0) done |= bit(node);
    }
    return done;
  }

  // The nodes of a colour that can be computed after `done` and each other.
  Set computable(Set done, int32_t colour) const {
    Set result = 0;
    for (size_t node = 0; node < colour_.size(); ++node) {
      if (colour_[node] == colour && (done & bit(node)) == 0 && (inputs_[node] & ~(done | result)) == 0)
        result |= bit(node);
    }
    return result;
  }

  bool is_closed(Set group, Set done) const {
    for (Set rest = group; rest != 0; rest &= rest - 1) {
      if ((inputs_[static_cast<size_t>(std::countr_zero(rest))] & ~(done | group)) != 0) return false;
    }
    return true;
  }

  bool is_connected(Set group) const {
    Set found = group & (~group + 1), pending = found;
    while (pending != 0) {
      const auto node = static_cast<size_t>(std::countr_zero(pending));
      pending &= pending - 1;
      const Set more = linked_[node] & group & ~found;
      found |= more;
      pending |= more;
    }
    return found == group;
  }

  void extend(Set done, std::vector<Set>& next) {
    std::set<int32_t> tried;
    for (size_t node = 0; node < colour_.size(); ++node) {
      if (colour_[node] == kNoColour || (done & bit(node)) != 0 || !tried.insert(colour_[node]).second) continue;
      const Set candidates = computable(done, colour_[node]);
      for (Set group = candidates; group != 0; group = (group - 1) & candidates) {
        if (!is_closed(group, done) || !is_connected(group)) continue;
        const Set after = with_uncoloured(done | group);
        if (reached_.try_emplace(after, Step{done, group}).second) next.push_back(after);
      }
    }
  }

  std::span<const int32_t> colour_;
  std::vector<Set> inputs_, linked_;
  std::map<Set, Step> reached_;
};

}  // namespace

std::vector<int32_t> fewest_regions(const IndexGraph& graph, std::span<const int32_t> colour) {
  HEADRACE_CHECK(colour.size() <= 16 && graph.is_topological(), "an exact search over {} nodes", colour.size());
  std::vector<int32_t> group(colour.size());
  for (size_t node = 0; node < group.size(); ++node) group[node] = static_cast<int32_t>(node);
  for (const uint32_t members : FewestRegions(graph, colour).search()) {
    const int32_t first = std::countr_zero(members);
    for (uint32_t rest = members; rest != 0; rest &= rest - 1)
      group[static_cast<size_t>(std::countr_zero(rest))] = first;
  }
  return group;
}

}  // namespace headrace::graph
