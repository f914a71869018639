#include "passes/scale/backward_fold_scale_axis.h"

#include <unordered_set>

#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/op_facts.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/scale/channel_scale.h"
#include "relay/function_attrs.h"
#include "relay/infer/type_match.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// How often each node is read and what type it has, kept while nodes are rebuilt: where one read is all, what gives the
// node may change for it.
class KnownNodes {
 public:
  explicit KnownNodes(const Expr& body) {
    counts_[body] = 1;
    relay::post_order(body, [&](const Expr& e) {
      for (const Expr& child : relay::children_of(e)) ++counts_[child];
    });
  }
  bool is_single(const Expr& expr) const {
    const auto count = counts_.find(expr);
    return count != counts_.end() && count->second == 1;
  }
  const TensorTypeNode* type_of(const Expr& expr) const {
    const auto type = types_.find(expr);
    return type == types_.end() ? relay::tensor_type_of(expr) : type->second;
  }
  // Records that `after` replaces `before`.
  void take_over(const Expr& before, const Expr& after) {
    if (after != before) add(after, counts_.at(before), relay::tensor_type_of(before));
  }
  // Records a new node, its number of uses and its type.
  void add(const Expr& expr, int count, const TensorTypeNode* type) {
    counts_[expr] = count;
    types_[expr] = type;
  }

 private:
  std::unordered_map<Expr, int> counts_;
  std::unordered_map<Expr, const TensorTypeNode*> types_;  // types of nodes of the program, which outlive this
};

// A call between a multiplication and weights.
struct Step {
  const CallNode* call = nullptr;
  std::optional<WeightAxis> weights;  // set for an op whose weights are scaled
  std::vector<size_t> data;           // for other ops: the arguments that are scaled when the call is
};

// Returns whether an argument is the weights that a scale may move into.
bool are_weights(const CallNode& call, size_t arg) {
  return arg == 1 && (relay::is_call(call, op::kDense) || relay::is_call(call, op::kMatmul) || is_plain_conv(call));
}

bool is_addition(const CallNode& call) { return relay::is_call_of_any(call, {&op::kAdd, &op::kSubtract}); }

// Returns the axis along which an op with weights writes channels, in a result of `rank` dimensions.
std::optional<WeightAxis> output_axis(const CallNode& call, size_t rank) {
  if (relay::is_call(call, op::kDense)) return WeightAxis{rank - 1, 0, 2};
  if (relay::is_call(call, op::kMatmul))
    return WeightAxis{rank - 1, call.attrs_as<ops::MatmulAttrs>().transpose_b ? size_t{0} : size_t{1}, 2};
  if (!is_plain_conv(call)) return std::nullopt;
  const auto& attrs = call.attrs_as<ops::ConvAttrs>();
  if (attrs.transposed && attrs.groups != 1) return std::nullopt;
  const ops::ConvForm form = ops::conv_form(attrs);
  return WeightAxis{form.out_layout.find('C'), form.kernel_layout.find('O'), form.letters.size()};
}

class ScaleFolder {
 public:
  ScaleFolder(const Expr& body, const ScaleRules& rules, const Effects& effects, TakenConstants& taken)
      : rules_(rules), effects_(effects), taken_(taken), known_(body) {
    relay::post_order(body, relay::is_entered, [&](const Expr& e) {
      if (relay::is_call(e, op::kMultiply)) products_.insert(e.object());
    });
  }

  Expr rewrite(const Expr& before, const Expr& after) {
    const Expr result = products_.contains(before.object()) ? fold(before, *after.as<CallNode>()) : after;
    known_.take_over(before, result);
    return result;
  }

