// A pattern as a table: its nodes numbered, their children as numbers, and what the matcher needs to know of each.
// Inner header of relay.
#pragma once

#include <unordered_map>

#include "relay/patterns/pattern.h"

namespace headrace::relay {

// The most nodes of one pattern. Each node of a recursion keeps a list of the nodes that it repeats.
inline constexpr size_t kMaxPatternNodes = 10'000;

struct PatternIndex {
  struct Node {
    DFPattern pattern;
    std::vector<int> children;  // in the order of children_of
    // No node below is also used from elsewhere in the pattern: whether it matches an expression does not depend on
    // what the rest of the pattern matched.
    bool is_closed = false;
  };
  std::vector<Node> nodes;  // children first, where the pattern does not contain itself; the whole pattern is `root`
  int root = 0;
  // For each redirected wildcard and each path of a dominator: the nodes that stand for another expression each time it
  // is matched, which are those that nothing outside of it uses.
  std::unordered_map<int, std::vector<int>> repeated;
  bool needs_types = false;  // it asks for a type, a shape or a dtype
  bool needs_dominators = false;

  // UserError for a pattern of too many nodes, and for one that matches when it matches.
  explicit PatternIndex(const DFPattern& pattern);
  int id_of(const DFPattern& pattern) const { return ids_.at(pattern.object()); }

 private:
  void number(const DFPattern& pattern);
  std::vector<int> reach(int from) const;
  std::vector<int> owned(int from, int user) const;
  void check_progress() const;
  void find_closed();
  void find_repeated();

  std::unordered_map<const Object*, int> ids_;
  std::vector<std::vector<int>> users_;
};

}  // namespace headrace::relay
