#include "passes/rewrite/replace_nodes.h"

#include <unordered_set>

#include "relay/visit.h"

namespace headrace::passes {

namespace {

// A node on the way down, or its replacement.
struct Frame {
  const Object* key;
  Expr expr;
  std::vector<Expr> children;
  size_t next = 0;
};

}  // namespace

Expr replace_nodes(const Expr& root, const std::unordered_map<const Object*, Expr>& replacements) {
  std::unordered_map<const Object*, Expr> done;
  std::unordered_set<const Object*> entered;
  std::vector<Frame> stack;
  const auto push = [&](const Expr& expr) {
    if (!entered.insert(expr.object()).second) return;
    const auto found = replacements.find(expr.object());
    const Expr& target = found == replacements.end() ? expr : found->second;
    stack.push_back({expr.object(), target, relay::children_of(target)});
  };
  push(root);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.children.size()) {
      push(Expr(top.children[top.next++]));  // may move the stack, and `top` with it
      continue;
    }
    const Frame frame = std::move(stack.back());
    stack.pop_back();
    std::vector<Expr> children;
    for (const Expr& child : frame.children) {
      const auto it = done.find(child.object());
      HEADRACE_CHECK(it != done.end(), "a replacement of {} leads back to it", child->key());
      children.push_back(it->second);
    }
    done.emplace(frame.key, relay::with_children(frame.expr, children));
  }
  return done.at(root.object());
}

}  // namespace headrace::passes
