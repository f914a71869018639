#include "interp/check_arguments.h"

#include <algorithm>

#include "arith/canonical.h"
#include "relay/infer/type_match.h"

namespace headrace::interp {

namespace {

// The sizes of one call's symbols, as the arguments tell them.
class Sizes {
 public:
  // Sums and products of symbols are looked at when `all_known`, which is asked for where they were met. They may tell
  // a symbol too.
  bool fits(const Type& want, const Type& got, bool all_known) {
    std::vector<std::pair<Type, Type>> open{{want, got}};
    while (!open.empty()) {
      const auto [formal, actual] = open.back();
      open.pop_back();
      if (const auto* tensor = formal.as<TensorTypeNode>()) {
        if (!fits_tensor(*tensor, actual.as<TensorTypeNode>(), all_known)) return false;
      } else if (const auto* tuple = formal.as<TupleTypeNode>(); tuple != nullptr && actual) {
        const auto* other = actual.as<TupleTypeNode>();
        if (other == nullptr || other->items.size() != tuple->items.size()) return false;
        for (size_t i = 0; i < tuple->items.size(); ++i) open.emplace_back(tuple->items[i], other->items[i]);
      }
    }
    return true;
  }

  bool has_sums() const { return has_sums_; }
  size_t count() const { return sizes_.size(); }

  // " with n = 2" of the symbols that the type has and that are known.
  std::string show(const Type& type) const {
    std::vector<std::string> known;
    relay::visit_symbols(type, [&](const PrimVarNode* symbol) {
      const auto at = sizes_.find(symbol);
      if (at == sizes_.end()) return;
      std::string one = fmt::format("{} = {}", symbol->name_hint, to_string(at->second));
      if (std::find(known.begin(), known.end(), one) == known.end()) known.push_back(std::move(one));
    });
    return known.empty() ? "" : fmt::format(" with {}", fmt::join(known, ", "));
  }

 private:
  bool fits_tensor(const TensorTypeNode& want, const TensorTypeNode* got, bool all_known) {
    if (got == nullptr || got->dtype != want.dtype || got->shape.size() != want.shape.size()) return false;
    for (size_t i = 0; i < want.shape.size(); ++i) {
      if (!fits_dim(want.shape[i], got->shape[i], all_known)) return false;
    }
    return true;
  }

  bool fits_dim(const PrimExpr& want, const PrimExpr& got, bool all_known) {
    const auto size = as_int(got);
    if (const auto fixed = as_int(want)) return size && *size == *fixed;
    if (!size || is_any(want)) return true;
    if (const auto* symbol = want.as<PrimVarNode>())
      return as_int(sizes_.try_emplace(symbol, got).first->second) == size;
    has_sums_ = true;
    return !all_known || fits_sum(substitute(want, sizes_), got);
  }

  bool fits_sum(const PrimExpr& want, const PrimExpr& got) {
    const PrimVarNode* unknown = nullptr;
    relay::visit_symbols(want, [&](const PrimVarNode* symbol) { unknown = symbol; });
    if (unknown == nullptr) return !arith::is_unequal(want, got);
    const arith::Solution solution = arith::solve_for(unknown, want, got);
    if (solution.value && as_int(solution.value)) sizes_.emplace(unknown, solution.value);
    return !solution.is_none;
  }

  std::unordered_map<const PrimVarNode*, PrimExpr> sizes_;
  bool has_sums_ = false;
};

}  // namespace

void check_arguments(const relay::FunctionNode& function, const std::vector<Type>& given) {
  Sizes sizes;
  bool all_known = false;
  for (size_t before = 0;; before = sizes.count(), all_known = true) {
    for (size_t i = 0; i < given.size(); ++i) {
      const relay::VarNode& param = *function.params[i].get();
      if (!sizes.fits(param.type_annotation, given[i], all_known))
        throw_user_error("argument {} ('{}'): expected {}{}, got {}", i, param.name_hint,
                         to_string(param.type_annotation), sizes.show(param.type_annotation), to_string(given[i]));
    }
    if (!sizes.has_sums() || (all_known && sizes.count() == before)) return;
  }
}

}  // namespace headrace::interp
