#include "partition/composition.h"

#include <algorithm>

#include "partition/decision.h"
#include "partition/regions.h"
#include "relay/children.h"
#include "relay/composites.h"
#include "relay/function_attrs.h"
#include "relay/scopes.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

const FunctionNode* composite_at(const Expr& expr) {
  const auto* call = expr.as<CallNode>();
  return call == nullptr ? nullptr : relay::called_composite(*call);
}

// Walks through a program and through the same one with composite functions, side by side. A parameter of a composite
// function stands for what its argument stands for.
class Reader {
 public:
  Reader(const Expr& plain, const Expr& composed) { walk(plain, composed); }
  Composition take() {
    return {.pieces = std::move(instances_), .is_whole = std::move(is_whole_), .plain = std::move(plain_)};
  }

 private:
  struct Pair {
    const ExprNode* plain;
    const ExprNode* composed;
    int32_t instance;  // the one that they are a part of; kNone outside
  };
  struct Param {
    const ExprNode* argument;
    int32_t instance;  // the one whose input it is; kNone in a function inside of another
    size_t index;
  };

  void walk(const Expr& plain, const Expr& composed) {
    open_.push_back({plain.get(), composed.get(), kNone});
    while (!open_.empty()) {
      const Pair pair = open_.back();
      open_.pop_back();
      visit(pair);
    }
    for (size_t i = 0; i < instances_.size(); ++i) {
      for (const Expr& input : instances_[i].inputs) is_whole_[i] = is_whole_[i] && input;
    }
  }

  void visit(Pair pair) {
    while (const ExprNode* const* argument = arguments_.find(pair.plain)) pair.plain = *argument;
    if (const Param* param = params_.find(pair.composed)) return visit_param(pair, *param);
    if (relay::is_atomic(*pair.composed)) return;
    if (pair.instance == kNone && pair.plain == pair.composed) return;
    if (const FunctionNode* broken = composite_at(ref(pair.plain));
        broken != nullptr && !composite_at(ref(pair.composed)))
      return enter_broken(pair, *broken);
    if (!seen_.try_emplace(pair.composed, true).second) return;
    const FunctionNode* function = composite_at(ref(pair.composed));
    if (function != nullptr && composite_at(ref(pair.plain)) == nullptr) return enter(pair, *function);
    const std::vector<const ExprNode*> before = children_of(*pair.plain), after = children_of(*pair.composed);
    if (before.size() != after.size() || op_of(*pair.plain) != op_of(*pair.composed)) {
      if (pair.instance != kNone) is_whole_[static_cast<size_t>(pair.instance)] = false;
      return;
    }
    if (pair.plain != pair.composed) plain_.try_emplace(pair.composed, ref(pair.plain));
    if (pair.instance != kNone) instances_[static_cast<size_t>(pair.instance)].parts.push_back(ref(pair.plain));
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] != nullptr && after[i] != nullptr) open_.push_back({before[i], after[i], pair.instance});
    }
  }

  void visit_param(const Pair& pair, const Param& param) {
    if (param.instance == kNone) return open_.push_back({pair.plain, param.argument, pair.instance});
    instances_[static_cast<size_t>(param.instance)].inputs[param.index] = ref(pair.plain);
    open_.push_back({pair.plain, param.argument, kNone});
  }

  void enter(const Pair& pair, const FunctionNode& function) {
    const auto& call = static_cast<const CallNode&>(*pair.composed);
    int32_t instance = pair.instance;
    plain_.try_emplace(pair.composed, ref(pair.plain));
    if (instance == kNone) {
      instance = static_cast<int32_t>(instances_.size());
      instances_.push_back({.call = ref(pair.composed),
                            .inputs = std::vector<Expr>(call.args.size()),
                            .root = ref(pair.plain),
                            .parts = {}});
      is_whole_.push_back(true);
    }
    for (size_t i = 0; i < function.params.size(); ++i)
      params_.try_emplace(function.params[i].object(),
                          {call.args[i].get(), pair.instance == kNone ? instance : kNone, i});
    open_.push_back({pair.plain, function.body.get(), instance});
  }

  // Goes on in a function of the plain program that the composed one has broken up.
  void enter_broken(const Pair& pair, const FunctionNode& function) {
    const auto& call = static_cast<const CallNode&>(*pair.plain);
    for (size_t i = 0; i < function.params.size(); ++i)
      arguments_.try_emplace(function.params[i].object(), call.args[i].get());
    open_.push_back({function.body.get(), pair.composed, pair.instance});
  }

  // Returns the op that a node calls; null for other nodes.
  static const OpNode* op_of(const ExprNode& node) {
    const auto* call = ref(&node).as<CallNode>();
    return call == nullptr ? nullptr : call->as_op();
  }

  static std::vector<const ExprNode*> children_of(const ExprNode& node) {
    std::vector<const ExprNode*> children;
    relay::for_each_child(node, [&](const ExprNode* child) { children.push_back(child); });
    return children;
  }

  std::vector<Pair> open_;
  std::vector<Instance> instances_;
  std::vector<bool> is_whole_;            // by instance: all was found
  ObjectMap<Param> params_;               // by parameter of a composite function
  ObjectMap<const ExprNode*> arguments_;  // by parameter of a function that is broken up
  ObjectMap<bool> seen_;
  ObjectMap<Expr> plain_;
};

}  // namespace

std::string Instance::name() const { return kind_of(*call.as<CallNode>()); }

Composition read_composition(const Expr& plain, const Expr& composed) { return Reader(plain, composed).take(); }

Composition read_composition(const IRModule& plain, const IRModule& composed) {
  const auto body_of = [](const IRModule& module) { return module->lookup("main").cast<FunctionNode>()->body; };
  return read_composition(body_of(plain), body_of(composed));
}

}  // namespace headrace::partition
