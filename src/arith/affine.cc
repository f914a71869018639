#include "arith/affine.h"

#include <unordered_set>

#include "ir/map_operands.h"
#include "object/structural_equal.h"

namespace headrace::arith {

namespace {

bool is_same(const PrimExpr& a, const PrimExpr& b) {
  if (a == b) return true;
  if (a.is<PrimVarNode>() || b.is<PrimVarNode>()) return false;
  return structural_equal(Value(a), Value(b));
}

// As the index type computes, whatever a user wrote.
int64_t plus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

void add_term(Affine& sum, const PrimExpr& term, int64_t coefficient) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    if (!is_same(sum.terms[i].first, term)) continue;
    sum.terms[i].second = plus(sum.terms[i].second, coefficient);
    if (sum.terms[i].second == 0) sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  if (coefficient != 0) sum.terms.emplace_back(term, coefficient);
}

void add(Affine& sum, const Affine& more, int64_t factor) {
  sum.constant = plus(sum.constant, times(more.constant, factor));
  for (const auto& [term, coefficient] : more.terms) add_term(sum, term, times(coefficient, factor));
}

Affine constant_sum(int64_t value) { return {value, {}}; }
Affine term_of(PrimExpr term) { return {0, {{std::move(term), 1}}}; }

const BinaryNode* as_binary(const PrimExpr& e, BinaryOp op) {
  const auto* node = e.as<BinaryNode>();
  return node != nullptr && node->op == op ? node : nullptr;
}

// Returns the least and the greatest value, where every term is a variable of known extent.
std::optional<std::pair<int64_t, int64_t>> range_of(const Affine& sum, const Extents& extents) {
  int64_t low = sum.constant, high = sum.constant;
  for (const auto& [term, coefficient] : sum.terms) {
    int64_t last = 0;
    if (const auto* mod = as_binary(term, BinaryOp::floor_mod); mod != nullptr && as_int(mod->b).value_or(0) > 0) {
      last = *as_int(mod->b) - 1;
    } else {
      const auto* var = term.as<PrimVarNode>();
      const auto it = var == nullptr ? extents.end() : extents.find(var);
      if (it == extents.end()) return std::nullopt;
      last = it->second - 1;
    }
    int64_t product = 0;
    int64_t& end = coefficient > 0 ? high : low;
    if (__builtin_mul_overflow(coefficient, last, &product) || __builtin_add_overflow(end, product, &end))
      return std::nullopt;
  }
  return std::pair{low, high};
}

// sum = multiple * divisor + rest
struct Division {
  Affine multiple, rest;
};

Division divide(const Affine& sum, int64_t divisor) {
  Division result;
  const int64_t signed_remainder = sum.constant % divisor;
  const int64_t remainder = signed_remainder < 0 ? signed_remainder + divisor : signed_remainder;
  result.rest.constant = remainder;
  result.multiple.constant = plus(sum.constant, -remainder) / divisor;
  for (const auto& [term, coefficient] : sum.terms) {
    if (coefficient % divisor == 0) {
      result.multiple.terms.emplace_back(term, coefficient / divisor);
    } else {
      result.rest.terms.emplace_back(term, coefficient);
    }
  }
  return result;
}

// Returns floor(rest / divisor), where rest cannot be reduced to a smaller sum.
Affine quotient(const Affine& rest, int64_t divisor) {
  const PrimExpr e = rest.to_expr();
  // (x / a) / b is x / (a * b).
  if (const auto* inner = as_binary(e, BinaryOp::floor_div)) {
    if (const auto by = as_int(inner->b); by && *by > 0 && *by <= INT32_MAX && divisor <= INT32_MAX) {
      return term_of(floor_div(inner->a, make_int(*by * divisor)));
    }
  }
  return term_of(floor_div(e, make_int(divisor)));
}

Affine divided(const Affine& sum, int64_t divisor, bool want_quotient, const Extents& extents) {
  const Division parts = divide(sum, divisor);
  const auto range = range_of(parts.rest, extents);
  const bool fits = range && range->first >= 0 && range->second < divisor;
  if (!want_quotient) {
    return fits ? parts.rest : term_of(floor_mod(parts.rest.to_expr(), make_int(divisor)));
  }
  Affine result = parts.multiple;
  if (!fits) add(result, quotient(parts.rest, divisor), 1);
  return result;
}

// Joins (e % c) * k + (e / c) * (c * k) into e * k, once; returns false when there is no such pair.
bool join_pair(Affine& sum, const Extents& extents) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const auto [term, k] = sum.terms[i];
    const auto* mod = as_binary(term, BinaryOp::floor_mod);
    if (mod == nullptr) continue;
    const int64_t c = as_int(mod->b).value_or(0);
    if (c < 1) continue;  // an empty axis, or an unknown extent
    const Affine whole = to_affine(mod->a, extents);
    const Affine upper = divided(whole, c, true, extents);
    if (upper.terms.size() != 1 || upper.terms[0].second != 1 || upper.constant != 0) continue;
    for (size_t j = 0; j < sum.terms.size(); ++j) {
      if (j == i || sum.terms[j].second != c * k || !is_same(sum.terms[j].first, upper.terms[0].first)) continue;
      sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      add(sum, whole, k);
      return true;
    }
  }
  return false;
}

