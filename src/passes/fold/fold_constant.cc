#include "passes/fold/fold_constant.h"

#include <cmath>
#include <unordered_set>

#include "ops/call_fusion.h"
#include "passes/fold/evaluate.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

// What the reference interpreter computes even where the context has an evaluator: results of so many bytes, in so many
// steps. (A step takes it some 10 ns; a compile some 40 ms.)
constexpr size_t kMaxInterpretedBytes = size_t{1} << 20;
constexpr double kMaxInterpretedSteps = 4e6;

// Results of more bytes stay calls when they have kGrowth times the bytes of what they are made of: those of ops that
// only repeat elements, those of all others. The latter is what a compile may add to a file without anybody asking.
constexpr size_t kMaxRepeatedBytes = size_t{64} << 10, kMaxComputedBytes = size_t{16} << 20, kGrowth = 8;
// Larger results are no part of what is computed at compile time.
constexpr size_t kMaxOperandBytes = size_t{64} << 20;

bool only_repeats(const OpNode& op) {
  constexpr std::string_view kOps[] = {"zeros", "ones", "full", "broadcast_to", "tile", "repeat", "arange"};
  return std::find(std::begin(kOps), std::end(kOps), op.name) != std::end(kOps);
}

struct Size {
  double elements = 0;
  size_t bytes = 0;
};

// Of a tensor, or of all items of a tuple, where the type is known and static; what is not counts nothing.
Size size_of(const Expr& expr) {
  Size size;
  if (!expr->has_checked_type()) return size;
  for (const Type& leaf : leaves_of(expr->checked_type())) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
    if (!shape) continue;
    size.elements += static_cast<double>(num_elements(*shape));
    size.bytes += static_cast<size_t>(num_elements(*shape)) * tensor->dtype.bytes();
  }
  return size;
}

// About how many elements the interpreter computes or reads for a call that is typed. The product of (m, k) and (k, n)
// takes m * k * n, the root of the product of the three sizes; that is near enough for a convolution.
double interpreter_steps(const Expr& typed) {
  const auto& call = *typed.as<CallNode>();
  double largest = size_of(typed).elements;
  if (call.args.size() > 1 && ops::fusion_kind_of(call) == ops::FusionKind::anchor)
    return std::sqrt(largest * size_of(call.args[0]).elements * size_of(call.args[1]).elements);
  for (const Expr& arg : call.args) largest = std::max(largest, size_of(arg).elements);
  return largest;
}

Expr fold_shape_of(const Expr& before, const CallNode& call) {
  const auto* data = before.as<CallNode>();
  if (data == nullptr || data->args.empty() || !data->args[0]->has_checked_type()) return {};
  const auto* type = data->args[0]->checked_type().as<TensorTypeNode>();
  const auto* result = before->has_checked_type() ? before->checked_type().as<TensorTypeNode>() : nullptr;
  const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
  if (!shape || result == nullptr) return {};
  NDArray value = NDArray::empty({static_cast<int64_t>(shape->size())}, result->dtype);
  for (size_t i = 0; i < shape->size(); ++i) set_element_int(value.tensor(), static_cast<int64_t>(i), (*shape)[i]);
  return relay::make_constant(value, call.span);
}

// What is an operand, by itself or in a tuple, of a call that computes no operands where it reads them: a convolution.
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

class Folder {
 public:
  Folder(const Expr& root, const pass::PassContext& context)
      : context_(context), apart_(operands_that_stay_apart(root)) {}

  Expr fold(const Expr& before, const Expr& after) {
    if (const auto* call = after.as<CallNode>()) return fold_call(before, after, *call);
    const auto* item = after.as<TupleGetItemNode>();
    const auto* tuple = item == nullptr ? nullptr : item->tuple.as<TupleNode>();
    const bool inside = tuple != nullptr && item->index >= 0 && static_cast<size_t>(item->index) < tuple->items.size();
    return inside ? tuple->items[static_cast<size_t>(item->index)] : after;
  }

 private:
  Expr fold_call(const Expr& before, const Expr& after, const CallNode& call) {
    const OpNode* op = call.as_op();
    if (op == nullptr) return after;
    if (op->name == "shape_of") {
      if (Expr folded = fold_shape_of(before, call)) return folded;
    }
    if (!may_evaluate(*op)) return after;
    size_t source_bytes = 0;
    for (const Expr& arg : call.args) {
      const auto bytes = source_bytes_of(arg);
      if (!bytes) return after;
      source_bytes += *bytes;
    }
    const size_t bytes = size_of(before).bytes;
    const size_t most = only_repeats(*op) ? kMaxRepeatedBytes : kMaxComputedBytes;
    if (bytes > most && bytes / kGrowth > source_bytes && !apart_.contains(before.object())) {
      if (bytes <= kMaxOperandBytes) kept_.emplace(after.object(), Kept{after, source_bytes});
      return after;
    }
    const Expr value = evaluate_closed(after, evaluator_for(before));
    return value ? value : after;
  }

  // Null: the interpreter.
  pass::ConstantEvaluator* evaluator_for(const Expr& call) const {
    const bool is_tensor = call->has_checked_type() && call->checked_type().is<TensorTypeNode>();
    const bool is_large =
        is_tensor && (size_of(call).bytes > kMaxInterpretedBytes || interpreter_steps(call) > kMaxInterpretedSteps);
    return is_large ? context_.evaluator.get() : nullptr;
  }

  // Bytes of the constants that an operand is made of; nothing for what depends on more than constants.
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

  const pass::PassContext& context_;
  std::unordered_set<const Object*> apart_;
  // Calls of constants that stay.
  struct Kept {
    Expr call;
    size_t source_bytes = 0;
  };
  std::unordered_map<const Object*, Kept> kept_;
};

}  // namespace

Expr fold_constant(const Expr& expr, const pass::PassContext& context) {
  Folder folder(expr, context);
  return relay::rewrite_post_order(expr,
                                   [&](const Expr& before, const Expr& after) { return folder.fold(before, after); });
}

IRModule fold_constant(const IRModule& module, const pass::PassContext& context) {
  // Reads too: an item taken out of its tuple would be read after what is written in between.
  const Effects effects(module, true);
  return rewrite_bodies(module, [&](const Expr& body) {
    Folder folder(body, context);
    return relay::rewrite_post_order(body, [&](const Expr& before, const Expr& after) {
      return effects.of(before) ? after : folder.fold(before, after);
    });
  });
}

}  // namespace headrace::passes
