#include "passes/nn/to_mixed_precision.h"

#include <unordered_set>

#include "ops/attrs_copy.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/tensor/elementwise.h"
#include "passes/nn/precision_lists.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/references.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::LetNode;

namespace {

bool is_float32(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor != nullptr && tensor->dtype == DataType::float_(32);
}
bool is_float32(const Expr& expr) { return expr->has_checked_type() && is_float32(expr->checked_type()); }

class Shrinker {
 public:
  explicit Shrinker(const MixedPrecisionOptions& options) : options_(options) {}

  // `keeps_type`: the result is of the type it was of.
  Expr run(const Expr& body, bool keeps_type) {
    relay::post_order(body, relay::is_entered, [&](const Expr& e) {
      if (const auto* let = e.as<LetNode>()) let_values_.emplace(let->var.object(), let->value);
    });
    relay::post_order(body, relay::is_entered, [&](const Expr& e) { done_.emplace(e.object(), convert(e)); });
    return keeps_type ? as_written(body) : as_it_became(body);
  }

 private:
  // What an expression became; when it is small, its float32 parts are of the small type.
  struct Stored {
    Expr expr;
    bool is_small = false;
    Expr as_written, as_small;  // casts, made when first asked for
  };

  Stored& at(const Expr& expr) { return done_.at(expr.object()); }

  Expr as_written(const Expr& expr) {
    Stored& stored = at(expr);
    if (!stored.is_small) return stored.expr;
    if (!stored.as_written) stored.as_written = widened(stored.expr, expr->checked_type(), expr->span);
    return stored.as_written;
  }

  static Expr widened(const Expr& small, const Type& type, const Span& span) {
    const auto* tuple = type.as<TupleTypeNode>();
    if (tuple == nullptr) return is_float32(type) ? ops::cast(small, DataType::float_(32), span) : small;
    Array<Expr> items;
    for (size_t i = 0; i < tuple->items.size(); ++i) {
      const Expr item = relay::make_tuple_get_item(small, static_cast<int64_t>(i), span);
      items.push_back(is_float32(tuple->items[i]) ? ops::cast(item, DataType::float_(32), span) : item);
    }
    return relay::make_tuple(items, span);
  }

  // The result of a body: a tuple literal's items each as they became.
  Expr as_it_became(const Expr& body) {
    std::vector<Expr> lets;
    Expr tail = body;
    for (const LetNode* let = tail.as<LetNode>(); let != nullptr; let = tail.as<LetNode>()) {
      lets.push_back(tail);
      tail = let->body;
    }
    const auto* tuple = tail.as<relay::TupleNode>();
    Expr result = at(tail).expr;
    if (tuple != nullptr) {
      Array<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(at(item).expr);
      result = relay::make_tuple(items, tail->span);
    }
    for (size_t i = lets.size(); i-- > 0;) result = let_around(lets[i], result);
    return result;
  }

  Expr as_small(const Expr& expr) {
    Stored& stored = at(expr);
    if (stored.is_small || !is_float32(expr)) return stored.expr;
    if (!stored.as_small) stored.as_small = ops::cast(stored.expr, options_.type, expr->span);
    return stored.as_small;
  }

  Stored convert(const Expr& e) {
    if (!relay::is_entered(e)) return {e, false, {}, {}};
    const auto* call = e.as<CallNode>();
    if (call != nullptr && call->as_op() != nullptr && runs_small(*call)) return {small_call(*call), true, {}, {}};
    if (const auto* item = e.as<relay::TupleGetItemNode>(); item != nullptr && at(item->tuple).is_small)
      return {relay::with_children(e, {at(item->tuple).expr}), is_float32(e), {}, {}};
    if (e.is<relay::VarNode>()) return convert_var(e);
    if (const auto* let = e.as<LetNode>()) return convert_let(e, *let);
    std::vector<Expr> children = relay::children_of(e);
    for (Expr& child : children) child = as_written(child);
    return {relay::with_children(e, children), false, {}, {}};
  }

  // The tensors that a call takes, those of tuple literals one by one.
  static std::vector<Expr> operands_of(const CallNode& call) {
    std::vector<Expr> operands;
    for (const Expr& arg : call.args) {
      const auto* tuple = arg.as<relay::TupleNode>();
      if (tuple == nullptr) operands.push_back(arg);
      if (tuple != nullptr) operands.insert(operands.end(), tuple->items.begin(), tuple->items.end());
    }
    return operands;
  }

  bool runs_small(const CallNode& call) {
    if (!gives_float32(call)) return false;
    const PrecisionCategory kind = category_of(call);
    if (kind == PrecisionCategory::never) return false;
    bool has_small = false;
    for (const Expr& operand : operands_of(call)) {
      const bool is_small = at(operand).is_small;
      if (!is_small && !is_float32(operand) && operand->checked_type().is<TupleTypeNode>()) return false;
      if (kind == PrecisionCategory::follow && is_float32(operand) && !is_small && !operand.is<relay::ConstantNode>())
        return false;
      has_small |= is_small;
      if (kind == PrecisionCategory::always && !is_float32(operand)) return false;
    }
    return kind == PrecisionCategory::always || has_small;
  }

