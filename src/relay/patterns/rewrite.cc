#include "relay/patterns/rewrite.h"

#include "object/structural_equal.h"
#include "relay/infer/infer_type.h"
#include "relay/patterns/matcher.h"
#include "relay/unique_binders.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

// A program that grows by more than this factor, and by more nodes than that, is not coming to rest.
constexpr size_t kMaxGrowth = 64, kFreeNodes = 100'000;

class PatternRewriter {
 public:
  PatternRewriter(const std::vector<PatternCallback>& callbacks, const IRModule& module)
      : callbacks_(callbacks), module_(module) {}

  Expr run(const Expr& expr) {
    Expr now = expr;
    for (size_t round = 0;; ++round) {
      const Expr last = now;
      const PatternCallback* changed = nullptr;
      for (const PatternCallback& callback : callbacks_) {
        if (callback.rewrite_once && round > 0) continue;
        const Expr next = apply(callback, now);
        if (next != now) changed = &callback;
        now = next;
      }
      if (changed == nullptr || structural_equal(Value(last), Value(now), {.map_free_vars = true})) return now;
      if (round + 1 == kMaxRewriteRounds)
        throw_user_error(
            "rewriting does not come to rest: after {} rounds the callback {} still changes the program; what it gives "
            "must not match its pattern again, or it is a callback with rewrite_once",
            kMaxRewriteRounds, changed->name);
    }
  }

 private:
  Expr apply(const PatternCallback& callback, const Expr& expr) {
    const PatternIndex index(callback.pattern);
    Expr typed = typed_for(index, expr, module_);
    if (callback.require_type && !typed->has_checked_type()) typed = infer_type(unique_binders(expr), module_);
    const ExprIndex graph(typed);
    check_size(callback, graph.nodes().size());
    const std::vector<PatternGroup> groups = find_groups(index, graph, {.takes_leaves = true});
    return groups.empty() ? expr : replace(callback, index, groups, typed);
  }

  void check_size(const PatternCallback& callback, size_t size) {
    if (first_size_ == 0) first_size_ = size;
    if (size > first_size_ * kMaxGrowth + kFreeNodes)
      throw_user_error("rewriting does not come to rest: the callback {} made a program of {} nodes out of {}",
                       callback.name, size, first_size_);
  }

  static Expr replace(const PatternCallback& callback, const PatternIndex& index,
                      const std::vector<PatternGroup>& groups, const Expr& expr) {
    std::unordered_map<const Object*, const PatternGroup*> group_at;
    for (const PatternGroup& group : groups) group_at.emplace(group.root.object(), &group);
    std::unordered_map<const Object*, Expr> done;
    return rewrite_post_order(expr, [&](const Expr& before, const Expr& after) {
      const auto found = group_at.find(before.object());
      done.emplace(before.object(), after);
      if (found == group_at.end()) return after;
      const Expr made = callback.replace(before, after, matches_of(*found->second, index, done));
      if (!made) throw_user_error("the callback {} gave no expression for a match", callback.name);
      done[before.object()] = made;
      return made;
    });
  }

  static PatternMatches matches_of(const PatternGroup& group, const PatternIndex& index,
                                   const std::unordered_map<const Object*, Expr>& done) {
    PatternMatches matches;
    for (const auto& [node, exprs] : group.matches) {
      Array<Expr> now;
      for (const Expr& expr : exprs) now.push_back(done.at(expr.object()));
      matches.set(index.nodes[static_cast<size_t>(node)].pattern, now);
    }
    return matches;
  }

  const std::vector<PatternCallback>& callbacks_;
  const IRModule& module_;
  size_t first_size_ = 0;
};

}  // namespace

Expr rewrite_patterns(const std::vector<PatternCallback>& callbacks, const Expr& expr, const IRModule& module) {
  for (const PatternCallback& callback : callbacks) {
    if (!callback.pattern) throw_user_error("the callback {} has no pattern", callback.name);
  }
  return PatternRewriter(callbacks, module).run(expr);
}

}  // namespace headrace::relay
