#include "arith/canonical.h"

#include "arith/bounds.h"
#include "ir/map_operands.h"

namespace headrace::arith {

namespace {

// Two recursions over expressions depend on each other. to_polynomial() turns the operands of an operation into
// polynomials first. Sums, differences and products combine these. Any other operation becomes an atom: a node whose
// operands are written back by to_expr(), which puts factors and terms into a fixed order. So the operands of an atom
// are canonical, and two atoms are the same when their nodes have the same structure. same_expr() decides that, and
// needs no laws of its own, such as a + b == b + a. Polynomials compare terms by their factors in any order.
//
// Conditions are of dtype bool and have no polynomial. rebuild_condition() keeps the comparisons and logical operations
// of a condition and makes the integers in it canonical, by to_polynomial().
//
// Two expressions are equal if their difference has no terms, and unequal if its bounds exclude 0. is_equal() tries
// what costs less first: one node, then numbers and variables, then the same structure, then the difference.
//
// Both recursions treat an expression as a tree. is_small() bounds it before they start. Products of sums grow all the
// same, so more terms or factors than the limits below throw NoForm.
constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxFactors = 16;

// Returns whether two expressions have the same structure. Variables are the same if they are one node.
bool same_expr(const PrimExpr& a, const PrimExpr& b) {
  if (a == b) return true;
  if (a->type_index() != b->type_index() || a->dtype != b->dtype) return false;
  if (const auto* x = a.as<IntImmNode>()) return x->value == b.as<IntImmNode>()->value;
  if (const auto* x = a.as<BinaryNode>()) {
    const auto* y = b.as<BinaryNode>();
    return x->op == y->op && same_expr(x->a, y->a) && same_expr(x->b, y->b);
  }
  if (const auto* x = a.as<CastNode>()) return same_expr(x->value, b.as<CastNode>()->value);
  if (const auto* x = a.as<NotNode>()) return same_expr(x->a, b.as<NotNode>()->a);
  if (const auto* x = a.as<SelectNode>()) {
    const auto* y = b.as<SelectNode>();
    return same_expr(x->condition, y->condition) && same_expr(x->true_value, y->true_value) &&
           same_expr(x->false_value, y->false_value);
  }
  return false;
}

// Returns whether `e` has at most kMaxSize nodes, counted as a tree, and no `?`; so recursion over it is bounded.
bool is_small(const PrimExpr& e) {
  std::vector<PrimExpr> pending{e};
  int64_t size = 0;
  while (!pending.empty()) {
    const PrimExpr at = pending.back();
    pending.pop_back();
    if (++size > kMaxSize || is_any(at)) return false;
    if (const auto* binary = at.as<BinaryNode>()) {
      pending.push_back(binary->a);
      pending.push_back(binary->b);
    } else if (const auto* cast = at.as<CastNode>()) {
      pending.push_back(cast->value);
    } else if (const auto* inverse = at.as<NotNode>()) {
      pending.push_back(inverse->a);
    } else if (const auto* select = at.as<SelectNode>()) {
      pending.insert(pending.end(), {select->condition, select->true_value, select->false_value});
    }
  }
  return true;
}

// A product: factors in order of their text, so that printing does not depend on addresses.
struct Term {
  std::vector<PrimExpr> factors;
  int64_t coefficient = 0;
};

bool same_factors(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
  if (a.size() != b.size()) return false;
  std::vector<bool> used(b.size());
  for (const PrimExpr& x : a) {
    size_t j = 0;
    while (j < b.size() && (used[j] || !same_expr(x, b[j]))) ++j;
    if (j == b.size()) return false;
    used[j] = true;
  }
  return true;
}

// Thrown inside this file only: the expression has no canonical form.
struct NoForm {};

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw NoForm{};
  return r;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw NoForm{};
  return r;
}

struct Polynomial {
  std::vector<Term> terms;  // no two with the same factors, none zero

