#include "plan/tensor_group.h"

#include <algorithm>
#include <unordered_set>

#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::plan {

using relay::Function;
using relay::FunctionNode;
using relay::Var;

namespace {

class TensorGroup {
 public:
  static Function of(const Function& group) {
    const auto is_tuple = [](const Var& param) { return param->checked_type().is<TupleTypeNode>(); };
    return std::any_of(group->params.begin(), group->params.end(), is_tuple) ? TensorGroup().rewrite(group) : group;
  }

 private:
  Function rewrite(const Function& group) {
    std::unordered_map<const Object*, Expr> values;
    for (const Var& param : group->params)
      values.emplace(param.object(), take_apart(param->checked_type(), param->name_hint));
    const Expr body = relay::rewrite_post_order(group->body, [&](const Expr& before, const Expr& after) {
      const auto value = values.find(before.object());
      return value == values.end() ? item_of(after) : value->second;
    });
    return copy_with(*group, [&](FunctionNode& copy) {
      copy.params = params_;
      copy.body = body;
    });
  }

  // Makes a parameter for each tensor of a type, and the value of that type that they form.
  Expr take_apart(const Type& type, const std::string& name) {
    const auto* tuple = type.as<TupleTypeNode>();
    if (tuple == nullptr) {
      params_.push_back(relay::make_var(name, type));
      return params_.back();
    }
    Array<Expr> items;
    for (size_t i = 0; i < tuple->items.size(); ++i)
      items.push_back(take_apart(tuple->items[i], fmt::format("{}_{}", name, i)));
    const Expr made = relay::make_tuple(items);
    made_.insert(made.object());
    return made;
  }

  // Returns the item itself for an item of a tuple made here, because the kernel of one op takes nothing else.
  Expr item_of(const Expr& expr) const {
    const auto* item = expr.as<relay::TupleGetItemNode>();
    if (item == nullptr || !made_.contains(item->tuple.object())) return expr;
    return item->tuple.as<relay::TupleNode>()->items[static_cast<size_t>(item->index)];
  }

  Array<Var> params_;
  std::unordered_set<const Object*> made_;
};

}  // namespace

Function with_tensor_parameters(const Function& group) {
  const Function taken = TensorGroup::of(group);
  return taken == group ? group : relay::infer_type(taken).cast<FunctionNode>();
}

}  // namespace headrace::plan
