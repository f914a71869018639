#include "passes/fold/fold_constant.h"

#include <algorithm>
#include <unordered_set>

#include "ops/call_fusion.h"
#include "ops/op_facts.h"
#include "ops/op_handles.h"
#include "passes/fold/evaluate.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/taken_constants.h"
#include "relay/function_attrs.h"
#include "relay/infer/type_match.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using relay::LetNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

constexpr std::string_view kName = "FoldConstant";

// A larger result stays a call if it also has more than kGrowth times the bytes of its source constants. The first
// limit is for ops that only repeat elements, the second for all others: how much a single fold may add to the
// artifact.
constexpr size_t kMaxRepeatedBytes = size_t{64} << 10, kMaxComputedBytes = size_t{16} << 20, kGrowth = 8;
// Calls of a kept result that is larger than this are not folded: evaluating them would need that result in memory.
constexpr size_t kMaxOperandBytes = size_t{64} << 20;

// Returns the bytes of a tensor, or the sum over the items of a tuple. Tensors of unknown or dynamic type count as 0.
size_t bytes_of(const Expr& expr) {
  size_t bytes = 0;
  if (!expr->has_checked_type()) return bytes;
  for (const Type& leaf : leaves_of(expr->checked_type())) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
    if (!shape) continue;
    bytes += static_cast<size_t>(num_elements(*shape)) * tensor->dtype.bytes();
  }
  return bytes;
}

// Folds shape_of and ndarray_size, which read the shape of their operand alone.
Expr fold_size(const Expr& before, const CallNode& call, const OpNode& op) {
  const auto* data = before.as<CallNode>();
  if (data == nullptr || data->args.empty() || !data->args[0]->has_checked_type()) return {};
  const auto* type = relay::tensor_type_of(data->args[0]);
  const auto* result = relay::tensor_type_of(before);
  const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
  if (!shape || result == nullptr) return {};
  const bool is_shape = op::kShapeOf.is(&op);
  const Shape sizes = is_shape ? *shape : Shape{num_elements(*shape)};
  NDArray value = NDArray::empty(is_shape ? Shape{static_cast<int64_t>(sizes.size())} : Shape{}, result->dtype);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (result->dtype.is_float()) {
      set_element(value.tensor(), static_cast<int64_t>(i), static_cast<double>(sizes[i]));
    } else {
      set_element_int(value.tensor(), static_cast<int64_t>(i), sizes[i]);
    }
  }
  return relay::make_constant(value, call.span);
}

// Returns the branch that a constant condition chooses, where its type is that of the whole; null otherwise.
Expr fold_if(const Expr& before, const relay::IfNode& branch) {
  const auto* condition = branch.cond.as<ConstantNode>();
  if (condition == nullptr || condition->data.num_elements() != 1 || !before->has_checked_type()) return {};
  const bool holds = element_as_double(condition->data.to_dense().tensor(), 0) != 0;
  const Expr& chosen = holds ? branch.true_branch : branch.false_branch;
  const auto* whole = before.as<relay::IfNode>();
  const Expr& typed = holds ? whole->true_branch : whole->false_branch;
  const bool fits = typed->has_checked_type() && relay::same_type(typed->checked_type(), before->checked_type());
  return fits ? chosen : Expr();
}

// Returns whether the call is folded unless evaluating it fails or gives too large a result.
bool is_foldable(const CallNode& call, size_t) {
  const auto is_constant = [](const Expr& arg) { return arg.is<ConstantNode>(); };
  const OpNode* op = call.as_op();
  return op != nullptr && may_evaluate(*op) && std::all_of(call.args.begin(), call.args.end(), is_constant);
}

// Returns the operands, also those inside tuples, of calls that do not compute operands in their own kernels, such as
// convolutions. Such an operand is read from memory in any case.
std::unordered_set<const Object*> operands_that_stay_apart(const Expr& root) {
  std::unordered_set<const Object*> apart;
  relay::post_order(root, [&](const Expr& expr) {
    const auto* call = expr.as<CallNode>();
    if (call == nullptr || ops::fusion_kind_of(*call) <= ops::FusionKind::injective) return;
    for (const Expr& arg : call->args) {
      apart.insert(arg.object());
      const auto* tuple = arg.as<TupleNode>();
      for (size_t i = 0; tuple != nullptr && i < tuple->items.size(); ++i) apart.insert(tuple->items[i].object());
    }
  });
  return apart;
}

// Finds the lets whose values become constants, and substitutes the constants for their variables.
class ConstantLets {
 public:
  explicit ConstantLets(const Expr& root) {
    relay::post_order(root, [&](const Expr& e) {
      const auto* let = e.as<LetNode>();
      if (let == nullptr) return;
      values_of_vars_.emplace(let->var.object(), let->value.object());
      constants_.emplace(let->value.object(), Expr());
    });
  }

  // Returns the replacement of `before`, which was rewritten to `after`: the constant for a variable, the body for a
  // let that is no longer needed. Call in post-order, so that a let's value comes before the uses of its variable.
  Expr replace(const Expr& before, const Expr& after) {
    Expr result = after;
    if (const auto* let = before.as<LetNode>(); let != nullptr && constant_of(let->var)) {
      result = after.as<LetNode>()->body;
    } else if (Expr constant = constant_of(before)) {
      result = constant;
    }
    const auto value = result.is<ConstantNode>() ? constants_.find(before.object()) : constants_.end();
    if (value != constants_.end()) value->second = result;
    return result;
  }

