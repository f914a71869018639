#include "passes/scale/forward_fold_scale_axis.h"

#include <algorithm>
#include <unordered_set>

#include "arith/canonical.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
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

// Returns the axis along which an op with weights reads its data's channels.
std::optional<WeightAxis> conv_input_axis(const CallNode& call) {
  const auto& attrs = call.attrs_as<ops::ConvAttrs>();
  const ops::ConvForm form = ops::conv_form(attrs);
  const auto* weights = relay::tensor_type_of(call.args[1]);
  const size_t rank = form.letters.size();
  if (weights == nullptr || weights->shape.size() != rank) return std::nullopt;
  const size_t channels = form.data_layout.find('C');
  const size_t inputs = form.kernel_layout.find('I'), outputs = form.kernel_layout.find('O');
  if (attrs.groups == 1) return WeightAxis{channels, inputs, rank};
  // Depthwise: one output of each input.
  const bool is_depthwise = is_int(weights->shape[outputs], attrs.groups) && is_int(weights->shape[inputs], 1);
  return is_depthwise && !attrs.transposed ? std::optional(WeightAxis{channels, outputs, rank}) : std::nullopt;
}

std::optional<WeightAxis> input_axis(const CallNode& call, size_t data_rank) {
  if (relay::is_call(call, op::kDense)) return WeightAxis{data_rank - 1, 1, 2};
  if (!relay::is_call(call, op::kMatmul)) return is_plain_conv(call) ? conv_input_axis(call) : std::nullopt;
  const auto& attrs = call.attrs_as<ops::MatmulAttrs>();
  return WeightAxis{data_rank - (attrs.transpose_a ? 2 : 1), attrs.transpose_b ? size_t{1} : size_t{0}, 2};
}

bool adds_to_it(const CallNode& call) {
  return relay::is_call_of_any(call, {&op::kAdd, &op::kSubtract, &op::kBiasAdd});
}

// Returns whether the result of the call has as many indices of the scale's axis as its first argument.
bool keeps_axis(const CallNode& call, const Scale& scale) {
  const auto *from = relay::tensor_type_of(call.args[0]), *to = relay::tensor_type_of(ref(&call));
  if (from == nullptr || to == nullptr) return false;
  return scale.is_uniform() || (to->shape.size() == scale.rank && from->shape.size() == scale.rank &&
                                arith::is_equal(from->shape[scale.axis], to->shape[scale.axis]));
}

// A scale on its way: the multiplication it comes from, and where it goes.
struct Moved {
  Expr product;
  Scale scale;
  size_t axis = 0, rank = 0;  // axis of the channels in the scaled value, and its rank

  // Returns the factor, given the rewritten `factors`.
  Expr factor(const Expr& factors) const {
    Scale now = scale;
    now.factors = factors;
    return now.along(axis, rank);
  }
};

// The change of one argument, in the order in which scales came.
struct Change {
  size_t arg = 1;
  Expr constant;             // the new argument, if it and all scales so far are constant
  std::vector<Moved> moved;  // the other scales
};

class ForwardFolder {
 public:
  ForwardFolder(const Expr& body, const ScaleRules& rules, const Effects& effects)
      : rules_(rules), effects_(effects), body_(body) {
    relay::post_order(body, [&](const Expr& user) {
      const std::vector<Expr> children = relay::children_of(user);
      const auto* call = user.as<CallNode>();
      const bool is_op_call = call != nullptr && call->as_op() != nullptr;
      for (size_t i = 0; i < children.size(); ++i)
        uses_[children[i].object()].push_back(is_op_call && i > 0 ? Use{call, i - 1} : Use{});
    });
  }

  Expr run() {
    relay::post_order(body_, relay::is_entered, [&](const Expr& e) { fold(e); });
    if (dropped_.empty()) return body_;
    return relay::rewrite_post_order(body_, relay::is_entered,
                                     [&](const Expr& before, const Expr& after) { return rebuilt(before, after); });
  }

