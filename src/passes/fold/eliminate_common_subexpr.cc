#include "passes/fold/eliminate_common_subexpr.h"

#include <iterator>
#include <map>
#include <unordered_set>

#include "object/function.h"
#include "object/repr.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/op_keys.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

// Collects the calls that may be merged with others.
class Candidates {
 public:
  Candidates(const Expr& body, const SkipCall& skip) {
    if (!skip) return;
    relay::post_order(body, [&](const Expr& expr) {
      if (holds(expr) && skip(expr.cast<CallNode>())) skipped_.insert(expr.object());
    });
  }
  bool holds(const Expr& expr) const {
    const auto* call = expr.as<CallNode>();
    const OpNode* op = call == nullptr ? nullptr : call->as_op();
    return op != nullptr && !skipped_.contains(expr.object()) && !relay::is_stateful(*op);
  }

 private:
  std::unordered_set<const Object*> skipped_;
};

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

// Numbers the values of nodes: nodes with equal numbers have equal values, wherever they are computed. A node that is
// neither a pure call, a tuple, an item of a tuple nor a constant has a number of its own.
class Numbers {
 public:
  explicit Numbers(const Candidates& candidates) : candidates_(candidates) {}
  // Returns the number of a node whose children are already numbered.
  int add(const Expr& expr) {
    const auto [it, is_new] = numbers_.try_emplace(expr.object(), -1);
    if (is_new) it->second = number_of(expr);
    return it->second;
  }
  int of(const Expr& expr) const { return numbers_.at(expr.object()); }
  size_t count() const { return static_cast<size_t>(count_); }

 private:
  struct Known {
    Expr expr;
    int number;
  };

  int number_of(const Expr& expr) {
    if (candidates_.holds(expr)) {
      const CallNode& call = *expr.as<CallNode>();
      return lookup(calls_[hash_of(call)], expr,
                    [&](const Expr& other) { return same_call(call, *other.as<CallNode>()); });
    }
    if (const auto* tuple = expr.as<TupleNode>()) {
      return lookup(tuples_[hash_of(1, tuple->items)], expr,
                    [&](const Expr& other) { return same_values(tuple->items, other.as<TupleNode>()->items); });
    }
    if (const auto* item = expr.as<TupleGetItemNode>()) {
      const uint64_t hash = mix(static_cast<uint64_t>(of(item->tuple)), static_cast<uint64_t>(item->index));
      return lookup(items_[hash], expr, [&](const Expr& other) {
        const auto* known = other.as<TupleGetItemNode>();
        return of(known->tuple) == of(item->tuple) && known->index == item->index;
      });
    }
    if (const auto* constant = expr.as<ConstantNode>())
      return lookup(constants_[constant->data.content_hash()], expr,
                    [&](const Expr& other) { return other.as<ConstantNode>()->data.content_equal(constant->data); });
    return count_++;
  }

  template <typename F>
  int lookup(std::vector<Known>& bucket, const Expr& expr, F&& same) {
    for (const Known& known : bucket) {
      if (same(known.expr)) return known.number;
    }
    bucket.push_back({expr, count_});
    return count_++;
  }

  uint64_t hash_of(uint64_t hash, const Array<Expr>& values) const {
    for (const Expr& value : values) hash = mix(hash, static_cast<uint64_t>(of(value)));
    return hash;
  }
  uint64_t hash_of(const CallNode& call) const {
    const uint64_t hash = hash_of(mix(1, std::hash<Expr>()(call.op)), call.args);
    return call.attrs ? mix(hash, structural_hash(Value(call.attrs))) : hash;
  }

  bool same_values(const Array<Expr>& a, const Array<Expr>& b) const {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (of(a[i]) != of(b[i])) return false;
    }
    return true;
  }
  bool same_call(const CallNode& a, const CallNode& b) const {
    if (a.op != b.op || !same_values(a.args, b.args)) return false;
    if (a.attrs == b.attrs) return true;
    return a.attrs && b.attrs && structural_equal(Value(a.attrs), Value(b.attrs));
  }

  const Candidates& candidates_;
  std::unordered_map<const Object*, int> numbers_;
  std::unordered_map<uint64_t, std::vector<Known>> calls_, tuples_, items_, constants_;
  int count_ = 0;
};

// A scope's interval in a walk over the tree of scopes. The intervals of inner scopes are inside [begin, end).
struct Extent {
  int begin, end;
};

