#include "passes/fuse/fuse_ops.h"

#include <unordered_set>

#include "ops/call_fusion.h"
#include "passes/fuse/fuse_groups.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
#include "relay/visit.h"

namespace headrace::passes {

using ops::FusionKind;
using relay::CallNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::Var;

namespace {

template <typename T>
Ref<T> with_type(Ref<T> expr, const Type& type) {
  expr->set_checked_type(type);
  return expr;
}

// The op that the group's time goes into: the place that messages and listings show.
const Span& span_of(const FuseGroup& group) {
  const auto weight = [](const Expr& member) {
    const FusionKind kind = ops::fusion_kind_of(*member.as<CallNode>());
    const bool is_heavy = kind == FusionKind::anchor || kind == FusionKind::reduction;
    return is_heavy ? static_cast<int>(kind) : 0;
  };
  const Expr* heaviest = &group.members.front();
  for (const Expr& member : group.members) {
    if (weight(member) >= weight(*heaviest)) heaviest = &member;
  }
  return (*heaviest)->span;
}

// Makes the function of one group, and the call of it.
class GroupBuilder {
 public:
  // `outside(e)` is what `e` became in the body around the group.
  explicit GroupBuilder(std::function<Expr(const Expr&)> outside) : outside_(std::move(outside)) {}

  Expr build(const FuseGroup& group) {
    const Expr& root = group.members.back();
    for (const Expr& member : group.members) members_.insert(member.object());
    add_params(root);
    for (const Expr& member : group.members) inside_[member.object()] = rebuild(*member.as<CallNode>());
    const Type& type = root->checked_type();
    const Span& span = span_of(group);
    const auto function =
        relay::make_function(params_, inside_.at(root.object()), type, {}, {{relay::kPrimitive, Value(1)}}, span);
    return with_type(relay::make_call(with_type(function, make_func_type(param_types_, type)), args_, {}, {}, span),
                     type);
  }

 private:
  // A parameter for each operand from outside, in the order in which the group's calls would evaluate them: calls among
  // them may have effects.
  void add_params(const Expr& root) {
    std::vector<Expr> pending{root};
    std::unordered_set<const Object*> entered;
    while (!pending.empty()) {
      const Expr item = pending.back();
      pending.pop_back();
      const Expr& producer = producer_of(item);
      if (!members_.contains(producer.object())) {
        inner_item(item);
      } else if (entered.insert(producer.object()).second) {
        const std::vector<Expr> items = relay::items_of_args(*producer.as<CallNode>());
        pending.insert(pending.end(), items.rbegin(), items.rend());
      }
    }
  }

  Expr rebuild(const CallNode& call) {
    Array<Expr> args;
    for (const Expr& arg : call.args) args.push_back(inner_arg(arg));
    const auto copy = copy_with(call, [&](CallNode& node) { node.args = args; });
    return with_type(copy, call.checked_type());
  }

  Expr inner_arg(const Expr& arg) {
    const auto* tuple = arg.as<TupleNode>();
    if (tuple == nullptr) return inner_item(arg);
    Array<Expr> items;
    for (const Expr& item : tuple->items) items.push_back(inner_item(item));
    return with_type(copy_with(*tuple, [&](TupleNode& node) { node.items = items; }), arg->checked_type());
  }

  Expr inner_item(const Expr& item) {
    if (is_scalar_constant(item)) return item;
    const auto known = inside_.find(item.object());
    if (known != inside_.end()) return known->second;
    const auto* get = item.as<TupleGetItemNode>();
    const auto tuple = get == nullptr ? inside_.end() : inside_.find(get->tuple.object());
    Expr made;
    if (tuple != inside_.end()) {
      made =
          with_type(copy_with(*get, [&](TupleGetItemNode& node) { node.tuple = tuple->second; }), item->checked_type());
    } else {
      made = make_param(item);
    }
    inside_[item.object()] = made;
    return made;
  }

  Var make_param(const Expr& arg) {
    const Type& type = arg->checked_type();
    const Var param = with_type(relay::make_var(fmt::format("p{}", params_.size()), type), type);
    params_.push_back(param);
    param_types_.push_back(type);
    args_.push_back(outside_(arg));
    return param;
  }

  std::function<Expr(const Expr&)> outside_;
  std::unordered_set<const Object*> members_;
  std::unordered_map<const Object*, Expr> inside_;
  Array<Var> params_;
  Array<Type> param_types_;
  Array<Expr> args_;
};

// Rebuilds a body with its groups as calls.
class BodyFuser {
 public:
  BodyFuser(const Expr& body, const FuseOptions& options) : groups_(find_fuse_groups(body, options)) {
    for (const FuseGroup& group : groups_) {
      for (const Expr& member : group.members) group_of_[member.object()] = &group;
    }
  }

  Expr run(const Expr& body) {
    relay::post_order(body, relay::is_entered, [&](const Expr& node) {
      if (Expr made = rebuild(node)) done_[node.object()] = std::move(made);
    });
    return outside(body);
  }

 private:
  // Returns the rewritten form of `expr`. Outside of a group, only the group's result has one.
  Expr outside(const Expr& expr) const {
    const auto it = done_.find(expr.object());
    HEADRACE_CHECK(it != done_.end(), "{} is used outside of its group", to_string(expr->span));
    return it->second;
  }

  // Null for what exists inside of groups only.
  Expr rebuild(const Expr& node) {
    const auto group = group_of_.find(node.object());
    if (group != group_of_.end()) {
      if (group->second->members.back() != node) return {};
      return GroupBuilder([this](const Expr& e) { return outside(e); }).build(*group->second);
    }
    if (!relay::is_entered(node)) return node;
    std::vector<Expr> children = relay::children_of(node);
    for (Expr& child : children) {
      const auto it = done_.find(child.object());
      if (it == done_.end()) return {};
      child = it->second;
    }
    return relay::with_children(node, children);
  }

  std::vector<FuseGroup> groups_;
  std::unordered_map<const Object*, const FuseGroup*> group_of_;
  std::unordered_map<const Object*, Expr> done_;
};

}  // namespace

FuseOptions fuse_options(const pass::PassContext& context) {
  constexpr const char *kDepth = "relay.FuseOps.max_depth", *kLevel = "relay.FuseOps.fuse_opt_level";
  FuseOptions options;
  options.max_depth = context.option<int64_t>(kDepth).value_or(options.max_depth);
  if (options.max_depth < 1) throw_user_error("{} must be a number from 1 on, got {}", kDepth, options.max_depth);
  const int64_t level = context.option<int64_t>(kLevel).value_or(-1);
  if (level < -1) throw_user_error("{} must be a level, or -1 for the context's, got {}", kLevel, level);
  if ((level == -1 ? context.opt_level : level) == 0) options.max_depth = 1;
  return options;
}

IRModule fuse_ops(const IRModule& module, const FuseOptions& options) {
  HEADRACE_CHECK(options.max_depth >= 1, "max_depth is {}", options.max_depth);
  return rewrite_bodies(module, [&](const Expr& body) { return BodyFuser(body, options).run(body); });
}

}  // namespace headrace::passes
