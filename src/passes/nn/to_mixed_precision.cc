#include "passes/nn/to_mixed_precision.h"

#include <cmath>
#include <unordered_set>

#include "ir/type_parts.h"
#include "ops/tensor/elementwise.h"
#include "passes/nn/precision_lists.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/form_rewriter.h"
#include "passes/rewrite/references.h"
#include "relay/call_attr.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"
#include "tensor/convert_number.h"

namespace headrace::passes {

using relay::CallNode;
using relay::LetNode;

namespace {

bool is_float32(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor != nullptr && tensor->dtype == DataType::float_(32);
}
bool is_float32(const Expr& expr) { return expr->has_checked_type() && is_float32(expr->checked_type()); }

struct Precision {
  bool is_small = false;  // float32 parts are of the small type

  bool is_as_written() const { return !is_small; }
  bool operator==(const Precision&) const = default;
};
constexpr Precision kSmall{.is_small = true};

class Shrinker final : FormRewriter<Precision> {
 public:
  explicit Shrinker(const MixedPrecisionOptions& options) : options_(options) {}

  // Rewrites a body; with `keeps_type` its result keeps its type.
  Expr run(const Expr& body, bool keeps_type) {
    rewrite(body);
    return keeps_type ? as_written(body) : as_it_became(body);
  }

 private:
  bool is_small(const Expr& expr) const { return at(expr).form.is_small; }

  // Returns whether a cast of the operand costs no more than reading it: a constant's folds, and a parameter has no
  // other form. What a let binds is small or not as its value is.
  bool is_free_to_cast(const Expr& expr) const {
    return expr.is<relay::ConstantNode>() || (expr.is<relay::VarNode>() && !is_let_bound(expr));
  }

  Expr change(const Expr& expr, const Stored& stored, const Precision& form) override {
    return form.is_small ? ops::cast(stored.expr, options_.type, expr->span)
                         : widened(stored.expr, expr->checked_type(), expr->span);
  }

  Type annotation_in(const Type& type, const Precision&) override {
    const auto small = [this](const Type& part) -> Type {
      return is_float32(part) ? make_tensor_type(part.as<TensorTypeNode>()->shape, options_.type) : part;
    };
    return is_float32(type) ? small(type)
                            : map_type_children(type, small);  // a small type is a tensor or a call's tuple
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

  // Returns the result of a body without casts: the items of a tuple literal, and of tuples in it, each as rewritten.
  Expr as_it_became(const Expr& body) {
    std::vector<Expr> lets;
    Expr tail = body;
    for (const LetNode* let = tail.as<LetNode>(); let != nullptr; let = tail.as<LetNode>()) {
      lets.push_back(tail);
      tail = let->body;
    }
    std::unordered_map<const Object*, Expr> became;
    const auto enter = [](const Expr& expr) { return expr.is<relay::TupleNode>(); };
    relay::post_order(tail, enter, [&](const Expr& expr) {
      Expr& result = became[expr.object()] = at(expr).expr;
      const auto* tuple = expr.as<relay::TupleNode>();
      if (tuple == nullptr) return;
      Array<Expr> items;
      for (const Expr& item : tuple->items) items.push_back(became.at(item.object()));
      result = relay::make_tuple(items, expr->span);
    });
    Expr result = became.at(tail.object());
    for (size_t i = lets.size(); i-- > 0;) result = let_around(lets[i], result);
    return result;
  }

  Expr as_small(const Expr& expr) { return is_float32(expr) ? in_form(expr, kSmall) : at(expr).expr; }

  std::optional<Stored> convert(const Expr& e) override {
    const auto* call = e.as<CallNode>();
    if (call != nullptr && call->as_op() != nullptr && runs_small(*call)) return Stored{small_call(*call), kSmall};
    if (const auto* item = e.as<relay::TupleGetItemNode>(); item != nullptr && is_small(item->tuple))
      return Stored{relay::with_children(e, {at(item->tuple).expr}), {.is_small = is_float32(e)}};
    return std::nullopt;
  }

  // Returns the tensors that a call takes, those of tuple literals one by one.
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
    if (kind == PrecisionCategory::never || has_bound_beyond(call, options_.type)) return false;
    bool has_small = false;
    for (const Expr& operand : operands_of(call)) {
      const bool operand_is_small = is_small(operand);
      if (!operand_is_small && !is_float32(operand) && operand->checked_type().is<TupleTypeNode>()) return false;
      if (kind == PrecisionCategory::follow && is_float32(operand) && !operand_is_small && !is_free_to_cast(operand))
        return false;
      has_small |= operand_is_small || (is_float32(operand) && operand.is<relay::VarNode>());
      if (kind == PrecisionCategory::always && !is_float32(operand)) return false;
    }
    return kind == PrecisionCategory::always || has_small;
  }

  // A bound of clip that is infinite in the small type would let through what it was to cut off.
  static bool has_bound_beyond(const CallNode& call, DataType type) {
    const auto* clip = call.attrs.as<ops::ClipAttrs>();
    const auto is_beyond = [&](double bound) { return std::isfinite(bound) && std::isinf(round_number(bound, type)); };
    return clip != nullptr && (is_beyond(clip->a_min) || is_beyond(clip->a_max));
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
      copy.attrs = with_small_result(call);
    });
  }

  // Says by the attribute out_dtype, where the op has one that is a dtype, that the result has the operands' type.
  Attrs with_small_result(const CallNode& call) const {
    constexpr const char* kOutDtype = "out_dtype";
    const std::optional<Value> old = relay::find_call_attr(call, kOutDtype);
    const bool is_dtype = old && (old->is_none() || old->type_index() == type_index::kDataType);
    return is_dtype ? relay::with_call_attr(call, kOutDtype, Value(options_.type)) : call.attrs;
  }

  MixedPrecisionOptions options_;
};

}  // namespace

MixedPrecisionOptions mixed_precision_options(const pass::PassContext& context) {
  constexpr const char* kType = "relay.ToMixedPrecision.mixed_precision_type";
  constexpr const char* kMode = "relay.ToMixedPrecision.missing_op_mode";
  MixedPrecisionOptions options;
  const std::string type = context.option<std::string>(kType).value_or("float16");
  if (type != "float16" && type != "bfloat16" && type != "float64")
    throw_user_error("{} must be \"float16\", \"bfloat16\" or \"float64\", got \"{}\"", kType, type);
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
