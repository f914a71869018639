#include "tir_passes/vectorize_loop.h"

#include "ir/intrinsics.h"
#include "tir/post_order.h"
#include "tir/rewrite.h"

namespace headrace::tir_passes {

using namespace tir;  // the pass is about nothing else

namespace {

// Thrown inside the pass when a body is not a vector operation; the loop is unrolled instead.
struct NotVector {};

constexpr int kMostRecursion = 300;

PrimExpr widen(const PrimExpr& e, int lanes) {
  if (e->dtype.lanes() == lanes) return e;
  if (e->dtype.lanes() != 1) throw NotVector{};
  return make_broadcast(e, lanes);
}

// The expression over all lanes of the loop variable: a scalar when it does not depend on it.
class Vectorizer {
 public:
  Vectorizer(const PrimVarNode* var, PrimExpr begin, int lanes)
      : var_(var), ramp_(make_ramp(begin, make_int(1, begin->dtype), lanes)), lanes_(lanes) {}

  // Recurses while the expression is shallow; deeper ones are first walked in post order, so that each node finds its
  // operands done.
  PrimExpr expr(const PrimExpr& e) {
    if (e.get() == var_) return ramp_;
    if (auto it = done_.find(e.get()); it != done_.end()) return it->second;
    if (depth_ < kMostRecursion) return step(e);
    for (const PrimExpr& part : post_order({e})) {
      if (part.get() != var_ && !done_.contains(part.get())) step(part);
    }
    return done_.at(e.get());
  }

  PrimExpr widened(const PrimExpr& e) {
    if (const auto* node = e.as<BinaryNode>()) return binary(*node);
    if (const auto* node = e.as<NotNode>()) return make_not(expr(node->a));
    if (const auto* node = e.as<SelectNode>()) return select(*node, e);
    if (const auto* node = e.as<CastNode>()) {
      PrimExpr value = expr(node->value);
      return make_cast(e->dtype.with_lanes(value->dtype.lanes()), value);
    }
    if (const auto* node = e.as<BufferLoadNode>()) return make_load(node->buffer, indices(node->indices, 2));
    if (const auto* node = e.as<IntrinsicCallNode>()) return intrinsic(*node, e);
    if (e.is<PrimLetNode>() || e->dtype.lanes() != 1) throw NotVector{};
    return e;
  }

  Stmt stmt(const Stmt& s) {
    if (const auto* store = s.as<BufferStoreNode>()) {
      Array<PrimExpr> at = indices(store->indices, 1);
      // Every lane would write the same element: no vector operation.
      if (at.empty() || at.back()->dtype.lanes() != lanes_) throw NotVector{};
      return make_store(store->buffer, widen(expr(store->value), lanes_), at);
    }
    if (const auto* seq = s.as<SeqNode>()) {
      std::vector<Stmt> items;
      for (const Stmt& item : seq->items) items.push_back(stmt(item));
      return make_seq(items);
    }
    if (const auto* loop = s.as<ForNode>()) {
      const PrimExpr begin = expr(loop->begin), extent = expr(loop->extent);
      if (begin->dtype.lanes() != 1 || extent->dtype.lanes() != 1) throw NotVector{};
      return make_for(loop->var, begin, extent, loop->kind, stmt(loop->body));
    }
    throw NotVector{};
  }

 private:
  PrimExpr step(const PrimExpr& e) {
    ++depth_;
    PrimExpr result = widened(e);
    --depth_;
    done_[e.get()] = result;
    return result;
  }