  void add(const Term& term) {
    if (term.coefficient == 0) return;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (!same_factors(terms[i].factors, term.factors)) continue;
      terms[i].coefficient = checked_add(terms[i].coefficient, term.coefficient);
      if (terms[i].coefficient == 0) terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    if (terms.size() == kMaxTerms) throw NoForm{};
    terms.push_back(term);
  }
  std::optional<int64_t> constant() const {
    if (terms.empty()) return 0;
    if (terms.size() == 1 && terms[0].factors.empty()) return terms[0].coefficient;
    return std::nullopt;
  }
};

Term multiply(const Term& a, const Term& b) {
  Term result{a.factors, checked_mul(a.coefficient, b.coefficient)};
  result.factors.insert(result.factors.end(), b.factors.begin(), b.factors.end());
  if (result.factors.size() > kMaxFactors) throw NoForm{};
  return result;
}

Polynomial add_scaled(Polynomial a, const Polynomial& b, const Term& scale) {
  for (const Term& term : b.terms) a.add(multiply(term, scale));
  return a;
}

Polynomial multiply(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (const Term& term : b.terms) result = add_scaled(std::move(result), a, term);
  return result;
}

Polynomial constant_of(int64_t value) {
  Polynomial result;
  result.add({{}, value});
  return result;
}

Polynomial atom(PrimExpr e) {
  Polynomial result;
  result.add({{std::move(e)}, 1});
  return result;
}

PrimExpr to_expr(const Polynomial& p);
Polynomial to_polynomial(const PrimExpr& e);

// Splits p = divisor * quotient + rest with the rest's coefficients in [0, divisor).
std::pair<Polynomial, Polynomial> split(const Polynomial& p, int64_t divisor) {
  std::pair<Polynomial, Polynomial> result;
  for (const Term& term : p.terms) {
    const int64_t remainder = checked_add(term.coefficient % divisor, divisor) % divisor;
    result.first.add({term.factors, checked_add(term.coefficient, -remainder) / divisor});
    result.second.add({term.factors, remainder});
  }
  return result;
}

// Simplifies (d * q + r) // d to q + r // d, and (d * q + r) %% d to r %% d, for every integer d > 0; truncation needs
// r == 0.
Polynomial divide(BinaryOp op, const Polynomial& a, const Polynomial& b) {
  const auto divisor = b.constant();
  const bool is_floor = op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  const bool is_div = op == BinaryOp::floor_div || op == BinaryOp::div;
  if (!divisor || *divisor <= 0) return atom(make_binary(op, to_expr(a), to_expr(b)));
  auto [quotient, rest] = split(a, *divisor);
  if (rest.terms.empty()) return is_div ? quotient : Polynomial{};
  if (!is_floor) return atom(make_binary(op, to_expr(a), to_expr(b)));
  const PrimExpr remaining = make_binary(op, to_expr(rest), make_int(*divisor));
  const Polynomial tail = as_int(remaining) ? constant_of(*as_int(remaining)) : atom(remaining);
  return is_div ? add_scaled(quotient, tail, {{}, 1}) : tail;
}

Polynomial min_or_max(BinaryOp op, const Polynomial& a, const Polynomial& b) {
  const Bounds gap = bounds_of(to_expr(add_scaled(a, b, {{}, -1})));
  if (gap.greatest <= 0) return op == BinaryOp::min ? a : b;
  if (gap.least >= 0) return op == BinaryOp::min ? b : a;
  return atom(make_binary(op, to_expr(a), to_expr(b)));
}

// Comparisons and logicals keep their shape; their integer operands become canonical.
PrimExpr rebuild_condition(const PrimExpr& e) {
  if (e->dtype == kIndexType) return to_expr(to_polynomial(e));
  if (const auto* binary = e.as<BinaryNode>())
    return make_binary(binary->op, rebuild_condition(binary->a), rebuild_condition(binary->b));
  if (const auto* inverse = e.as<NotNode>()) return make_not(rebuild_condition(inverse->a));
  return e;
}

Polynomial to_polynomial(const PrimExpr& e) {
  if (e->dtype != kIndexType) throw NoForm{};
  if (const auto value = as_int(e)) return constant_of(*value);
  if (const auto* select = e.as<SelectNode>()) {
    const PrimExpr rebuilt =
        make_select(rebuild_condition(select->condition), to_expr(to_polynomial(select->true_value)),
                    to_expr(to_polynomial(select->false_value)));
    return rebuilt.is<SelectNode>() ? atom(rebuilt) : to_polynomial(rebuilt);
  }
  const auto* binary = e.as<BinaryNode>();
  if (binary == nullptr) return atom(e);
  const Polynomial a = to_polynomial(binary->a), b = to_polynomial(binary->b);
  switch (binary->op) {
    case BinaryOp::add:
      return add_scaled(a, b, {{}, 1});
    case BinaryOp::sub:
      return add_scaled(a, b, {{}, -1});
    case BinaryOp::mul:
      return multiply(a, b);
    case BinaryOp::div:
    case BinaryOp::mod:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
      return divide(binary->op, a, b);
    case BinaryOp::min:
    case BinaryOp::max:
      return min_or_max(binary->op, a, b);
    default:
      throw NoForm{};
  }
}

// Terms of higher degree first, then by text; the constant is last.
void sort_terms(std::vector<std::pair<std::string, Term>>& terms) {
  std::stable_sort(terms.begin(), terms.end(), [](const auto& x, const auto& y) {
    const size_t p = x.second.factors.size(), q = y.second.factors.size();
    return p != q ? p > q : x.first < y.first;
  });
}

std::vector<Term> sorted_terms(const Polynomial& p) {
  std::vector<std::pair<std::string, Term>> keyed;
  for (Term term : p.terms) {
    std::vector<std::pair<std::string, PrimExpr>> factors;
    for (const PrimExpr& factor : term.factors) factors.emplace_back(to_string(factor), factor);
    std::stable_sort(factors.begin(), factors.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    std::string text;
    for (size_t i = 0; i < factors.size(); ++i) {
      text += factors[i].first + "*";
      term.factors[i] = factors[i].second;
    }
    keyed.emplace_back(std::move(text), std::move(term));
  }
  sort_terms(keyed);
  std::vector<Term> result;
  for (auto& [text, term] : keyed) result.push_back(std::move(term));
  return result;
}

PrimExpr to_expr(const Polynomial& p) {
  PrimExpr sum;
  for (const Term& term : sorted_terms(p)) {
    PrimExpr product;
    for (const PrimExpr& factor : term.factors) product = product ? product * factor : factor;
    const bool subtract = sum && term.coefficient < 0 && term.coefficient != INT64_MIN;
    const PrimExpr coefficient = make_int(subtract ? -term.coefficient : term.coefficient);
    const PrimExpr scaled = product ? product * coefficient : coefficient;
    sum = !sum ? scaled : subtract ? sum - scaled : sum + scaled;
  }
  return sum ? sum : make_int(0);
}

std::optional<Polynomial> form_of(const PrimExpr& e) {
  if (!is_small(e)) return std::nullopt;
  try {
    return to_polynomial(e);
  } catch (const NoForm&) {
    return std::nullopt;
  }
}

// Returns a - b.
std::optional<Polynomial> difference(const PrimExpr& a, const PrimExpr& b) {
  const auto p = form_of(a), q = form_of(b);
  if (!p || !q) return std::nullopt;
  try {
    return add_scaled(*p, *q, {{}, -1});
  } catch (const NoForm&) {
    return std::nullopt;
  }
}

bool is_number_or_variable(const PrimExpr& e) { return as_int(e) || e.is<PrimVarNode>(); }

bool is_never_zero(const Polynomial& p) {
  const Bounds bounds = bounds_of(to_expr(p));
  return bounds.least > 0 || bounds.greatest < 0;
}

bool mentions(const PrimExpr& root, const PrimVarNode* variable) {
  std::vector<PrimExpr> pending{root};
  while (!pending.empty()) {
    const PrimExpr at = std::move(pending.back());
    pending.pop_back();
    if (at.get() == variable) return true;
    map_operands(at, [&](const PrimExpr& operand) { return pending.emplace_back(operand); });
  }
  return false;
}

// Returns a / b as a term, or nothing when b's factors are not among a's.
std::optional<Term> divide_term(Term a, const Term& b) {
  if (a.coefficient % b.coefficient != 0) return std::nullopt;
  for (const PrimExpr& factor : b.factors) {
    size_t i = 0;
    while (i < a.factors.size() && !same_expr(a.factors[i], factor)) ++i;
    if (i == a.factors.size()) return std::nullopt;
    a.factors.erase(a.factors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  a.coefficient /= b.coefficient;
  return a;
}

std::optional<Polynomial> divide_polynomials(Polynomial rest, const Polynomial& divisor) {
  const Term lead = sorted_terms(divisor).front();
  if (lead.coefficient == -1) return std::nullopt;  // no dimension is negative, and INT64_MIN / -1 traps
  Polynomial quotient;
  for (size_t step = 0; step < kMaxTerms && !rest.terms.empty(); ++step) {
    const auto term = divide_term(sorted_terms(rest).front(), lead);
    if (!term) return std::nullopt;
    quotient.add(*term);
    rest = add_scaled(std::move(rest), divisor, {term->factors, -term->coefficient});
  }
  if (!rest.terms.empty()) return std::nullopt;
  return quotient;
}

}  // namespace

std::optional<PrimExpr> canonical(const PrimExpr& e) {
  if (as_int(e) || e.is<PrimVarNode>()) return e;
  const auto form = form_of(e);
  if (!form) return std::nullopt;
  PrimExpr result = to_expr(*form);
  if (!is_small(result)) return std::nullopt;
  return same_expr(result, e) ? e : result;  // so that equal dimensions stay one node, which is compared at once
}

PrimExpr simplify_dim(const PrimExpr& e) {
  const auto result = canonical(e);
  return result ? *result : make_any();
}

bool is_equal(const PrimExpr& a, const PrimExpr& b) {
  if (is_any(a) || is_any(b)) return false;
  if (a == b) return true;
  if (is_number_or_variable(a) && is_number_or_variable(b)) return as_int(a) && as_int(a) == as_int(b);
  if (is_small(a) && is_small(b) && same_expr(a, b)) return true;
  const auto gap = difference(a, b);
  return gap && gap->terms.empty();
}

bool is_unequal(const PrimExpr& a, const PrimExpr& b) {
  if (a == b) return false;
  if (as_int(a) && as_int(b)) return as_int(a) != as_int(b);
  const auto gap = difference(a, b);
  return gap && is_never_zero(*gap);
}

Solution solve_for(const PrimVarNode* x, const PrimExpr& a, const PrimExpr& b) {
  auto gap = difference(a, b);
  if (!gap) return {};
  Solution result{.value = {}, .is_none = is_never_zero(*gap)};
  std::vector<Term>& terms = gap->terms;
  const auto is_x = [&](const Term& term) { return term.factors.size() == 1 && term.factors[0].get() == x; };
  const auto at = std::find_if(terms.begin(), terms.end(), is_x);
  if (result.is_none || at == terms.end()) return result;
  const int64_t coefficient = at->coefficient;
  terms.erase(at);
  // coefficient * x == -rest
  for (Term& term : terms) {
    if (std::any_of(term.factors.begin(), term.factors.end(), [&](const auto& e) { return mentions(e, x); })) return {};
    if (coefficient == INT64_MIN || term.coefficient == INT64_MIN) return {};
    if (term.coefficient % coefficient != 0) {
      result.is_none = terms.size() == 1 && term.factors.empty();
      return result;
    }
    term.coefficient /= -coefficient;
  }
  result.value = to_expr(*gap);
  return result;
}

std::optional<PrimExpr> divide_exactly(const PrimExpr& a, const PrimExpr& b) {
  const auto p = form_of(a), q = form_of(b);
  if (!p || !q || q->terms.empty()) return std::nullopt;
  try {
    const auto quotient = divide_polynomials(*p, *q);
    if (!quotient) return std::nullopt;
    return to_expr(*quotient);
  } catch (const NoForm&) {
    return std::nullopt;
  }
}

PrimExpr product(const Array<PrimExpr>& dims) {
  PrimExpr result = make_int(1);
  for (const PrimExpr& dim : dims) result = simplify_dim(result * dim);
  return result;
}

PrimExpr size_of(const TensorType& type) {
  const PrimExpr size = product(type->shape);
  if (is_any(size) && as_shape(type->shape))
    throw_user_error("{} has more elements than a 64-bit integer counts", to_string(Type(type)));
  return size;
}

}  // namespace headrace::arith
