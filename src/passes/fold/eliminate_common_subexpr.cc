#include "passes/fold/eliminate_common_subexpr.h"

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

// The first of each class of equal nodes. Order of evaluation decides which is first, never an address.
class Table {
 public:
  explicit Table(const Expr& body) : scopes_(relay::find_scopes(body)), blocks_(relay::find_blocks(body, scopes_)) {}

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
  struct Known {
    Expr call;
    int block;  // that holds all its uses
  };

  // Calls of two branches stay two: as one they would be evaluated before both, even if neither is taken.
  Expr first_call(const Expr& before, const Expr& expr, const CallNode& call) {
    const int block = blocks_[static_cast<size_t>(scopes_.at(before).scope)];
    std::vector<Known>& bucket = calls_[hash_of(call)];
    for (Known& known : bucket) {
      const bool is_around = scopes_.encloses(known.block, block);
      if (!(is_around || scopes_.encloses(block, known.block)) || !same_call(call, *known.call.as<CallNode>()))
        continue;
      if (!is_around) known.block = block;
      return known.call;
    }
    bucket.push_back({expr, block});
    return expr;
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
  std::unordered_map<uint64_t, std::vector<Known>> calls_;
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