  PrecisionCategory category_of(const CallNode& call) const {
    const auto category = precision_category(ref(&call), options_.type);
    if (!category && options_.refuses_missing)
      throw_at(call.span, call.as_op()->name,
               fmt::format("ToMixedPrecision knows nothing of {}, and missing_op_mode is 0; say what it may do by "
                           "register_mixed_precision_conversion, or allow such ops by the mode 1",
                           call.as_op()->name));
    return category.value_or(PrecisionCategory::never);
  }

  static bool gives_float32(const CallNode& call) {
    const auto* tuple = call.checked_type().as<TupleTypeNode>();
    if (tuple == nullptr) return is_float32(call.checked_type());
    return std::all_of(tuple->items.begin(), tuple->items.end(), [](const Type& item) { return is_float32(item); });
  }

  Expr small_call(const CallNode& call) {
    Array<Expr> args;
    for (const Expr& arg : call.args) {
      const auto* tuple = arg.as<relay::TupleNode>();
      if (tuple == nullptr) {
        args.push_back(as_small(arg));
        continue;
      }
      Array<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(as_small(item));
      args.push_back(relay::make_tuple(items, arg->span));
    }
    return copy_with(call, [&](CallNode& copy) {
      copy.args = args;
      copy.attrs = without_out_dtype(call.attrs);
    });
  }

  // The result is of the operands' type.
  static Attrs without_out_dtype(const Attrs& attrs) {
    const auto cleared = [](const auto* typed) {
      using T = std::remove_cvref_t<decltype(*typed)>;
      return Attrs(ops::copy_of_own_type(*typed, [](T& copy) { copy.out_dtype.reset(); }));
    };
    if (const auto* conv = attrs.as<ops::ConvAttrs>()) return cleared(conv);
    if (const auto* dense = attrs.as<ops::DenseAttrs>()) return cleared(dense);
    if (const auto* matmul = attrs.as<ops::MatmulAttrs>()) return cleared(matmul);
    if (const auto* matmul = attrs.as<ops::BatchMatmulAttrs>()) return cleared(matmul);
    return attrs;
  }

  // A variable is as its value is.
  Stored convert_var(const Expr& e) {
    const auto let = let_values_.find(e.object());
    const auto value = let == let_values_.end() ? done_.end() : done_.find(let->second.object());
    if (value == done_.end() || !value->second.is_small) return {e, false, {}, {}};
    return {relay::make_var(e.as<relay::VarNode>()->name_hint, {}, e->span), true, {}, {}};
  }

  Stored convert_let(const Expr& e, const LetNode& let) {
    const Stored& body = at(let.body);
    return {let_around(e, body.expr), body.is_small, {}, {}};
  }

  // The let `e` with its variable and value as they became, around `body`.
  Expr let_around(const Expr& e, const Expr& body) {
    const LetNode& let = *e.as<LetNode>();
    const Stored& var = at(let.var);
    const Expr value = var.is_small ? at(let.value).expr : as_written(let.value);
    if (value == let.value && body == let.body) return e;
    return relay::make_let(var.expr.cast<relay::VarNode>(), value, body, e->span);
  }

  MixedPrecisionOptions options_;
  std::unordered_map<const Object*, Expr> let_values_;
  std::unordered_map<const Object*, Stored> done_;
};

}  // namespace

MixedPrecisionOptions mixed_precision_options(const pass::PassContext& context) {
  constexpr const char* kType = "relay.ToMixedPrecision.mixed_precision_type";
  constexpr const char* kMode = "relay.ToMixedPrecision.missing_op_mode";
  MixedPrecisionOptions options;
  const std::string type = context.option<std::string>(kType).value_or("float16");
  if (type != "float16" && type != "bfloat16")
    throw_user_error("{} must be \"float16\" or \"bfloat16\", got \"{}\"", kType, type);
  options.type = DataType::parse(type);
  const int64_t mode = context.option<int64_t>(kMode).value_or(1);
  if (mode < 0 || mode > 2) throw_user_error("{} must be 0, 1 or 2, got {}", kMode, mode);
  options.refuses_missing = mode == 0;
  options.keeps_result_type =
      context.option<bool>("relay.ToMixedPrecision.keep_orig_output_dtype").value_or(options.keeps_result_type);
  return options;
}

IRModule to_mixed_precision(const IRModule& module, const MixedPrecisionOptions& options) {
  if (options.keeps_result_type)
    return rewrite_bodies(module, [&](const Expr& body) { return Shrinker(options).run(body, true); });
  // Their types are what those that refer to them were typed by.
  const std::unordered_set<std::string> used = referenced_functions(module);
  const IRModule result = snapshot(module);
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<relay::FunctionNode>();
    if (node == nullptr || relay::is_left_alone(*node)) continue;
    const bool keeps_type = used.contains(var->name_hint);
    const Expr body = Shrinker(options).run(node->body, keeps_type);
    const auto change = [&](relay::FunctionNode& copy) {
      copy.body = body;
      if (!keeps_type) copy.ret_type = {};
    };
    result->add_function(var, copy_with(*node, change), true);
  }
  return result;
}

}  // namespace headrace::passes
