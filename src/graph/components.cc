#include "graph/components.h"

#include <algorithm>

namespace headrace::graph {

namespace {

class ComponentFinder {
 public:
  explicit ComponentFinder(const IndexGraph& graph) : graph_(graph), nodes_(static_cast<size_t>(graph.num_nodes())) {
    for (int32_t root = 0; root < graph.num_nodes(); ++root) {
      if (at(root).order == kUnseen) visit(root);
    }
  }
  std::vector<std::vector<int32_t>> components;

 private:
  static constexpr int32_t kUnseen = -1;
  struct Node {
    int32_t order = kUnseen;
    int32_t low = 0;       // the earliest node known to be reached within the component
    size_t next_edge = 0;  // the first that has not been followed
    bool is_open = false;  // its component is not complete
  };
  Node& at(int32_t node) { return nodes_[static_cast<size_t>(node)]; }

  void enter(int32_t node) {
    at(node) = {count_, count_, 0, true};
    ++count_;
    path_.push_back(node);
    open_.push_back(node);
  }

  void visit(int32_t root) {
    enter(root);
    while (!path_.empty()) {
      const int32_t node = path_.back();
      const auto edges = graph_.out(node);
      if (at(node).next_edge == edges.size()) {
        leave(node);
        continue;
      }
      const int32_t to = edges[at(node).next_edge++].to;
      if (at(to).order == kUnseen) {
        enter(to);
      } else if (at(to).is_open) {
        at(node).low = std::min(at(node).low, at(to).order);
      }
    }
  }

  void leave(int32_t node) {
    path_.pop_back();
    if (!path_.empty()) at(path_.back()).low = std::min(at(path_.back()).low, at(node).low);
    if (at(node).low != at(node).order) return;
    std::vector<int32_t> component;
    do {
      component.push_back(open_.back());
      at(open_.back()).is_open = false;
      open_.pop_back();
    } while (component.back() != node);
    std::sort(component.begin(), component.end());
    components.push_back(std::move(component));
  }

  const IndexGraph& graph_;
  std::vector<Node> nodes_;
  std::vector<int32_t> path_, open_;
  int32_t count_ = 0;
};

}  // namespace

std::vector<std::vector<int32_t>> strong_components(const IndexGraph& graph) {
  return std::move(ComponentFinder(graph).components);
}

}  // namespace headrace::graph
