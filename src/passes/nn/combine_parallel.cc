#include "passes/nn/combine_parallel.h"

#include <fmt/ranges.h>

#include <unordered_set>

#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "ops/call_fusion.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/join.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/replace_nodes.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// Where the outputs lie, and the attributes without their number.
struct Product {
  size_t weight_axis = 0;
  size_t out_axis = 0;
  Attrs attrs;
  bool is_batched = false;   // products become the batches of one, not parts of a wider one
  bool copies_data = false;  // each batch reads data of its own, as in Relay
  size_t rank = 0;           // rank of a dense product that becomes wider; else 0
};

struct Kind {
  const OpHandle& op;
  std::optional<Product> (*read)(const CallNode& call);  // nothing: it is not combined
};

std::optional<Product> read_conv2d(const CallNode& call) {
  const auto& attrs = call.attrs_as<ops::Conv2DAttrs>();
  const std::string& out_layout = attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout;
  const size_t outputs = attrs.kernel_layout.find('O'), channels = out_layout.find('C');
  const bool is_plain = attrs.kernel_layout.size() == 4 && out_layout.size() == 4;
  if (attrs.groups != 1 || !is_plain || outputs >= 4 || channels >= 4) return std::nullopt;
  return Product{.weight_axis = outputs, .out_axis = channels, .attrs = copy_with(attrs, [](ops::Conv2DAttrs& a) {
                                                                 a.channels.reset();
                                                               })};
}

std::optional<Product> read_dense(const CallNode& call) {
  const auto shape = relay::known_shape_of(ref(&call));
  if (!shape) return std::nullopt;
  const Attrs attrs = copy_with(call.attrs_as<ops::DenseAttrs>(), [](ops::DenseAttrs& a) { a.units.reset(); });
  return Product{.out_axis = shape->size() - 1, .attrs = attrs, .rank = shape->size()};
}

// Reads a dense product for a batch, which takes data of two dimensions.
template <bool copies_data>
std::optional<Product> read_dense_to_batch(const CallNode& call) {
  auto product = read_dense(call);
  if (!product || product->rank != 2) return product;
  product->is_batched = true;
  product->copies_data = copies_data;
  product->rank = 0;
  return product;
}

std::optional<Product> read_batch_matmul(const CallNode& call) {
  return Product{.weight_axis = call.attrs_as<ops::BatchMatmulAttrs>().transpose_b ? size_t{1} : size_t{2},
                 .out_axis = 2,
                 .attrs = call.attrs};
}

// Sets the number of outputs that a wider product has.
Attrs with_outputs(const Attrs& attrs, int64_t outputs) {
  if (const auto* conv = attrs.as<ops::Conv2DAttrs>())
    return copy_with(*conv, [&](ops::Conv2DAttrs& a) { a.channels = outputs; });
  if (const auto* dense = attrs.as<ops::DenseAttrs>())
    return copy_with(*dense, [&](ops::DenseAttrs& a) { a.units = outputs; });
  return attrs;
}

// One product and what follows it.
struct Branch {
  const CallNode* product = nullptr;
  Expr end;  // the last of its ops that is combined
  int64_t outputs = 0;
};
struct Group {
  Product how;
  std::vector<Branch> branches;
  Expr combined;
};

class Combiner {
 public:
  Combiner(const Expr& body, const Kind& kind, const Effects& effects, int64_t min_branches)
      : kind_(kind), effects_(effects), min_branches_(min_branches), scopes_(relay::find_scopes(body)) {
    collect(body);
    for (Group& group : groups_) {
      if (static_cast<int64_t>(group.branches.size()) >= min_branches_) combine(group);
    }
    result_ = replacements_.empty() ? body : replace_nodes(body, replacements_);
  }
  Expr result() const { return result_; }