  PrimExpr binary(const BinaryNode& node) {
    PrimExpr a = expr(node.a), b = expr(node.b);
    if (a->dtype.lanes() == 1 && b->dtype.lanes() == 1) return make_binary(node.op, a, b);
    // A ramp moved by a scalar stays a ramp, so that loads see consecutive elements.
    if (node.op == BinaryOp::add || node.op == BinaryOp::sub) {
      const auto* left = a.as<RampNode>();
      const auto* right = b.as<RampNode>();
      if (left != nullptr && b->dtype.lanes() == 1)
        return make_ramp(make_binary(node.op, left->base, b), left->stride, lanes_);
      if (right != nullptr && a->dtype.lanes() == 1 && node.op == BinaryOp::add)
        return make_ramp(a + right->base, right->stride, lanes_);
    }
    if (node.op == BinaryOp::mul) {
      const auto* left = a.as<RampNode>();
      if (left != nullptr && b->dtype.lanes() == 1) return make_ramp(left->base * b, left->stride * b, lanes_);
      const auto* right = b.as<RampNode>();
      if (right != nullptr && a->dtype.lanes() == 1) return make_ramp(right->base * a, right->stride * a, lanes_);
    }
    return make_binary(node.op, widen(a, lanes_), widen(b, lanes_));
  }

  PrimExpr select(const SelectNode& node, const PrimExpr& e) {
    PrimExpr c = expr(node.condition), t = expr(node.true_value), f = expr(node.false_value);
    if (c->dtype.lanes() == 1 && t->dtype.lanes() == 1 && f->dtype.lanes() == 1) return make_select(c, t, f);
    static_cast<void>(e);
    return make_select(widen(c, lanes_), widen(t, lanes_), widen(f, lanes_));
  }

  PrimExpr intrinsic(const IntrinsicCallNode& node, const PrimExpr& e) {
    Array<PrimExpr> args;
    bool vector = false;
    for (const PrimExpr& arg : node.args) {
      args.push_back(expr(arg));
      vector = vector || args.back()->dtype.lanes() != 1;
    }
    if (!vector) return make_intrinsic(node.intrinsic, e->dtype, args);
    if (!row_of(node.intrinsic).is_lanewise) throw NotVector{};
    // A condition that all lanes share stays a branch; otherwise each lane selects its side, and loads are masked.
    const bool is_branch = node.intrinsic == Intrinsic::if_then_else && args[0]->dtype.lanes() == 1;
    for (size_t i = is_branch ? 1 : 0; i < args.size(); ++i) args.set(i, widen(args[i], lanes_));
    return make_intrinsic(node.intrinsic, e->dtype.with_lanes(lanes_), args);
  }

  // Vectorizes indices: the last one may step by at most `most_step`, the others must stay scalars.
  Array<PrimExpr> indices(const Array<PrimExpr>& list, int64_t most_step) {
    Array<PrimExpr> result;
    for (size_t i = 0; i < list.size(); ++i) {
      PrimExpr index = expr(list[i]);
      if (index->dtype.lanes() != 1) {
        const auto* ramp = index.as<RampNode>();
        const int64_t step = ramp == nullptr ? 0 : as_int(ramp->stride).value_or(0);
        if (i + 1 != list.size() || step < 1 || step > most_step) throw NotVector{};
      }
      result.push_back(index);
    }
    return result;
  }

  const PrimVarNode* var_;
  PrimExpr ramp_;
  int lanes_;
  // Expressions share parts: each is widened once.
  std::unordered_map<const PrimExprNode*, PrimExpr> done_;
  int depth_ = 0;
};

Stmt vectorize(const ForNode& loop) {
  const auto lanes = as_int(loop.extent);
  HEADRACE_CHECK(lanes.has_value(), "vectorized loop over '{}' has no constant extent", loop.var->name_hint);
  try {
    if (*lanes < 2 || *lanes > 64) throw NotVector{};
    return Vectorizer(loop.var.get(), loop.begin, static_cast<int>(*lanes)).stmt(loop.body);
  } catch (const NotVector&) {
    return make_for(loop.var, loop.begin, loop.extent, ForKind::unrolled, loop.body);
  }
}

}  // namespace

PrimFunc vectorize_loop(const PrimFunc& function) {
  Stmt body = rewrite(
      function->body, [](const PrimExpr& e) { return e; },
      [](const Stmt& s) {
        const auto* loop = s.as<ForNode>();
        return loop != nullptr && loop->kind == ForKind::vectorized ? vectorize(*loop) : s;
      });
  if (body == function->body) return function;
  return copy_with(*function, [&](PrimFuncNode& copy) { copy.body = body; });
}

}  // namespace headrace::tir_passes
