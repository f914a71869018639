#include "partition/merge.h"

#include <map>
#include <set>

#include "graph/merge_regions.h"
#include "partition/annotations.h"
#include "partition/backend.h"
#include "partition/rewrite_functions.h"

namespace headrace::partition {

namespace {

// A pass over graphs needs no backend: one that is not there, or lacks its library, has large regions.
bool takes_one_call(const std::string& compiler) {
  const auto backend = find_backend(compiler);
  try {
    return backend != nullptr && backend->one_call_per_region();
  } catch (const MissingError&) {
    return false;
  }
}

// Joins the parts of one body in rounds, each of which allows some compilers.
class PartMerger {
 public:
  explicit PartMerger(Annotated annotated) : given_(std::move(annotated)) {
    group_ = given_.part;
    of_group_ = given_.compiler;
    scope_.assign(of_group_.size(), 0);
    for (size_t i = 0; i < group_.size(); ++i) {
      if (group_[i] == kNone) continue;
      scope_[static_cast<size_t>(group_[i])] = given_.flow.scope[i];
    }
    for (const std::string& compiler : std::set<std::string>(of_group_.begin(), of_group_.end())) {
      if (takes_one_call(compiler)) one_call_.insert(compiler);
    }
    adopt_tuples();
  }

  Expr merged() {
    if (of_group_.empty()) return given_.flow.body;
    join([this](const std::string& compiler) { return compiler != kDefaultCompiler && !one_call_.contains(compiler); });
    join([](const std::string& compiler) { return compiler == kDefaultCompiler; });
    return write_annotations(given_.flow, group_, of_group_);
  }

 private:
  // Gives tuples that stay in the program, or have no annotations, to the compiler that they connect. A part of its own
  // may change its compiler; a tuple that shares one with calls stays in it.
  void adopt_tuples() {
    std::vector<std::string> backend;
    std::vector<int32_t> count(of_group_.size(), 0);
    for (const int32_t group : group_) {
      const bool stays = group == kNone || of_group_[static_cast<size_t>(group)] == kDefaultCompiler;
      backend.push_back(stays ? "" : of_group_[static_cast<size_t>(group)]);
      if (group != kNone) ++count[static_cast<size_t>(group)];
    }
    std::vector<std::string> labelled = backend;
    label_tuples(given_.flow, labelled);
    for (size_t i = 0; i < group_.size(); ++i) {
      if (labelled[i] == backend[i]) continue;
      if (group_[i] == kNone) {
        group_[i] = static_cast<int32_t>(of_group_.size());
        of_group_.push_back(labelled[i]);
        scope_.push_back(given_.flow.scope[i]);
      } else if (count[static_cast<size_t>(group_[i])] == 1) {
        of_group_[static_cast<size_t>(group_[i])] = labelled[i];
      }
    }
  }

  // One node of a graph for each part and each node outside, in topological order.
  template <typename Allowed>
  void join(Allowed&& allowed) {
    const std::vector<int32_t> order = order_units(given_.flow, {group_, of_group_});
    const auto num_nodes = static_cast<size_t>(given_.flow.num_nodes());
    std::vector<int32_t> place(num_nodes + of_group_.size());
    for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    const auto unit = [&](int32_t node) {
      const int32_t group = group_[static_cast<size_t>(node)];
      return place[group == kNone ? static_cast<size_t>(node) : num_nodes + static_cast<size_t>(group)];
    };
    std::vector<int32_t> colour(place.size(), graph::kNoColour);
    std::map<std::pair<std::string_view, int32_t>, int32_t> known;
    size_t num_allowed = 0;
    for (size_t group = 0; group < of_group_.size(); ++group) {
      if (!allowed(of_group_[group])) continue;
      ++num_allowed;
      const auto next = static_cast<int32_t>(known.size());
      colour[static_cast<size_t>(place[num_nodes + group])] =
          known.try_emplace({of_group_[group], scope_[group]}, next).first->second;
    }
    if (num_allowed < 2) return;
    const std::vector<int32_t> joined = graph::merge_regions(graph_of_units(order.size(), unit), colour);
    rename(joined.size(), [&](size_t group) { return joined[static_cast<size_t>(place[num_nodes + group])]; });
  }

  template <typename Unit>
  graph::IndexGraph graph_of_units(size_t count, const Unit& unit) const {
    std::vector<graph::Edge> edges;
    edges.reserve(given_.flow.uses.size());
    for (const Flow::Use& use : given_.flow.uses) {
      if (use.from != kNone && use.to != kNone && unit(use.from) != unit(use.to))
        edges.push_back({unit(use.from), unit(use.to)});
    }
    return graph::IndexGraph(static_cast<int32_t>(count), edges);
  }

  // Gives each group the number of the first group that has the same name, which is below `num_names`.
  template <typename NameOf>
  void rename(size_t num_names, NameOf&& name_of) {
    std::vector<int32_t> known(num_names, kNone);
    std::vector<int32_t> number;
    std::vector<std::string> compiler;
    std::vector<int32_t> scope;
    for (size_t group = 0; group < of_group_.size(); ++group) {
      int32_t& first = known[static_cast<size_t>(name_of(group))];
      const bool is_new = first == kNone;
      if (is_new) first = static_cast<int32_t>(compiler.size());
      number.push_back(first);
      if (!is_new) continue;
      compiler.push_back(std::move(of_group_[group]));
      scope.push_back(scope_[group]);
    }
    for (int32_t& group : group_) {
      if (group != kNone) group = number[static_cast<size_t>(group)];
    }
    of_group_ = std::move(compiler);
    scope_ = std::move(scope);
  }

  Annotated given_;
  std::vector<int32_t> group_;  // by node
  std::vector<std::string> of_group_;
  std::vector<int32_t> scope_;
  std::set<std::string> one_call_;  // compilers whose parts have one call each
};

}  // namespace

IRModule merge_compiler_regions(const IRModule& module) {
  return rewrite_entered_functions(module, [](const std::string&, const relay::FunctionNode& function) {
    std::optional<Annotated> annotated = find_annotations(function.body);
    return annotated ? PartMerger(std::move(*annotated)).merged() : function.body;
  });
}

}  // namespace headrace::partition
