// Dimensions of int64 from expressions of other integer dtypes, which programs of Relay have.
#include <array>
#include <atomic>
#include <mutex>
#include <type_traits>

#include "ir/prim_expr.h"

namespace headrace {

namespace {

// A symbol is written once and read by several threads, as a TypeSlot is.
std::atomic_ref<Object*> symbol_slot(const PrimExpr& symbol) {
  static_assert(std::is_standard_layout_v<PrimExpr> && sizeof(PrimExpr) == sizeof(Object*));
  return std::atomic_ref<Object*>(*reinterpret_cast<Object**>(const_cast<PrimExpr*>(&symbol)));
}

PrimExpr symbol_of(const PrimVarNode& var) {
  static std::mutex mutex;
  if (symbol_slot(var.dimension).load(std::memory_order_acquire) != nullptr) return var.dimension;
  const std::scoped_lock lock(mutex);
  if (symbol_slot(var.dimension).load(std::memory_order_acquire) == nullptr) {
    PrimExpr symbol = make_prim_var(var.name_hint);
    symbol_slot(var.dimension).store(symbol.release(), std::memory_order_release);
  }
  return var.dimension;
}

bool is_narrow(const PrimExpr& e) {
  return e && e->dtype.is_scalar() && e->dtype != kIndexType && (e->dtype.is_int() || e->dtype.is_uint());
}

bool is_arithmetic(const BinaryNode* binary) {
  return binary != nullptr && !is_comparison(binary->op) && !is_logical(binary->op);
}

// The operands of sums and products become dimensions, all else a cast. Works off a list of its own instead of the
// stack, because an expression may be of any depth.
class Widening {
 public:
  PrimExpr run(const PrimExpr& root) {
    std::vector<PrimExpr> open{root};
    while (!open.empty()) {
      const PrimExpr e = open.back();
      if (done_.contains(e.get())) {
        open.pop_back();
        continue;
      }
      const auto* binary = e.as<BinaryNode>();
      if (!is_arithmetic(binary)) {
        done_[e.get()] = widened_leaf(e);
      } else if (done_.contains(binary->a.get()) && done_.contains(binary->b.get())) {
        done_[e.get()] = make_binary(binary->op, done_.at(binary->a.get()), done_.at(binary->b.get()));
      } else {
        open.push_back(binary->a);
        open.push_back(binary->b);
      }
    }
    return done_.at(root.get());
  }

 private:
  static PrimExpr widened_leaf(const PrimExpr& e) {
    if (const auto value = as_int(e)) return make_int(*value);
    if (const auto* var = e.as<PrimVarNode>()) return symbol_of(*var);
    return make_cast(kIndexType, e);
  }

  std::unordered_map<const PrimExprNode*, PrimExpr> done_;
};

}  // namespace

PrimExpr to_dimension(const PrimExpr& e) { return is_narrow(e) && !is_any(e) ? Widening().run(e) : e; }

}  // namespace headrace