 private:
  void collect(const Expr& body) {
    ++num_uses_[body.object()];
    relay::post_order(body, relay::is_entered, [&](const Expr& e) {
      const bool is_product = is_call_of_kind(e);
      bool has_product = is_product;
      for (const Expr& child : relay::children_of(e)) {
        ++num_uses_[child.object()];
        user_[child.object()] = e;
        has_product |= has_product_.contains(child.object());
      }
      if (has_product) has_product_.insert(e.object());
      if (is_product) add(*e.as<CallNode>());
    });
  }

  bool is_call_of_kind(const Expr& e) const {
    const auto* call = e.as<CallNode>();
    return call != nullptr && relay::is_call(*call, kind_.op);
  }

  // Can be evaluated beside the other branches' operands.
  bool can_move(const Expr& operand) const { return !effects_.of(operand) && !has_product_.contains(operand.object()); }

  int scope_of(const Expr& e) const { return scopes_.at(e).scope; }

  void add(const CallNode& call) {
    const auto how = kind_.read(call);
    auto weights = relay::known_shape_of(call.args[1]);
    if (!how || !weights || !relay::known_shape_of(ref(&call)) || !can_move(call.args[1]) || effects_.of(ref(&call)))
      return;
    const int64_t outputs = weights->at(how->weight_axis);
    if (!how->is_batched) weights->erase(weights->begin() + static_cast<std::ptrdiff_t>(how->weight_axis));
    const auto dtype = relay::dtype_of(call.args[1]);
    const std::string key =
        fmt::format("{} {} {:x} {} {}", static_cast<const void*>(call.args[0].object()), scope_of(ref(&call)),
                    structural_hash(Value(how->attrs)), fmt::join(*weights, ","), dtype);
    const auto [it, is_new] = group_of_.emplace(key, groups_.size());
    if (is_new) groups_.push_back({*how, {}, {}});
    Group& group = groups_[it->second];
    if (structural_equal(Value(group.how.attrs), Value(how->attrs)))
      group.branches.push_back({&call, ref(&call), outputs});
  }

  static Expr joined(const std::vector<Expr>& parts, size_t axis, const Span& span) {
    return ops::concatenate(Array<Expr>(parts), static_cast<int64_t>(axis), span);
  }

  void combine(Group& group) {
    group.combined = group.how.is_batched ? batched_product(group) : wide_product(group);
    while (extend(group)) {
    }
    if (group.how.copies_data) {
      const auto count = static_cast<int64_t>(group.branches.size());
      group.combined = ops::split(group.combined, count, 0, group.combined->span);
    }
    int64_t begin = 0;
    for (size_t i = 0; i < group.branches.size(); ++i) {
      const Branch& branch = group.branches[i];
      const Expr part = group.how.is_batched ? batch_of(group, i) : columns_of(group, branch, begin);
      replacements_.emplace(branch.end.object(), part);
      begin += branch.outputs;
    }
  }

  static std::vector<Expr> weights_of(const Group& group) {
    std::vector<Expr> weights;
    for (const Branch& branch : group.branches) weights.push_back(branch.product->args[1]);
    return weights;
  }

  static Expr wide_product(const Group& group) {
    const CallNode& first = *group.branches[0].product;
    int64_t outputs = 0;
    for (const Branch& branch : group.branches) outputs += branch.outputs;
    return copy_with(first, [&](CallNode& call) {
      call.args = {first.args[0], joined(weights_of(group), group.how.weight_axis, first.args[1]->span)};
      call.attrs = with_outputs(group.how.attrs, outputs);
      call.type_args = {};
    });
  }

  // Makes the batched product, in which every batch reads the data's one matrix or a copy of it.
  static Expr batched_product(const Group& group) {
    const CallNode& first = *group.branches[0].product;
    const Expr matrix = first.args[0];
    const std::vector<Expr> copies(group.branches.size(), matrix);
    const Expr data = group.how.copies_data ? ops::stack(Array<Expr>(copies), 0, matrix->span)
                                            : ops::expand_dims(matrix, 0, 1, matrix->span);
    const Expr weights = ops::stack(Array<Expr>(weights_of(group)), 0, first.args[1]->span);
    ops::BatchMatmulAttrs attrs;
    attrs.out_dtype = first.attrs_as<ops::DenseAttrs>().out_dtype;
    return ops::batch_matmul(data, weights, std::move(attrs), first.span);
  }

