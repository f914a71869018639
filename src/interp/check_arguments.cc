#include "interp/check_arguments.h"

namespace headrace::interp {

namespace {

// The sizes of one call's symbols, as the arguments tell them.
class Sizes {
 public:
  // Sums and products of symbols are looked at when `all_known`, which is asked for where they were met.
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

  // " with n = 2" of the symbols that the type has and that are known.
  std::string show(const Type& type) const {
    const auto* tensor = type.as<TensorTypeNode>();
    std::vector<std::string> known;
    for (size_t i = 0; tensor != nullptr && i < tensor->shape.size(); ++i) {
      const auto* symbol = tensor->shape[i].as<PrimVarNode>();
      const auto at = symbol == nullptr ? sizes_.end() : sizes_.find(symbol);
      if (at != sizes_.end()) known.push_back(fmt::format("{} = {}", symbol->name_hint, to_string(at->second)));
    }
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
    const auto value = all_known ? as_int(substitute(want, sizes_)) : std::nullopt;
    return !value || *value == *size;
  }

  std::unordered_map<const PrimVarNode*, PrimExpr> sizes_;
  bool has_sums_ = false;
};

}  // namespace

void check_arguments(const relay::FunctionNode& function, const std::vector<Type>& given) {
  Sizes sizes;
  for (const bool all_known : {false, true}) {
    if (all_known && !sizes.has_sums()) return;
    for (size_t i = 0; i < given.size(); ++i) {
      const relay::VarNode& param = *function.params[i].get();
      if (!sizes.fits(param.type_annotation, given[i], all_known))
        throw_user_error("argument {} ('{}'): expected {}{}, got {}", i, param.name_hint,
                         to_string(param.type_annotation), sizes.show(param.type_annotation), to_string(given[i]));
    }
  }
}

}  // namespace headrace::interp