std::vector<Extent> find_extents(const relay::Scopes& scopes) {
  const std::vector<relay::Scopes::Scope>& all = scopes.scopes;  // each behind its parent
  std::vector<int> sizes(all.size(), 1);
  for (size_t i = all.size(); i-- > 1;) sizes[static_cast<size_t>(all[i].parent)] += sizes[i];
  std::vector<Extent> extents(all.size(), {0, sizes[0]});
  std::vector<int> next(all.size(), 1);
  for (size_t i = 1; i < all.size(); ++i) {
    int& begin = next[static_cast<size_t>(all[i].parent)];
    extents[i] = {begin, begin + sizes[i]};
    next[i] = begin + 1;
    begin = extents[i].end;
  }
  return extents;
}

// The outermost blocks that contain equal calls, each with the call that replaces all equal calls inside it.
class EqualCalls {
 public:
  void add(const Extent& block) {
    const auto after = blocks_.upper_bound(block.begin);
    if (after != blocks_.begin() && std::prev(after)->second.end >= block.end) return;
    blocks_.erase(blocks_.lower_bound(block.begin), blocks_.lower_bound(block.end));
    blocks_.emplace(block.begin, Outermost{block.end, {}});
  }
  // The first that was asked for of the block around `block`. Its scope holds the uses of all of them, so it is
  // evaluated where the outermost was.
  const Expr& first(const Extent& block, const Expr& expr) {
    Expr& known = std::prev(blocks_.upper_bound(block.begin))->second.first;
    if (!known) known = expr;
    return known;
  }

 private:
  struct Outermost {
    int end;
    Expr first;
  };
  std::map<int, Outermost> blocks_;  // by begin
};

// Keeps the first node of each class of equal nodes. The order of evaluation decides which is first, never an address.
class Table {
 public:
  Table(const Expr& body, const SkipCall& skip)
      : candidates_(body, skip),
        scopes_(relay::find_scopes(body)),
        blocks_(relay::find_blocks(body, scopes_)),
        extents_(find_extents(scopes_)) {
    relay::post_order(body, [&](const Expr& expr) { numbers_.add(expr); });
    calls_.resize(numbers_.count());
    firsts_.resize(numbers_.count());
    // Registers all calls before the first is rewritten, because a call in a branch may precede the one around it.
    relay::post_order(body, [&](const Expr& expr) {
      if (candidates_.holds(expr)) calls_of(expr).add(block_of(expr));
    });
  }

  // Does not merge calls of different branches, because a merged call would be evaluated even if neither branch is
  // taken. Items and constants may be merged, because they take no time.
  Expr first_equal(const Expr& before, const Expr& after) {
    if (candidates_.holds(before)) return calls_of(before).first(block_of(before), after);
    if (before.is<ConstantNode>()) return first_of(firsts_[number(before)], after);
    const auto* item = after.as<TupleGetItemNode>();
    return item == nullptr ? after : first_of(items_[{item->tuple.object(), item->index}], after);
  }

 private:
  static const Expr& first_of(Expr& known, const Expr& expr) {
    if (!known) known = expr;
    return known;
  }
  size_t number(const Expr& expr) const { return static_cast<size_t>(numbers_.of(expr)); }
  EqualCalls& calls_of(const Expr& expr) { return calls_[number(expr)]; }
  const Extent& block_of(const Expr& expr) const {
    return extents_[static_cast<size_t>(blocks_[static_cast<size_t>(scopes_.at(expr).scope)])];
  }

  Candidates candidates_;
  relay::Scopes scopes_;
  std::vector<int> blocks_;
  std::vector<Extent> extents_;
  Numbers numbers_{candidates_};
  std::vector<EqualCalls> calls_;                            // by number
  std::vector<Expr> firsts_;                                 // constants by number
  std::map<std::pair<const Object*, int64_t>, Expr> items_;  // by the tuple that they became items of
};

}  // namespace

SkipCall common_subexpr_skip(const pass::PassContext& context) {
  const auto skip = context.option<PackedFunc>("relay.EliminateCommonSubexpr.fskip");
  if (!skip || !*skip) return {};
  return [skip = *skip](const relay::Call& call) {
    const Value answer = skip(call);
    if (!answer.is<bool>())
      throw_at(call->span, "EliminateCommonSubexpr", fmt::format("fskip gives {}, which is not a bool", repr(answer)));
    return answer.as<bool>();
  };
}

IRModule eliminate_common_subexpr(const IRModule& module, const SkipCall& skip) {
  return rewrite_bodies(module, [&](const Expr& body) {
    Table table(body, skip);
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      return table.first_equal(before, after);
    });
  });
}

}  // namespace headrace::passes