  static Expr columns_of(const Group& group, const Branch& branch, int64_t begin) {
    // The slice has all axes before the outputs', whole, and those behind them of a dense product, as Relay's.
    const size_t axes = std::max(group.how.out_axis + 1, group.how.rank);
    Shape first(axes, 0), sizes(axes, -1);
    first[group.how.out_axis] = begin;
    sizes[group.how.out_axis] = branch.outputs;
    return ops::strided_slice(group.combined, first, sizes, Shape(axes, 1), {}, "size", branch.end->span);
  }

  static Expr batch_of(const Group& group, size_t number) {
    const auto begin = static_cast<int64_t>(number);
    const Span& span = group.branches[number].end->span;
    if (group.how.copies_data)
      return ops::squeeze(relay::make_tuple_get_item(group.combined, begin, span), Shape{0}, span);
    return ops::squeeze(
        ops::strided_slice(group.combined, Shape{begin}, Shape{begin + 1}, Shape{1}, Shape{0}, "end", span), Shape{0},
        span);
  }

  // Returns the op that is the only reader of the branch's end and works element by element; null when there is none.
  // With one operand it must be a function of elements, because other ops name their result's shape; behind a wider
  // dense product also expand_dims, and what broadcasts it.
  const CallNode* follower(const Group& group, const Branch& branch) const {
    if (num_uses_.at(branch.end.object()) != 1) return nullptr;
    const auto user = user_.find(branch.end.object());
    const auto* call = user == user_.end() ? nullptr : user->second.as<CallNode>();
    if (call == nullptr || scope_of(user->second) != scope_of(branch.end)) return nullptr;
    const auto kind = ops::promised_kind_of(*call);
    const bool is_unary = call->args.size() == 1;
    const bool is_wide_dense = group.how.rank != 0;
    if (is_wide_dense && relay::is_call(*call, op::kExpandDims)) return call;
    if (!kind || *kind > (is_unary ? ops::FusionKind::elementwise : ops::FusionKind::broadcast)) return nullptr;
    if (call->args.size() > 2 || !relay::known_shape_of(user->second)) return nullptr;
    const bool may_grow = is_wide_dense && !is_unary && !call->attrs.defined();
    return may_grow || relay::known_shape_of(user->second) == relay::known_shape_of(branch.end) ? call : nullptr;
  }

  // Adds the ops behind all branches, if they are the same.
  bool extend(Group& group) {
    std::vector<const CallNode*> calls;
    for (const Branch& branch : group.branches) {
      const CallNode* call = follower(group, branch);
      if (call == nullptr || (!calls.empty() && !is_same_op(*calls[0], *call))) return false;
      calls.push_back(call);
    }
    const size_t side = calls[0]->args[0] == group.branches[0].end ? 0 : 1;
    Expr other;
    if (calls[0]->args.size() == 2) {
      std::vector<Expr> others;
      for (size_t i = 0; i < calls.size(); ++i) {
        if (calls[i]->args[side] != group.branches[i].end || calls[i]->args[1 - side] == group.branches[i].end)
          return false;
        others.push_back(calls[i]->args[1 - side]);
      }
      other = common_operand(group, *calls[0], others);
      if (!other) return false;
    }
    group.combined = followed(group, *calls[0], side, other);
    if (group.how.rank != 0) move_outputs(group.how, *calls[0]);
    for (size_t i = 0; i < calls.size(); ++i) group.branches[i].end = ref(calls[i]);
    return true;
  }

  // Sets where the outputs lie behind an op that may have added axes.
  static void move_outputs(Product& how, const CallNode& call) {
    const size_t rank = relay::known_shape_of(ref(&call))->size();
    int64_t at = 0;
    if (const auto* expand = call.attrs.as<ops::ExpandDimsAttrs>()) at = expand->axis;
    if (at < 0) at += static_cast<int64_t>(how.rank) + 1;
    if (at <= static_cast<int64_t>(how.out_axis)) how.out_axis += rank - how.rank;
    how.rank = rank;
  }

