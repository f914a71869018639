#include "tir_passes/unroll_loop.h"

#include "tir/post_order.h"
#include "tir/rewrite.h"

namespace headrace::tir_passes {

using namespace tir;  // the pass is about nothing else

static constexpr int64_t kMaxCopies = 4096;
// Statements and operations that one loop may become: loops in loops multiply, and a statement may be long.
static constexpr int64_t kMaxSize = 1 << 16;

// Counts a function that LowerMath replaces as its forty or so operations.
static int64_t size_of_expr(const PrimExpr& e) {
  const auto* call = e.as<IntrinsicCallNode>();
  if (call == nullptr) return 1;
  const Intrinsic it = call->intrinsic;
  const bool is_long = it == Intrinsic::exp || it == Intrinsic::log || it == Intrinsic::tanh || it == Intrinsic::erf;
  return is_long ? 40 : 1;
}

// Counts statements and their operations; a part shared within a statement counts once.
static int64_t size_of(const Stmt& root) {
  int64_t count = 0;
  std::vector<Stmt> pending{root};
  while (!pending.empty()) {
    const Stmt at = pending.back();
    pending.pop_back();
    if (!at) continue;
    ++count;
    for (const PrimExpr& e : post_order(expressions_of(at))) count += size_of_expr(e);
    for (const Stmt& inside : statements_of(at)) pending.push_back(inside);
  }
  return count;
}

static Stmt unroll(const ForNode& loop) {
  const auto extent = as_int(loop.extent);
  HEADRACE_CHECK(extent || loop.kind != ForKind::unrolled, "unrolled loop over '{}' has no constant extent",
                 loop.var->name_hint);
  const auto fits = [&] { return *extent <= kMaxCopies && *extent * size_of(loop.body) <= kMaxSize; };
  if (!extent || (*extent != 1 && (loop.kind != ForKind::unrolled || !fits()))) {
    const ForKind kind = loop.kind == ForKind::unrolled ? ForKind::serial : loop.kind;
    return make_for(loop.var, loop.begin, loop.extent, kind, loop.body);
  }
  std::vector<Stmt> copies;
  for (int64_t i = 0; i < *extent; ++i) {
    const PrimExpr at = loop.begin + make_int(i, loop.begin->dtype);
    copies.push_back(substitute(loop.body, {{loop.var.get(), at}}));
  }
  return make_seq(copies);
}

PrimFunc unroll_loop(const PrimFunc& function) {
  Stmt body = rewrite(
      function->body, [](const PrimExpr& e) { return e; },
      [](const Stmt& s) {
        const auto* loop = s.as<ForNode>();
        if (loop == nullptr) return s;
        return loop->kind == ForKind::unrolled || is_int(loop->extent, 1) ? unroll(*loop) : s;
      });
  if (body == function->body) return function;
  return copy_with(*function, [&](PrimFuncNode& copy) { copy.body = body; });
}

}  // namespace headrace::tir_passes
