#include "partition/region_function.h"

#include <algorithm>
#include <unordered_set>

#include "ir/text_names.h"
#include "ir/type_parts.h"
#include "partition/extract.h"
#include "passes/functions/inline.h"
#include "relay/children.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/type_match.h"
#include "relay/leaves.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;
using relay::TupleGetItemNode;
using relay::TupleNode;

namespace {

bool is_constant_value(const Expr& value) {
  if (value.is<ConstantNode>()) return true;
  const auto* tuple = value.as<TupleNode>();
  return tuple != nullptr && !tuple->items.empty() &&
         std::all_of(tuple->items.begin(), tuple->items.end(),
                     [](const Expr& item) { return is_constant_value(item); });
}

Type type_of(const Expr& expr) {
  if (const auto* constant = expr.as<ConstantNode>()) return constant->tensor_type();
  return expr->checked_type();
}

Expr typed(Expr expr, const Type& type) {
  expr->set_checked_type(type);
  return expr;
}

Expr item_of(const Expr& tuple, size_t index, const Type& type) {
  return typed(relay::make_tuple_get_item(tuple, static_cast<int64_t>(index)), type);
}

// Appends the tensors of `value`, which has that type.
void take_apart(const Expr& value, const Type& type, std::vector<Expr>& leaves) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return leaves.push_back(value);
  for (size_t i = 0; i < tuple->items.size(); ++i)
    take_apart(item_of(value, i, tuple->items[i]), tuple->items[i], leaves);
}

std::vector<Expr> tensors_of(const Expr& value) {
  std::vector<Expr> leaves;
  take_apart(value, type_of(value), leaves);
  return leaves;
}

}  // namespace

std::string sanitized(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && !is_digit(c)) c = '_';
  }
  return result;
}

RegionName RegionNames::next(const IRModuleNode& module, const std::string& backend) {
  const std::string prefix = mod_name_.empty() ? "tvmgen" : "tvmgen_" + mod_name_;
  for (;; ++next_) {
    const std::string symbol = sanitized(fmt::format("{}_{}_{}_{}", prefix, backend, function_, next_));
    if (module.find_global_var(symbol)) continue;
    return {symbol, next_++};
  }
}

void RegionBuilder::add_input(const Expr& value, const Expr& outer) {
  if (inner_.contains(value.object())) return;
  if (spec_.bind_constants && is_constant_value(value)) {
    inner_.try_emplace(value.object(), value);
    return;
  }
  const std::string name = fmt::format("{}_{}_i{}", sanitized(spec_.backend), spec_.number, params_.size());
  const relay::Var param = relay::make_var(name, type_of(value), value->span);
  param->set_checked_type(param->type_annotation);
  params_.push_back(param);
  args_.push_back(outer);
  inner_.try_emplace(value.object(), param);
  outer_.try_emplace(value.object(), outer);
}

const Expr& RegionBuilder::inner(const Expr& value) const {
  const Expr* known = inner_.find(value.object());
  return known == nullptr ? value : *known;
}

bool RegionBuilder::is_member(const Expr& node) const {
  return inner_.contains(node.object()) && !outer_.contains(node.object()) && !is_constant_value(node);
}

void RegionBuilder::add_member(const Expr& node) {
  children_.clear();
  relay::for_each_child(*node, [&](const ExprNode* child) { children_.push_back(inner(ref(child))); });
  inner_.try_emplace(node.object(), retyped(node, relay::with_children(node, children_)));
  if (node.is<CallNode>()) calls_.push_back(node);
  if (node.is<TupleNode>() || node.is<TupleGetItemNode>() || type_of(node).is<TupleTypeNode>())
    leaves_.try_emplace(node.object(), find_leaves(node));
}