  // Returns the op behind the combined product; a bias along rows or columns of batches has their other axes.
  static Expr followed(const Group& group, const CallNode& call, size_t side, const Expr& other) {
    if (group.how.is_batched && call.attrs.is<ops::BiasAddAttrs>()) return ops::add(group.combined, other, call.span);
    Array<Expr> args = call.args;
    args.set(side, group.combined);
    if (other) args.set(1 - side, other);
    return copy_with(call, [&](CallNode& copy) { copy.args = args; });
  }

  static bool is_same_op(const CallNode& a, const CallNode& b) {
    return a.op == b.op && a.args.size() == b.args.size() && a.attrs.defined() == b.attrs.defined() &&
           (!a.attrs || structural_equal(Value(a.attrs), Value(b.attrs)));
  }

  // Joins the other operands of a binary op into one; returns null when that is not possible.
  Expr common_operand(const Group& group, const CallNode& call, const std::vector<Expr>& others) const {
    if (std::all_of(others.begin(), others.end(), [&](const Expr& e) { return is_same_value(e, others[0]); }) &&
        relay::known_shape_of(others[0]) == Shape{})
      return others[0];
    const auto first = relay::known_shape_of(others[0]);
    const bool can_join = ops::promised_kind_of(call) == ops::FusionKind::broadcast &&
                          std::all_of(others.begin(), others.end(), [&](const Expr& e) {
                            const auto shape = relay::known_shape_of(e);
                            return shape && shape->size() == first->size() && can_move(e);
                          });
    if (!can_join) return {};
    return group.how.is_batched ? stacked_operands(group, call, others) : joined_operands(group, call, others);
  }

  // Joins operands that lie along the outputs. One for all outputs of a dense product is repeated for each of them.
  Expr joined_operands(const Group& group, const CallNode& call, std::vector<Expr> others) const {
    const bool is_dense = group.how.rank != 0, is_bias = call.attrs.is<ops::BiasAddAttrs>();
    const bool is_scalar = is_dense && !is_bias && relay::known_shape_of(others[0])->empty();
    const auto axis = is_scalar ? std::optional<size_t>(0) : varying_axis(group, call, others[0]);
    if (!axis) return {};
    const Shape first = is_scalar ? Shape{1} : *relay::known_shape_of(others[0]);
    for (size_t i = 0; i < others.size(); ++i) {
      Expr& other = others[i];
      const Shape shape = is_scalar ? Shape{1} : *relay::known_shape_of(other);
      const int64_t outputs = group.branches[i].outputs;
      if (shape[*axis] != outputs && (shape[*axis] != 1 || !is_dense || is_bias)) return {};
      for (size_t d = 0; d < shape.size(); ++d) {
        if (d != *axis && shape[d] != (is_dense ? first[d] : 1)) return {};
      }
      if (is_scalar) other = ops::expand_dims(other, -1, 1, other->span);
      if (shape[*axis] != outputs) other = ops::repeat(other, outputs, static_cast<int64_t>(*axis), other->span);
    }
    // Relay names the last axis of what follows a batched product from the end.
    const bool is_batch_matmul = relay::is_call(*group.branches[0].product, op::kBatchMatmul);
    return ops::concatenate(Array<Expr>(others), is_batch_matmul ? -1 : static_cast<int64_t>(*axis), others[0]->span);
  }

