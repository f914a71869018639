#include "relay/patterns/pattern_index.h"

#include <algorithm>

namespace headrace::relay {

// Larger patterns are matched without remembering failures, because finding the closed nodes is quadratic.
static constexpr size_t kMostClosed = 1000;

PatternIndex::PatternIndex(const DFPattern& pattern) {
  number(pattern);
  root = id_of(pattern);
  users_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const DFPattern& child : children_of(nodes[i].pattern)) {
      nodes[i].children.push_back(id_of(child));
      users_[static_cast<size_t>(id_of(child))].push_back(static_cast<int>(i));
    }
    const DFPattern& node = nodes[i].pattern;
    needs_types |= node.is<TypePatternNode>() || node.is<ShapePatternNode>() || node.is<DataTypePatternNode>();
    needs_dominators |= node.is<DominatorPatternNode>();
  }
  check_progress();
  find_closed();
  find_repeated();
}

// Numbers the nodes in post-order, with a stack of its own; a node that is met again on the way to itself is skipped.
void PatternIndex::number(const DFPattern& pattern) {
  struct Frame {
    DFPattern pattern;
    std::vector<DFPattern> children;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  std::unordered_map<const Object*, bool> seen;
  const auto push = [&](const DFPattern& node) {
    if (!seen.emplace(node.object(), true).second) return;
    if (seen.size() > kMaxPatternNodes) throw_user_error("the pattern has more than {} nodes", kMaxPatternNodes);
    stack.push_back({node, children_of(node)});
  };
  push(pattern);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.children.size()) {
      push(DFPattern(top.children[top.next++]));  // may move the stack, and `top` with it
      continue;
    }
    ids_.emplace(top.pattern.object(), static_cast<int>(nodes.size()));
    nodes.push_back({.pattern = top.pattern, .children = {}});
    stack.pop_back();
  }
}

void release_recursions(const DFPattern& pattern) {
  std::unordered_map<const Object*, bool> seen;
  std::vector<DFPattern> all{pattern};
  seen.emplace(pattern.object(), true);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const DFPattern& child : children_of(DFPattern(all[i]))) {
      if (seen.emplace(child.object(), true).second) all.push_back(child);
    }
  }
  for (const DFPattern& node : all) {
    if (const auto* any = node.as<WildcardPatternNode>()) patterns::redirect(*any, {});
  }
}

// Returns the nodes that can be reached from `from`, itself included, in ascending order.
std::vector<int> PatternIndex::reach(int from) const {
  std::vector<bool> seen(nodes.size());
  std::vector<int> stack{from}, found;
  seen[static_cast<size_t>(from)] = true;
  while (!stack.empty()) {
    const int at = stack.back();
    stack.pop_back();
    found.push_back(at);
    for (const int child : nodes[static_cast<size_t>(at)].children) {
      if (seen[static_cast<size_t>(child)]) continue;
      seen[static_cast<size_t>(child)] = true;
      stack.push_back(child);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Returns the nodes that can be reached from `from` and that nothing uses but such nodes and `user`.
std::vector<int> PatternIndex::owned(int from, int user) const {
  const std::vector<int> within = reach(from);
  std::vector<int> result;
  for (const int node : within) {
    const std::vector<int>& users = users_[static_cast<size_t>(node)];
    const bool is_owned = std::all_of(users.begin(), users.end(), [&](int other) {
      return other == user || std::binary_search(within.begin(), within.end(), other);
    });
    if (is_owned) result.push_back(node);
  }
  return result;
}

void PatternIndex::find_closed() {
  if (nodes.size() > kMostClosed) return;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int id = static_cast<int>(i);
    const std::vector<int> within = reach(id);
    const auto is_inside = [&](int node) { return std::binary_search(within.begin(), within.end(), node); };
    nodes[i].is_closed = std::all_of(within.begin(), within.end(), [&](int node) {
      const std::vector<int>& users = users_[static_cast<size_t>(node)];
      return node == id || std::all_of(users.begin(), users.end(), is_inside);
    });
  }
}

// Returns the parts that a node asks to match the same expression.
static std::vector<int> parts_in_place(const PatternIndex::Node& node) {
  const DFPattern& pattern = node.pattern;
  if (pattern.is<DominatorPatternNode>()) return {node.children[2]};
  const bool is_transparent = pattern.is<WildcardPatternNode>() || pattern.is<AltPatternNode>() ||
                              pattern.is<TypePatternNode>() || pattern.is<ShapePatternNode>() ||
                              pattern.is<DataTypePatternNode>() || pattern.is<AttrPatternNode>();
  return is_transparent ? node.children : std::vector<int>();
}

// Removes, again and again, nodes without parts that are left; what stays leads back to itself.
void PatternIndex::check_progress() const {
  std::vector<std::vector<int>> users(nodes.size());
  std::vector<size_t> parts_left(nodes.size());
  std::vector<int> done;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<int> parts = parts_in_place(nodes[i]);
    parts_left[i] = parts.size();
    for (const int part : parts) users[static_cast<size_t>(part)].push_back(static_cast<int>(i));
    if (parts.empty()) done.push_back(static_cast<int>(i));
  }
  for (size_t next = 0; next < done.size(); ++next) {
    for (const int user : users[static_cast<size_t>(done[next])]) {
      if (--parts_left[static_cast<size_t>(user)] == 0) done.push_back(user);
    }
  }
  if (done.size() < nodes.size())
    throw_user_error(
        "the pattern stands for itself: a redirected wildcard leads back to itself without a call, a tuple or another "
        "part of a program between");
}

void PatternIndex::find_repeated() {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool is_redirected = nodes[i].pattern.is<WildcardPatternNode>() && !nodes[i].children.empty();
    const int id = static_cast<int>(i);
    if (is_redirected) {
      // A target that does not lead back to its wildcard is matched once, like any other part.
      const std::vector<int> within = reach(nodes[i].children[0]);
      if (std::binary_search(within.begin(), within.end(), id)) repeated[id] = owned(nodes[i].children[0], id);
    } else if (nodes[i].pattern.is<DominatorPatternNode>()) {
      const int path = nodes[i].children[1];
      repeated[path] = owned(path, id);
    }
  }
}

}  // namespace headrace::relay