 private:
  // Folds a multiplication; `after` has the operands as rewritten.
  Expr fold(const Expr& before, const CallNode& after) {
    const auto* type = relay::tensor_type_of(before);
    if (type == nullptr || !type->dtype.is_float()) return ref(&after);
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const Expr factors = before.as<CallNode>()->args[side], data = before.as<CallNode>()->args[1 - side];
      const bool may_move = after.args[side].is<ConstantNode>() || (rules_.with_variables && !effects_.of(factors));
      if (!may_move || !relay::same_type(before->checked_type(), data->checked_type())) continue;
      const auto scale = read_scale(after.args[side], relay::tensor_type_of(factors), type->shape.size());
      if (!scale) continue;
      if (Expr scaled = push(after.args[1 - side], *scale)) return scaled;
    }
    return ref(&after);
  }

  // Returns `top` times the scale without an extra multiplication; null when that is not possible.
  Expr push(const Expr& top, const Scale& scale) {
    const std::vector<Step> steps = way_down(top, scale);
    if (steps.empty()) return {};
    std::unordered_map<const Object*, Expr> scaled;
    for (size_t i = steps.size(); i-- > 0;) {
      const Step& step = steps[i];
      const Expr result = step.weights ? with_weights(step, scale) : with_data(step, scale, scaled);
      if (!result) return {};
      scaled.emplace(step.call, result);
    }
    for (const Step& step : steps) {
      taken_.free_operands(*step.call);
      const Expr& result = scaled.at(step.call);
      known_.add(result, 1, known_.type_of(ref(step.call)));
      if (step.weights) known_.add(result.as<CallNode>()->args[1], 1, known_.type_of(step.call->args[1]));
    }
    return scaled.at(top.object());
  }

  // Returns the calls that must change, each before its operands; none when one of them cannot.
  std::vector<Step> way_down(const Expr& top, const Scale& scale) const {
    struct Pending {
      Expr expr;
      AddedConstants added;
    };
    std::vector<Step> steps;
    std::vector<Pending> pending{{top, {}}};
    while (!pending.empty()) {
      const auto [expr, added] = pending.back();
      pending.pop_back();
      const auto* call = expr.as<CallNode>();
      if (call == nullptr || call->as_op() == nullptr || !known_.is_single(expr)) return {};
      Step step{call, output_axis(*call, scale.rank), {}};
      if (step.weights && !is_along(scale, *step.weights, known_.type_of(call->args[1]))) return {};
      if (!step.weights) step.data = data_of(*call, scale);
      if ((!step.weights && step.data.empty()) || steps.size() == kMostScaledCalls) return {};
      for (const size_t side : step.data) {
        pending.push_back({call->args[side], added});
        if (!pending.back().added.pass(*call, side, AddedConstants::Direction::to_operand)) return {};
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

  // Returns whether the call may be one that a scale moves past: from its result to its first argument, which has as
  // many channels.
  bool is_followed(const CallNode& call) const {
    if (call.as_op()->find(ops::kCommutingFactors) == nullptr || call.args.empty()) return false;
    const auto *data = known_.type_of(call.args[0]), *result = known_.type_of(ref(&call));
    return data != nullptr && result != nullptr && relay::same_type(ref(data), ref(result));
  }

  // Returns the arguments that are scaled when the call is; none where its result cannot be scaled so.
  std::vector<size_t> data_of(const CallNode& call, const Scale& scale) const {
    if (is_followed(call)) return commutes(call, scale) ? std::vector<size_t>{0} : std::vector<size_t>{};
    if (relay::is_call(call, op::kBiasAdd)) {
      const size_t axis = ops::normal_axis(call.attrs_as<ops::BiasAddAttrs>().axis, scale.rank);
      return scale.is_uniform() || axis == scale.axis ? std::vector<size_t>{0} : std::vector<size_t>{};
    }
    if (!is_addition(call)) return {};
    std::vector<size_t> data;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const Expr& arg = call.args[side];
      if (is_added(arg, scale)) continue;
      const auto *type = known_.type_of(arg), *sum = known_.type_of(ref(&call));
      // A tensor that is broadcast has fewer channels than there are factors.
      if (type == nullptr || sum == nullptr || !relay::same_type(ref(type), ref(sum))) return {};
      data.push_back(side);
    }
    return data;
  }

  // Returns whether an operand of an addition is multiplied itself: it has one value, or one a channel, and does not
  // come from weights.
  bool is_added(const Expr& arg, const Scale& scale) const {
    const auto* call = arg.as<CallNode>();
    const bool leads_down = call != nullptr && call->as_op() != nullptr &&
                            (output_axis(*call, scale.rank) || is_addition(*call) || is_followed(*call) ||
                             relay::is_call(*call, op::kBiasAdd));
    const auto* type = known_.type_of(arg);
    const auto shape = type == nullptr || leads_down ? std::nullopt : as_shape(type->shape);
    const auto axis = shape ? varying_axis(*shape, scale.rank) : std::nullopt;
    return axis && (rules_.with_variables || arg.is<ConstantNode>()) &&
           (*axis == scale.rank || scale.is_uniform() || *axis == scale.axis);
  }

  // Returns the call of scaled data, with its added operand scaled; null when that is not possible.
  Expr with_data(const Step& step, const Scale& scale, const std::unordered_map<const Object*, Expr>& scaled) const {
    const CallNode& call = *step.call;
    Array<Expr> args = call.args;
    for (const size_t side : step.data) args.set(side, scaled.at(call.args[side].object()));
    const bool adds = !is_followed(call) && step.data.size() == 1;
    if (adds) {
      const size_t side = 1 - step.data[0];
      const bool is_vector = relay::is_call(call, op::kBiasAdd);
      const Expr factors = is_vector ? scale.along(0, 1) : scale.along(scale.axis, scale.rank);
      const Expr added = rules_.multiplied(call.args[side], factors);
      if (!added) return {};
      args.set(side, added);
    }
    return copy_with(call, [&](CallNode& copy) { copy.args = args; });
  }

  Expr with_weights(const Step& step, const Scale& scale) const {
    const Expr factors = scale.along(step.weights->weight_axis, step.weights->weight_rank);
    const Expr weights = rules_.multiplied(step.call->args[1], factors);
    return weights ? copy_with(*step.call, [&](CallNode& copy) { copy.args.set(1, weights); }) : Expr();
  }

  const ScaleRules& rules_;
  const Effects& effects_;
  TakenConstants& taken_;
  KnownNodes known_;
  std::unordered_set<const Object*> products_;  // multiplications that may be folded; those inside units may not
};

}  // namespace

IRModule backward_fold_scale_axis(IRModule module, const pass::PassContext& context, bool with_variables) {
  TakenConstants taken;
  const ScaleRules rules{context, with_variables, &taken};
  const IRModule program = taken.take_from(std::move(module), are_weights, context);
  const Effects effects = with_variables ? Effects(program, true) : Effects();
  return taken.put_back(rewrite_bodies(program, [&](const Expr& body) {
    ScaleFolder folder(body, rules, effects, taken);
    return relay::rewrite_post_order(
        body, relay::is_entered, [&](const Expr& before, const Expr& after) { return folder.rewrite(before, after); });
  }));
}

}  // namespace headrace::passes