// Returns whether the variable occurs in the expression, which may be of any depth.
bool contains(const PrimExpr& root, const PrimVarNode* var) {
  std::vector<PrimExpr> open{root};
  std::unordered_set<const PrimExprNode*> seen;
  while (!open.empty()) {
    const PrimExpr e = open.back();
    open.pop_back();
    if (e.get() == var) return true;
    if (!seen.insert(e.get()).second) continue;
    map_operands(e, [&](const PrimExpr& operand) {
      open.push_back(operand);
      return operand;
    });
  }
  return false;
}

}  // namespace

int64_t Affine::coefficient(const PrimVarNode* var) const {
  for (const auto& [term, coefficient] : terms) {
    if (term.get() == var) return coefficient;
  }
  return 0;
}

bool Affine::hides(const PrimVarNode* var) const {
  return std::any_of(terms.begin(), terms.end(), [&](const auto& term) {
    return !term.first.template is<PrimVarNode>() && contains(term.first, var);
  });
}

PrimExpr Affine::to_expr() const {
  PrimExpr result;
  for (const auto& [term, coefficient] : terms) {
    const PrimExpr part = term * coefficient;
    result = result ? result + part : part;
  }
  return result ? result + constant : make_int(constant);
}

Affine to_affine(const PrimExpr& e, const Extents& extents) {
  if (const auto value = as_int(e)) return constant_sum(*value);
  const auto* node = e.as<BinaryNode>();
  if (node == nullptr || e->dtype != kIndexType) return term_of(e);
  const auto divisor = as_int(node->b);
  if (node->op == BinaryOp::add || node->op == BinaryOp::sub) {
    Affine sum = to_affine(node->a, extents);
    add(sum, to_affine(node->b, extents), node->op == BinaryOp::add ? 1 : -1);
    while (join_pair(sum, extents)) continue;
    return sum;
  }
  if (node->op == BinaryOp::mul && (divisor || as_int(node->a))) {
    Affine sum;
    add(sum, to_affine(divisor ? node->a : node->b, extents), divisor ? *divisor : *as_int(node->a));
    return sum;
  }
  const bool is_division = node->op == BinaryOp::floor_div || node->op == BinaryOp::floor_mod;
  if (is_division && divisor && *divisor > 0) {
    return divided(to_affine(node->a, extents), *divisor, node->op == BinaryOp::floor_div, extents);
  }
  return term_of(e);
}

Affine linear_index(const Buffer& buffer, const Array<PrimExpr>& indices, const Extents& extents) {
  Affine sum;
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto size = as_int(buffer->shape[i]);
    HEADRACE_CHECK(size.has_value() && buffer->strides.empty(), "'{}' is not dense and static", buffer->name);
    for (auto& [term, coefficient] : sum.terms) coefficient *= *size;
    sum.constant *= *size;
    if (*size == 0) sum.terms.clear();
    add(sum, to_affine(indices[i], extents), 1);
  }
  while (join_pair(sum, extents)) continue;
  return sum;
}

}  // namespace headrace::arith
