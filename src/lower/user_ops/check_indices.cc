#include "lower/user_ops/check_indices.h"

#include <unordered_set>

#include "tir/post_order.h"
#include "tir/print.h"

namespace headrace::lower {

using tir::ComputeStage;

namespace {

// A description of an access, and the remedy when its index is out of bounds.
struct IndexUse {
  std::string_view does, advice;
};
constexpr IndexUse kRead{"reads", "an element that may not be there is read in a branch of if_then_else"};
constexpr IndexUse kWrite{"writes", "give the part fewer elements, or another place"};

// The last value of each axis.
using Lasts = std::unordered_map<const PrimVarNode*, int64_t>;

// constant + sum of coefficient * axis
struct Sum {
  int64_t constant = 0;
  std::map<const PrimVarNode*, int64_t> terms;
};

// Returns a + b * times; nothing past 64 bits.
std::optional<Sum> added(Sum a, const Sum& b, int64_t times) {
  const auto add = [&](int64_t& to, int64_t more) {
    int64_t product = 0;
    return !__builtin_mul_overflow(more, times, &product) && !__builtin_add_overflow(to, product, &to);
  };
  if (!add(a.constant, b.constant)) return std::nullopt;
  for (const auto& [axis, coefficient] : b.terms) {
    if (!add(a.terms[axis], coefficient)) return std::nullopt;
  }
  return a;
}

std::optional<Sum> sum_of_binary(const BinaryNode& node, const std::optional<Sum>& a, const std::optional<Sum>& b) {
  if (!a || !b) return std::nullopt;
  if (node.op == BinaryOp::add) return added(*a, *b, 1);
  if (node.op == BinaryOp::sub) return added(*a, *b, -1);
  if (node.op == BinaryOp::mul && b->terms.empty()) return added({}, *a, b->constant);
  if (node.op == BinaryOp::mul && a->terms.empty()) return added({}, *b, a->constant);
  return std::nullopt;
}

// Returns the index as a sum of axes.
std::optional<Sum> sum_of(const PrimExpr& index, const Lasts& lasts) {
  std::unordered_map<const PrimExprNode*, std::optional<Sum>> sums;
  for (const PrimExpr& e : tir::post_order({index})) {
    std::optional<Sum>& sum = sums[e.get()];
    const auto* axis = e.as<PrimVarNode>();
    if (e->dtype != kIndexType) {
      sum = std::nullopt;
    } else if (const auto value = as_int(e)) {
      sum = Sum{*value, {}};
    } else if (axis != nullptr && lasts.contains(axis)) {
      sum = Sum{0, {{axis, 1}}};
    } else if (const auto* node = e.as<BinaryNode>()) {
      sum = sum_of_binary(*node, sums.at(node->a.get()), sums.at(node->b.get()));
    }
  }
  return sums.at(index.get());
}

// Returns the range of values, which an iteration reaches at both ends, since axes are independent.
std::optional<std::pair<int64_t, int64_t>> range_of(const PrimExpr& index, const Lasts& lasts) {
  const auto sum = sum_of(index, lasts);
  if (!sum) return std::nullopt;
  int64_t low = sum->constant, high = sum->constant;
  for (const auto& [axis, coefficient] : sum->terms) {
    int64_t at_last = 0;
    int64_t& end = coefficient > 0 ? high : low;
    if (__builtin_mul_overflow(coefficient, lasts.at(axis), &at_last) || __builtin_add_overflow(end, at_last, &end))
      return std::nullopt;
  }
  return std::pair{low, high};
}

std::optional<std::string> find_outside(const IndexUse& use, const Buffer& buffer, const Array<PrimExpr>& indices,
                                        const Lasts& lasts) {
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto extent = as_int(buffer->shape[i]);
    const auto range = extent ? range_of(indices[i], lasts) : std::nullopt;
    if (!range || (range->first >= 0 && range->second < *extent)) continue;
    const std::string values = range->first == range->second
                                   ? fmt::format("is {}", range->first)
                                   : fmt::format("goes from {} to {}", range->first, range->second);
    return fmt::format(
        "its compute form {} '{}' outside: index {} is `{}`, which {}, and the dimension has {} elements; {}", use.does,
        buffer->name, i, tir::summary(indices[i]), values, *extent, use.advice);
  }
  return std::nullopt;
}

// Returns the loads that every iteration makes.
std::vector<const BufferLoadNode*> sure_loads(const PrimExpr& value) {
  std::vector<const BufferLoadNode*> loads;
  std::unordered_set<const PrimExprNode*> seen;
  std::vector<PrimExpr> open{value};
  while (!open.empty()) {
    const PrimExpr e = std::move(open.back());
    open.pop_back();
    if (!e || !seen.insert(e.get()).second) continue;
    if (const auto* load = e.as<BufferLoadNode>()) loads.push_back(load);
    const auto* call = e.as<IntrinsicCallNode>();
    const bool is_choice = call != nullptr && call->intrinsic == Intrinsic::if_then_else;
    const std::vector<PrimExpr> operands = is_choice ? std::vector<PrimExpr>{call->args[0]} : tir::operands_of(e);
    open.insert(open.end(), operands.rbegin(), operands.rend());
  }
  return loads;
}

// Adds the axes; false when there are no iterations, or it is not known how many.
bool add_axes(const std::vector<PrimVar>& axes, const std::vector<PrimExpr>& extents, Lasts& lasts) {
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = as_int(extents[i]).value_or(0);
    if (extent < 1) return false;
    lasts[axes[i].get()] = extent - 1;
  }
  return true;
}

std::optional<std::string> find_in_value(const PrimExpr& value, const Lasts& lasts) {
  for (const BufferLoadNode* load : sure_loads(value)) {
    if (auto found = find_outside(kRead, load->buffer, load->indices, lasts)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> find_in_stage(const ComputeStage& stage) {
  Lasts lasts;
  if (!add_axes(stage.axes, stage.axis_extents(), lasts)) return std::nullopt;
  if (stage.is_partial()) {
    if (auto found = find_outside(kWrite, stage.output, Array<PrimExpr>(stage.place), lasts)) return found;
  }
  if (stage.epilogue) {
    if (auto found = find_in_value(stage.epilogue, lasts)) return found;
  }
  return add_axes(stage.reduce_axes, stage.reduce_extents, lasts) ? find_in_value(stage.value, lasts) : std::nullopt;
}

}  // namespace

std::optional<std::string> find_index_outside(const tir::Compute& form) {
  for (const ComputeStage& stage : form.stages) {
    if (auto found = find_in_stage(stage)) return found;
  }
  return std::nullopt;
}

}  // namespace headrace::lower