// Names every tensor of a member by what computes it, so that one that leaves as a tensor and in a tuple leaves once.
std::vector<RegionBuilder::Leaf> RegionBuilder::find_leaves(const Expr& node) {
  if (const auto* tuple = node.as<TupleNode>()) {
    std::vector<Leaf> all;
    for (const Expr& item : tuple->items) {
      const std::vector<Leaf> some = leaves(item);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  if (const auto* item = node.as<TupleGetItemNode>()) {
    const std::vector<Leaf>* all = leaves_.find(item->tuple.object());  // not copied, because a tuple may be wide
    if (all == nullptr) all = leaves_.try_emplace(item->tuple.object(), leaves(item->tuple)).first;
    const LeafRange range = leaves_of_field(*type_of(item->tuple).as<TupleTypeNode>(), item->index);
    const auto first = all->begin() + static_cast<std::ptrdiff_t>(range.begin);
    return {first, first + static_cast<std::ptrdiff_t>(range.count)};
  }
  const std::vector<Expr> tensors = tensors_of(inner(node));
  std::vector<Leaf> all;
  for (size_t i = 0; i < tensors.size(); ++i) all.push_back({tensors[i], {}, node.object(), i});
  return all;
}

// The tensors of a member, or of a value from outside.
std::vector<RegionBuilder::Leaf> RegionBuilder::leaves(const Expr& node) const {
  if (const auto* known = leaves_.find(node.object())) return *known;
  if (is_member(node)) return {{inner(node), {}, node.object(), 0}};
  const Expr* from_outside = outer_.find(node.object());
  const std::vector<Expr> inside = tensors_of(inner(node));
  const std::vector<Expr> outside = tensors_of(from_outside == nullptr ? node : *from_outside);
  std::vector<Leaf> all;
  for (size_t i = 0; i < inside.size(); ++i) all.push_back({inside[i], outside.at(i), node.object(), i});
  return all;
}

void RegionBuilder::add_output(const Expr& node) {
  for (const Leaf& leaf : leaves(node)) {
    if (!leaf.outer && places_.try_emplace({leaf.source, leaf.index}, results_.size()).second) results_.push_back(leaf);
  }
}

// The results of one op that gives a tuple are that tuple.
Expr RegionBuilder::result() const {
  if (results_.size() == 1) return results_[0].inner;
  Array<Expr> items;
  Array<Type> types;
  for (const Leaf& leaf : results_) {
    items.push_back(leaf.inner);
    types.push_back(type_of(leaf.inner));
  }
  const auto* first = results_[0].inner.as<TupleGetItemNode>();
  bool is_whole = first != nullptr && type_of(first->tuple).as<TupleTypeNode>()->items.size() == results_.size();
  for (size_t i = 0; is_whole && i < results_.size(); ++i) {
    const auto* item = results_[i].inner.as<TupleGetItemNode>();
    is_whole = results_[i].source == results_[0].source && results_[i].index == i && item != nullptr &&
               static_cast<size_t>(item->index) == i && item->tuple == *inner_.find(results_[0].source);
  }
  return is_whole ? first->tuple : typed(relay::make_tuple(items), make_tuple_type(types));
}

// The type variables of the function around the region; the region's function takes them as its own.
Array<TypeVar> RegionBuilder::type_variables() const {
  Array<TypeVar> found;
  std::unordered_set<const Object*> seen;
  const auto look = [&](const Type& type) {
    any_type(type, [&](const Type& part) {
      if (const TypeVar var = part.cast<TypeVarNode>(); var && seen.insert(var.object()).second) found.push_back(var);
      return false;
    });
  };
  for (const relay::Var& param : params_) look(param->type_annotation);
  for (const Leaf& leaf : results_) look(type_of(leaf.inner));
  return found;
}

relay::Function RegionBuilder::function(const std::string& symbol) {
  HEADRACE_CHECK(!results_.empty(), "a region without results");
  const Expr body = result();
  type_params_ = type_variables();
  Array<Type> arg_types;
  for (const relay::Var& param : params_) arg_types.push_back(param->type_annotation);
  const Type type = make_func_type(arg_types, type_of(body), type_params_);
  relay::Function made = relay::make_function(params_, body, type_of(body), type_params_);
  if (const PackedFunc optimize = find_global(optimize_hook())) {
    unoptimized_ = made->body;
    made = optimized(made, optimize);
  }
  const Expr named = copy_with(*made, [&](FunctionNode& copy) {
    copy.attrs.set(relay::kGlobalSymbol, Value(symbol));
    copy.attrs.set(relay::kPrimitive, Value(int64_t{1}));
    copy.attrs.set(relay::kCompiler, Value(spec_.backend));
    copy.attrs.set(passes::kInlineAttr, Value(int64_t{1}));
  });
  return typed(named, type).cast<FunctionNode>();
}

relay::Function RegionBuilder::optimized(const relay::Function& made, const PackedFunc& optimize) const {
  const std::string hook = optimize_hook();
  const Value given = optimize(relay::infer_type(make_module(made)));
  if (!given.is<IRModule>()) throw_user_error("{} gives no module; it takes and gives an IRModule", hook);
  const IRModule module = relay::infer_type(given.as<IRModule>());
  const auto main = module->lookup("main").cast<FunctionNode>();
  if (!main) throw_user_error("{}: @main of the module that it gives is not a Relay function", hook);
  bool same = main->params.size() == made->params.size() && relay::same_type(type_of(main->body), type_of(made->body));
  for (size_t i = 0; same && i < made->params.size(); ++i)
    same = relay::same_type(main->params[i]->checked_type(), made->params[i]->type_annotation);
  if (!same)
    throw_user_error("{} gives a function of another type than it got; parameters and result are those of the region",
                     hook);
  return main;
}

void RegionBuilder::add_calls_before(const Expr& body, CallsBefore& before) const {
  const bool is_optimized = unoptimized_ && body != unoptimized_;
  CallsBefore members;
  for (const Expr& node : calls_) {
    const Expr& inside = inner(node);
    if (inside != node) (is_optimized ? members : before).try_emplace(inside.object(), node.as<CallNode>());
  }
  if (is_optimized) add_optimized_calls(body, members, before);
}

// A call in the optimised body is the one at its place in the body before, as far as both have the same ops.
void RegionBuilder::add_optimized_calls(const Expr& body, const CallsBefore& members, CallsBefore& before) const {
  const Composition composition = read_composition(unoptimized_, body);
  relay::post_order(body, [&](const Expr& expr) {
    const auto* call = expr.as<CallNode>();
    const Expr* plain = call == nullptr ? nullptr : composition.plain.find(call);
    const Expr& member = plain == nullptr ? expr : *plain;
    if (const auto* const known = members.find(member.object())) {
      before.try_emplace(call, *known);
    } else if (plain != nullptr && plain->is<CallNode>()) {
      before.try_emplace(call, plain->as<CallNode>());
    }
  });
}

void RegionBuilder::make_call(const GlobalVar& function, const Type& type) {
  function->set_checked_type(type);
  Array<Type> type_args;
  for (const TypeVar& var : type_params_) type_args.push_back(var);
  call_ = relay::make_call(function, Array<Expr>(args_), {}, type_args, results_[0].inner->span);
  Array<Type> types;
  for (const Leaf& leaf : results_) types.push_back(type_of(leaf.inner));
  call_->set_checked_type(results_.size() == 1 ? types[0] : Type(make_tuple_type(types)));
  for (size_t i = 0; i < results_.size() && results_.size() > 1; ++i) items_.push_back(item_of(call_, i, types[i]));
}

Expr RegionBuilder::leaf_outside(const Leaf& leaf) const {
  if (leaf.outer) return leaf.outer;
  if (results_.size() == 1) return call_;
  return items_[places_.at({leaf.source, leaf.index})];
}

Expr RegionBuilder::outside(const Expr& node) const {
  const std::vector<Leaf> all = leaves(node);
  const Type& type = node->checked_type();
  bool is_call = call_ && all.size() == results_.size() && relay::same_type(type, call_->checked_type());
  for (size_t i = 0; is_call && i < all.size(); ++i)
    is_call = !all[i].outer && places_.at({all[i].source, all[i].index}) == i;
  if (is_call) return call_;
  std::vector<Expr> parts;
  for (const Leaf& leaf : all) parts.push_back(leaf_outside(leaf));
  size_t next = 0;
  return relay::assembled(type, parts, next);
}

}  // namespace headrace::partition
