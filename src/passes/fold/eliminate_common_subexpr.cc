#include "passes/fold/eliminate_common_subexpr.h"

#include <algorithm>
#include <map>

#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "ops/op_keys.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using relay::TupleGetItemNode;

namespace {

bool is_pure_call(const CallNode& call) {
  const OpNode* op = call.as_op();
  if (op == nullptr) return false;
  const bool* stateful = op->find(ops::kStateful);
  return stateful == nullptr || !*stateful;
}

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

uint64_t hash_of(const CallNode& call) {
  uint64_t hash = mix(1, std::hash<Expr>()(call.op));
  for (const Expr& arg : call.args) hash = mix(hash, std::hash<Expr>()(arg));
  return call.attrs ? mix(hash, structural_hash(Value(call.attrs))) : hash;
}

bool same_call(const CallNode& a, const CallNode& b) {
  if (a.op != b.op || a.args.size() != b.args.size()) return false;
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (a.args[i] != b.args[i]) return false;
  }
  if (a.attrs == b.attrs) return true;
  return a.attrs && b.attrs && structural_equal(Value(a.attrs), Value(b.attrs));
}

// A scope's place in a walk over the tree of scopes: those inside it are in [begin, end) too.
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

// Equal calls, the first of each block that others lie in. No such block is around another, so that the one around a
// block, or those in it, are found by their place.
class EqualCalls {
 public:
  explicit EqualCalls(const CallNode& call) : call_(ref(&call)) {}
  const CallNode& call() const { return *call_.get(); }

  // The first call that is evaluated around `block` or in it; from now on it stands for all of them. `expr` where there
  // is none.
  Expr first(const Extent& block, const Expr& expr) {
    const auto after = firsts_.upper_bound(block.begin);
    if (after != firsts_.begin()) {
      const First& before = std::prev(after)->second;
      if (before.end >= block.end) return before.call;
    }
    First known{block.end, expr, count_++};
    const auto inner = firsts_.lower_bound(block.begin), end = firsts_.lower_bound(block.end);
    for (auto it = inner; it != end; ++it) {
      if (it->second.order < known.order) known = {block.end, it->second.call, it->second.order};
    }
    firsts_.erase(inner, end);
    return firsts_.emplace(block.begin, known).first->second.call;
  }

 private:
  struct First {
    int end;  // of its block
    Expr call;
    int order;
  };
  relay::Call call_;
  std::map<int, First> firsts_;  // by the begin of the block
  int count_ = 0;
};

// The first of each class of equal nodes. Order of evaluation decides which is first, never an address.
class Table {
 public:
  explicit Table(const Expr& body)
      : scopes_(relay::find_scopes(body)),
        blocks_(relay::find_blocks(body, scopes_)),
        extents_(find_extents(scopes_)) {}

  Expr first_equal(const Expr& before, const Expr& expr) {
    if (const auto* call = expr.as<CallNode>()) return is_pure_call(*call) ? first_call(before, expr, *call) : expr;
    if (const auto* item = expr.as<TupleGetItemNode>()) {
      return lookup(items_[mix(std::hash<Expr>()(item->tuple), static_cast<uint64_t>(item->index))], expr,
                    [&](const Expr& other) {
                      const auto* known = other.as<TupleGetItemNode>();
                      return known->tuple == item->tuple && known->index == item->index;
                    });
    }
    if (const auto* constant = expr.as<ConstantNode>()) {
      return lookup(constants_[constant->data.content_hash()], expr,
                    [&](const Expr& other) { return other.as<ConstantNode>()->data.content_equal(constant->data); });
    }
    return expr;
  }

 private:
  // Calls of two branches stay two: as one they would be evaluated before both, even if neither is taken.
  Expr first_call(const Expr& before, const Expr& expr, const CallNode& call) {
    const int block = blocks_[static_cast<size_t>(scopes_.at(before).scope)];
    std::vector<EqualCalls>& bucket = calls_[hash_of(call)];
    auto known =
        std::find_if(bucket.begin(), bucket.end(), [&](const auto& one) { return same_call(call, one.call()); });
    if (known == bucket.end()) known = bucket.emplace(known, call);
    return known->first(extents_[static_cast<size_t>(block)], expr);
  }

  template <typename F>
  static Expr lookup(std::vector<Expr>& bucket, const Expr& expr, F&& same) {
    for (const Expr& known : bucket) {
      if (same(known)) return known;
    }
    bucket.push_back(expr);
    return expr;
  }
  relay::Scopes scopes_;
  std::vector<int> blocks_;
  std::vector<Extent> extents_;
  std::unordered_map<uint64_t, std::vector<EqualCalls>> calls_;
  std::unordered_map<uint64_t, std::vector<Expr>> items_, constants_;
};

}  // namespace

IRModule eliminate_common_subexpr(const IRModule& module) {
  return rewrite_bodies(module, [](const Expr& body) {
    Table table(body);
    return relay::rewrite_post_order(
        body, [&](const Expr& before, const Expr& after) { return table.first_equal(before, after); });
  });
}

}  // namespace headrace::passes