 private:
  // Returns the constant for a variable; null if there is none. Also null if the variable's type is more general than
  // the constant's, because its users may need that type: a reference made of it may later be written with another
  // shape.
  Expr constant_of(const Expr& expr) const {
    const auto value = values_of_vars_.find(expr.object());
    if (value == values_of_vars_.end()) return {};
    const Expr& constant = constants_.at(value->second);
    if (!constant) return {};
    const Type& type = expr->has_checked_type() ? expr->checked_type() : expr.as<relay::VarNode>()->type_annotation;
    return !type || relay::same_type(type, constant.as<ConstantNode>()->tensor_type()) ? constant : Expr();
  }

  std::unordered_map<const Object*, const Object*> values_of_vars_;
  std::unordered_map<const Object*, Expr> constants_;  // by the let's value; null until it becomes a constant
};

class Folder {
 public:
  Folder(const Expr& root, interp::ConstantBudget& budget, const pass::PassContext& context, TakenConstants& taken)
      : budget_(budget), context_(context), taken_(taken), apart_(operands_that_stay_apart(root)), lets_(root) {}

  // `has_effect`: evaluating `before` does more than give a value.
  Expr fold(const Expr& before, const Expr& after, bool has_effect) {
    return lets_.replace(before, has_effect ? after : folded(before, after));
  }

 private:
  Expr folded(const Expr& before, const Expr& after) {
    if (const auto* call = after.as<CallNode>()) return fold_call(before, after, *call);
    if (const auto* branch = after.as<relay::IfNode>()) {
      const Expr chosen = fold_if(before, *branch);
      return chosen ? chosen : after;
    }
    const auto* item = after.as<TupleGetItemNode>();
    const auto* tuple = item == nullptr ? nullptr : item->tuple.as<TupleNode>();
    const bool inside = tuple != nullptr && item->index >= 0 && static_cast<size_t>(item->index) < tuple->items.size();
    return inside ? tuple->items[static_cast<size_t>(item->index)] : after;
  }

  Expr fold_call(const Expr& before, const Expr& after, const CallNode& call) {
    const OpNode* op = call.as_op();
    if (op == nullptr) return after;
    if (op::kShapeOf.is(op) || op::kNdarraySize.is(op)) {
      if (Expr folded = fold_size(before, call, *op)) return folded;
    }
    if (!may_evaluate(*op)) return after;
    const ops::Repeats* repeats = op->find(ops::kRepeats);
    const auto is_type_operand = [&](size_t i) {
      return repeats != nullptr && repeats->type_operand == std::optional(i);
    };
    size_t source_bytes = 0;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto bytes = source_bytes_of(call.args[i]);
      if (!bytes) return after;
      if (!is_type_operand(i)) source_bytes += *bytes;
    }
    const size_t bytes = bytes_of(before);
    const size_t most = repeats != nullptr ? kMaxRepeatedBytes : kMaxComputedBytes;
    if (bytes > most && bytes / kGrowth > source_bytes && !apart_.contains(before.object())) {
      if (bytes <= kMaxOperandBytes) kept_.emplace(after.object(), Kept{after, source_bytes});
      if (repeats == nullptr) note_left(after, "its result would enlarge the artifact too much", context_, kName);
      return after;
    }
    const Expr value = evaluate_closed(taken_.filled(after), budget_, context_, kName);
    if (!value) return after;
    taken_.free_operands(call);
    return value;
  }

  // Returns the bytes of the constants that an operand is computed from; nullopt if it depends on anything else.
  std::optional<size_t> source_bytes_of(const Expr& expr) const {
    if (const auto* constant = expr.as<ConstantNode>()) return constant->data.size_bytes();
    if (const auto kept = kept_.find(expr.object()); kept != kept_.end()) return kept->second.source_bytes;
    const auto* tuple = expr.as<TupleNode>();
    if (tuple == nullptr) return std::nullopt;
    size_t bytes = 0;
    for (const Expr& item : tuple->items) {
      const auto more = item.is<TupleNode>() ? std::nullopt : source_bytes_of(item);
      if (!more) return std::nullopt;
      bytes += *more;
    }
    return bytes;
  }

  interp::ConstantBudget& budget_;
  const pass::PassContext& context_;
  TakenConstants& taken_;
  std::unordered_set<const Object*> apart_;
  ConstantLets lets_;
  // Calls of constants that were not folded, by node.
  struct Kept {
    Expr call;
    size_t source_bytes = 0;
  };
  std::unordered_map<const Object*, Kept> kept_;
};

}  // namespace

Expr fold_constant(const Expr& expr, const pass::PassContext& context) {
  interp::ConstantBudget budget(constant_bytes(expr), context.threads);
  TakenConstants none;
  Folder folder(expr, budget, context, none);
  return relay::rewrite_post_order(expr, relay::is_entered, [&](const Expr& before, const Expr& after) {
    return folder.fold(before, after, false);
  });
}

int64_t program_bytes(const IRModule& module) {
  int64_t bytes = 0;
  for (const auto& [name, function] : module->functions()) bytes += constant_bytes(function);
  return bytes;
}

IRModule fold_constant(IRModule module, const pass::PassContext& context) {
  const int64_t own_bytes = context.option<int64_t>(kProgramBytes).value_or(program_bytes(module));
  interp::ConstantBudget budget(own_bytes, context.threads);
  TakenConstants taken;
  // Reads of references count as effects, too: an item taken out of its tuple could move behind a write.
  const InOrder ordered = in_order(taken.take_from(std::move(module), is_foldable, context));
  return taken.put_back(rewrite_bodies(ordered.module, [&](const Expr& body) {
    Folder folder(body, budget, context, taken);
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      return folder.fold(before, after, ordered.effects.of(before));
    });
  }));
}

}  // namespace headrace::passes