  // Joins operands that each belong to a batch.
  static Expr stacked_operands(const Group& group, const CallNode& call, const std::vector<Expr>& others) {
    const Shape shape = *relay::known_shape_of(others[0]);
    const bool is_alike =
        std::all_of(others.begin(), others.end(), [&](const Expr& e) { return relay::known_shape_of(e) == shape; });
    const auto* bias = call.attrs.as<ops::BiasAddAttrs>();
    const size_t rank = group.how.out_axis + 1;
    if (!is_alike || (call.attrs.defined() && bias == nullptr) || shape.size() > rank) return {};
    const bool is_of_rows = bias != nullptr && ops::normal_axis(bias->axis, rank) == 0;
    std::vector<Expr> parts = others;
    for (Expr& part : parts) {
      if (shape.size() == rank) break;
      part = ops::expand_dims(part, is_of_rows ? 1 : 0, static_cast<int64_t>(rank - shape.size()), part->span);
    }
    return ops::stack(Array<Expr>(parts), 0, others[0]->span);
  }

  static bool is_same_value(const Expr& a, const Expr& b) {
    const auto *x = a.as<ConstantNode>(), *y = b.as<ConstantNode>();
    return a == b || (x != nullptr && y != nullptr && x->data.content_equal(y->data));
  }

  // Returns the axis of the operand that lies along the outputs.
  static std::optional<size_t> varying_axis(const Group& group, const CallNode& call, const Expr& operand) {
    const auto shape = relay::known_shape_of(operand), out = relay::known_shape_of(ref(&call));
    if (!shape || shape->empty()) return std::nullopt;
    if (const auto* bias = call.attrs.as<ops::BiasAddAttrs>()) {
      const bool is_along = ops::normal_axis(bias->axis, out->size()) == group.how.out_axis;
      return is_along && call.args[1] == operand ? std::optional<size_t>(0) : std::nullopt;
    }
    if (call.attrs.defined() || shape->size() > out->size()) return std::nullopt;
    const size_t added = out->size() - shape->size();
    const size_t axis = group.how.out_axis + out->size() - relay::known_shape_of(group.branches[0].end)->size();
    return axis < added ? std::nullopt : std::optional(axis - added);
  }

  const Kind& kind_;
  const Effects& effects_;
  int64_t min_branches_;
  relay::Scopes scopes_;
  std::unordered_map<const Object*, int> num_uses_;
  std::unordered_map<const Object*, Expr> user_;
  std::unordered_set<const Object*> has_product_;
  std::unordered_map<std::string, size_t> group_of_;
  std::vector<Group> groups_;
  std::unordered_map<const Object*, Expr> replacements_;
  Expr result_;
};

IRModule combine(const IRModule& module, const Kind& kind, int64_t min_branches) {
  const Effects effects(module, true);
  return rewrite_bodies(module, [&](const Expr& body) { return Combiner(body, kind, effects, min_branches).result(); });
}

}  // namespace

IRModule combine_parallel_conv2d(const IRModule& module, int64_t min_num_branches) {
  return combine(module, {op::kConv2D, read_conv2d}, min_num_branches);
}

IRModule combine_parallel_dense(const IRModule& module, int64_t min_num_branches, DenseForm form) {
  const auto read = form == DenseForm::wide    ? read_dense
                    : form == DenseForm::batch ? read_dense_to_batch<false>
                                               : read_dense_to_batch<true>;
  return combine(module, {op::kDense, read}, min_num_branches);
}

IRModule combine_parallel_batch_matmul(const IRModule& module, int64_t min_num_branches) {
  return combine(module, {op::kBatchMatmul, read_batch_matmul}, min_num_branches);
}

int64_t min_num_branches(const pass::PassContext& context, std::string_view pass) {
  const std::string key = fmt::format("relay.{}.min_num_branches", pass);
  const auto value = context.config.get(key);
  if (!value) return 3;
  if (!value->is<int64_t>() || value->as<int64_t>() < 2)
    throw_user_error("{} must be a number from 2 on, got {}", key, repr(*value));
  return value->as<int64_t>();
}

DenseForm dense_form(const pass::PassContext& context, bool copies_data) {
  if (!context.option<bool>("relay.CombineParallelDense.to_batch").value_or(true)) return DenseForm::wide;
  const bool copies = context.option<bool>("relay.CombineParallelDense.copy_data").value_or(copies_data);
  return copies ? DenseForm::batch_of_copies : DenseForm::batch;
}

}  // namespace headrace::passes