 private:
  // A call that reads a value, and the argument's number; null for another reader.
  struct Use {
    const CallNode* call = nullptr;
    size_t arg = 0;
  };
  // Where the ways from a product lead.
  struct Ways {
    std::unordered_set<const Object*> through;  // values that lose the scale, the product included
    std::vector<const CallNode*> readers, additions;
  };

  void fold(const Expr& expr) {
    const auto* call = expr.as<CallNode>();
    const auto* type = relay::tensor_type_of(expr);
    const bool is_product = call != nullptr && relay::is_call(*call, op::kMultiply);
    if (!is_product || type == nullptr || !type->dtype.is_float()) return;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const Expr &factors = call->args[side], &data = call->args[1 - side];
      const bool may_move = factors.is<ConstantNode>() || (rules_.with_variables && !effects_.of(factors));
      if (!may_move || !relay::same_type(expr->checked_type(), data->checked_type())) continue;
      const auto scale = read_scale(factors, relay::tensor_type_of(factors), type->shape.size());
      if (!scale || !move(expr, *scale)) continue;
      dropped_.emplace(expr.object(), side);
      return;
    }
  }

  // Moves the scale into weights; false, with nothing changed, where it cannot all go there.
  bool move(const Expr& product, const Scale& scale) {
    const auto ways = find_ways(product, scale);
    if (!ways) return false;
    std::unordered_map<const CallNode*, Change> changes;
    for (const CallNode* reader : ways->readers) {
      const WeightAxis where = *input_axis(*reader, scale.rank);
      if (!add_change(changes, *reader, 1, {product, scale, where.weight_axis, where.weight_rank})) return false;
    }
    for (const CallNode* addition : ways->additions) {
      const bool is_vector = relay::is_call(*addition, op::kBiasAdd);
      const size_t arg = ways->through.contains(addition->args[0].object()) ? 1 : 0;
      const Moved moved{product, scale, is_vector ? 0 : scale.axis, is_vector ? 1 : scale.rank};
      if (!add_change(changes, *addition, arg, moved)) return false;
    }
    for (auto& [call, change] : changes) changes_.insert_or_assign(call, std::move(change));
    return true;
  }

  // Returns everything that the product reaches, or nothing when the product itself is needed.
  std::optional<Ways> find_ways(const Expr& product, const Scale& scale) const {
    Ways ways;
    ways.through.insert(product.object());
    struct Pending {
      const Object* value;
      AddedConstants added;
    };
    std::vector<Pending> pending{{product.object(), {}}};
    size_t count = 0;
    while (!pending.empty()) {
      const auto [value, added] = pending.back();
      pending.pop_back();
      const auto uses = uses_.find(value);
      if (value == body_.object() || uses == uses_.end()) return std::nullopt;
      for (const Use& use : uses->second) {
        if (use.call == nullptr || ++count > kMostScaledCalls) return std::nullopt;
        if (reads(use, scale)) {
          ways.readers.push_back(use.call);
        } else if (!passes(use, scale)) {
          return std::nullopt;
        } else if (ways.through.insert(use.call).second) {
          pending.push_back({use.call, added});
          if (!pending.back().added.pass(*use.call, use.arg, AddedConstants::Direction::to_result)) return std::nullopt;
          if (adds_to_it(*use.call)) ways.additions.push_back(use.call);
        } else {
          return std::nullopt;  // the product is both operands, or the same operand twice
        }
      }
    }
    return ways.readers.empty() ? std::nullopt : std::optional(std::move(ways));
  }

  static bool reads(const Use& use, const Scale& scale) {
    const auto where = use.arg == 0 ? input_axis(*use.call, scale.rank) : std::nullopt;
    return where && is_along(scale, *where, relay::tensor_type_of(use.call->args[1]));
  }

  bool passes(const Use& use, const Scale& scale) const {
    const CallNode& call = *use.call;
    const Expr& data = call.args[use.arg];
    if (!relay::is_call(call, op::kMultiply) && !adds_to_it(call))
      return use.arg == 0 && keeps_axis(call, scale) && commutes(call, scale);
    // A tensor that is broadcast has fewer channels than there are factors.
    if (!call.has_checked_type() || !relay::same_type(call.checked_type(), data->checked_type())) return false;
    if (relay::is_call(call, op::kMultiply)) return true;
    const Expr& added = call.args[1 - use.arg];
    if (!scale.is_invertible() || !(rules_.with_variables || added.is<ConstantNode>())) return false;
    if (relay::is_call(call, op::kBiasAdd)) {
      const size_t axis = ops::normal_axis(call.attrs_as<ops::BiasAddAttrs>().axis, scale.rank);
      return use.arg == 0 && (scale.is_uniform() || axis == scale.axis);
    }
    const auto* type = relay::tensor_type_of(added);
    const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
    const auto axis = shape ? varying_axis(*shape, scale.rank) : std::nullopt;
    return axis && (*axis == scale.rank || scale.is_uniform() || *axis == scale.axis);
  }

  // Plans that the call's argument is also multiplied, or divided, by the scale; returns false when that is not
  // possible.
  bool add_change(std::unordered_map<const CallNode*, Change>& changes, const CallNode& call, size_t arg,
                  const Moved& moved) const {
    const auto known = changes_.find(&call);
    Change change = known == changes_.end() ? Change{arg, call.args[arg], {}} : known->second;
    if (change.arg != arg) return false;
    const bool folds = change.constant.is<ConstantNode>() && moved.scale.values;
    if (folds) change.constant = combined(call, change.constant, moved.factor(moved.scale.factors));
    if (!folds && !rules_.with_variables) return false;
    if (!folds) change.moved.push_back(moved);
    return change.constant && changes.emplace(&call, std::move(change)).second;
  }

  // Added operands are divided, weights are multiplied.
  Expr combined(const CallNode& call, const Expr& arg, const Expr& factor) const {
    return adds_to_it(call) ? rules_.divided(arg, factor) : rules_.multiplied(arg, factor);
  }

  // Rebuilds a node; `before` is the node that was planned for, `after` has the rewritten operands.
  Expr rebuilt(const Expr& before, const Expr& after) {
    if (const auto dropped = dropped_.find(before.object()); dropped != dropped_.end()) {
      const auto* product = after.as<CallNode>();
      factors_.emplace(before, product->args[dropped->second]);
      return product->args[1 - dropped->second];
    }
    const auto* call = before.as<CallNode>();
    const auto found = call == nullptr ? changes_.end() : changes_.find(call);
    if (found == changes_.end()) return after;
    const Change& change = found->second;
    const bool is_constant = change.constant.is<ConstantNode>();
    Expr arg = is_constant ? change.constant : after.as<CallNode>()->args[change.arg];
    for (const Moved& moved : change.moved) arg = combined(*call, arg, moved.factor(factors_.at(moved.product)));
    return copy_with(*after.as<CallNode>(), [&](CallNode& copy) { copy.args.set(change.arg, arg); });
  }

  const ScaleRules& rules_;
  const Effects& effects_;
  Expr body_;
  std::unordered_map<const Object*, std::vector<Use>> uses_;
  std::unordered_map<const Object*, size_t> dropped_;  // products, and which operand their factors were
  std::unordered_map<const CallNode*, Change> changes_;
  std::unordered_map<Expr, Expr> factors_;  // factors of products that were dropped, as rewritten
};

}  // namespace

IRModule forward_fold_scale_axis(const IRModule& module, const pass::PassContext& context, bool with_variables) {
  const ScaleRules rules{context, with_variables};
  const Effects effects = with_variables ? Effects(module, true) : Effects();
  return rewrite_bodies(module, [&](const Expr& body) { return ForwardFolder(body, rules, effects).run(); });
}

}  // namespace headrace::passes
