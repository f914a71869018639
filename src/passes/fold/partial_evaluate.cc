#include "passes/fold/partial_evaluate.h"

#include "object/structural_equal.h"
#include "passes/fold/dead_code_elimination.h"
#include "passes/fold/evaluate.h"
#include "passes/fold/residual.h"
#include "passes/rewrite/renewed.h"
#include "relay/captures.h"
#include "relay/descent.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/place_lets.h"

namespace headrace::passes {

using relay::CallNode;
using relay::Function;
using relay::FunctionNode;
using relay::IfNode;
using relay::LetNode;
using relay::MatchNode;
using relay::Nested;
using relay::Var;

namespace {

constexpr size_t kMostBytes = size_t{64} << 10;
// A function literal of the residual program is bound where it is first used, once in each branch that uses it. After
// this many copies, literals are bound where they are made, because literals in branches of literals would otherwise
// double the program with each level.
constexpr int64_t kMostCopies = 1'000;

// One activation of a function: the values of its variables, and the types and sizes bound to its type variables and
// symbolic dimensions.
struct Frame {
  Known::Vars vars;
  relay::TypeBindings types;
};

bool is_opaque(const FunctionNode& function) {
  return relay::is_left_alone(function) || relay::is_sealed(function) || !function.type_params.empty();
}

class Evaluator {
 public:
  Evaluator(const IRModule& module, int64_t most_unfolded, const pass::PassContext& context)
      : module_(module), context_(context), most_unfolded_(most_unfolded) {}

  // Returns the residual body of a function of the module, with all parameters unknown.
  Expr run(const FunctionNode& function) {
    residual_.open();
    activations_[&function].push_back(0);
    active_.push_back(&function);
    Frame frame;
    for (const Var& param : function.params) frame.vars[param.object()] = unknown(param);
    return residual_.close(result_of(function.body, frame).run());
  }

 private:
  // ---- values

  Known* make(Known value) {
    values_.push_back(std::move(value));
    return &values_.back();
  }
  Known* unknown(const Expr& atom) {
    Known value;
    value.atom = atom;
    value.block = residual_.current();
    return make(std::move(value));
  }
  Known* made_of(Known::Kind kind, const Expr& node, std::vector<Known*> items, const Span& span, Type type = {}) {
    Known value;
    value.kind = kind;
    value.node = node;
    value.items = std::move(items);
    value.type = std::move(type);
    value.span = span;
    return make(std::move(value));
  }
  Known* from_constants(const Expr& expr) {
    const auto* tuple = expr.as<relay::TupleNode>();
    if (tuple == nullptr) return made_of(Known::tensor, expr, {}, expr->span);
    std::vector<Known*> items;
    for (const Expr& item : tuple->items) items.push_back(from_constants(item));
    return made_of(Known::tuple, {}, items, expr->span);
  }
  static Type retyped(const Type& type, const Frame& frame) {
    return type ? relay::instantiate(type, [](const Object*) { return false; }, frame.types) : type;
  }
  static Type type_of(const Expr& expr, const Frame& frame) { return retyped(expr->checked_type(), frame); }

  // Returns an expression for the value in the residual program. Binds tuples, data and function literals to variables
  // in the innermost block, and reuses that variable while its block is open.
  Nested<Expr> reify(Known* value) {
    const bool is_there = value->atom && residual_.is_open(value->block);
    if (is_there) co_return value->atom;
    switch (value->kind) {
      case Known::dynamic:
      case Known::cell:
        throw InternalError("a value is used outside of the block it is bound in");
      case Known::tensor:
      case Known::named:
        co_return value->node;
      case Known::closure: {
        const Expr made = co_await reify_closure(value);
        co_return made;
      }
      case Known::tuple:
      case Known::data:
        break;
    }
    Array<Expr> items;
    for (Known* item : value->items) {
      const Expr atom = co_await reify(item);
      items.push_back(atom);
    }
    const bool is_tuple = value->kind == Known::tuple;
    const Expr made = is_tuple ? Expr(relay::make_tuple(items, value->span))
                               : Expr(relay::make_call(value->node, items, Attrs(), {}, value->span));
    value->atom = residual_.bind(made, "x", value->type);
    value->block = residual_.current();
    co_return value->atom;
  }

  // Emits a function literal. Reifies its captured values before it, once for all uses inside. Evaluates the body with
  // unknown parameters and unknown contents of references, because it may be called at any time later. Calls of itself
  // stay calls.
  Nested<Expr> reify_closure(Known* value) {
    const auto& function = *value->node.as<FunctionNode>();
    if (!reified_.insert(&function).second) ++num_copies_;
    for (const Var& var : captures_of(value->node)) {
      const auto held = value->captured.find(var.object());
      if (held != value->captured.end()) co_await reify(held->second);
    }
    const Var name = relay::make_var(value->self ? value->self->name_hint : "f", {}, function.span);
    Frame frame{value->captured, value->types};
    if (value->self) frame.vars[value->self.object()] = unknown(name);
    const size_t outer = store_.mark();
    store_.forget();
    residual_.open();
    boundaries_.push_back(active_.size());
    Array<Var> params;
    for (const Var& param : function.params) {
      params.push_back(relay::make_var(param->name_hint, type_of(param, frame), param->span));
      frame.vars[param.object()] = unknown(params.back());
    }
    const Expr result = co_await result_of(function.body, frame);
    const Expr body = residual_.close(result);
    boundaries_.pop_back();
    store_.go_back(outer);
    residual_.bind(name, copy_with(function, [&](FunctionNode& copy) {
                     copy.params = params;
                     copy.ret_type = retyped(function.ret_type, frame);
                     copy.body = body;
                   }));
    value->atom = name;
    value->block = residual_.current();
    co_return value->atom;
  }

  const std::vector<Var>& captures_of(const Expr& function) {
    if (!captures_.contains(function.object())) relay::find_captures(function, captures_);
    return captures_.at(function.object());
  }

  // ---- evaluation

  Nested<Expr> result_of(Expr body, Frame& frame) {
    Known* value = co_await evaluate(body, frame);
    const Expr atom = co_await reify(value);
    co_return atom;
  }

  Nested<Known*> evaluate(Expr body, Frame& frame) {
    Expr at = body;
    while (const auto* let = at.as<LetNode>()) {
      if (active_.size() > 1) ++num_unfolded_;
      Known* value = nullptr;
      if (let->value.is<FunctionNode>()) {
        value = co_await literal(let->value, frame, let->var);
      } else {
        value = co_await step(let->value, frame, let->var->name_hint);
      }
      frame.vars[let->var.object()] = value;
      at = let->body;
    }
    Known* value = co_await step(at, frame, "x");
    co_return value;
  }

  // Returns the value of a variable. Throws UserError for an unbound variable: the program may not have been verified.
  static Known* value_of(const relay::VarNode* var, const Frame& frame) {
    const auto found = frame.vars.find(var);
    if (found == frame.vars.end())
      throw_at(var->span, "PartialEvaluate",
               fmt::format("%{} is used where nothing binds it; the program is not well-formed", var->name_hint));
    return found->second;
  }

  // Evaluates one operation. If it stays in the residual program, its result is bound to a variable called `name`.
  Nested<Known*> step(Expr e, Frame& frame, std::string name) {
    Known* value = nullptr;
    if (e.is<relay::VarNode>()) {
      value = value_of(e.as<relay::VarNode>(), frame);
    } else if (e.is<relay::ConstantNode>()) {
      value = from_constants(e);
    } else if (e.is<GlobalVarNode>() || e.is<ConstructorNode>() || e.is<OpNode>()) {
      value = made_of(Known::named, e, {}, e->span);
    } else if (e.is<LetNode>()) {
      value = co_await evaluate(e, frame);
    } else if (e.is<FunctionNode>()) {
      value = co_await literal(e, frame, Var());
    } else if (e.is<CallNode>()) {
      value = co_await call(e, frame, name);
    } else if (e.is<IfNode>()) {
      value = co_await branch(e, frame, name);
    } else if (e.is<MatchNode>()) {
      value = co_await match(e, frame, name);
    } else if (e.is<relay::TupleNode>() || e.is<relay::TupleGetItemNode>()) {
      value = co_await tuple(e, frame, name);
    } else {
      value = co_await reference(e, frame, name);
    }
    co_return value;
  }

  Nested<Known*> tuple(Expr e, Frame& frame, std::string name) {
    const std::vector<Known*> operands = co_await operands_of(e, frame);
    const auto* item = e.as<relay::TupleGetItemNode>();
    if (item == nullptr) co_return made_of(Known::tuple, {}, operands, e->span);
    if (operands[0]->kind == Known::tuple) co_return operands[0]->items.at(static_cast<size_t>(item->index));
    Known* left = co_await leave(e, operands, frame, name);
    co_return left;
  }

  Nested<std::vector<Known*>> operands_of(Expr e, Frame& frame) {
    std::vector<Known*> operands;
    for (const Expr& child : relay::children_of(e)) {
      Known* operand = co_await step(child, frame, "x");
      operands.push_back(operand);
    }
    co_return operands;
  }

  // Emits the operation on its reified operands and returns its result as an unknown value.
  Nested<Known*> leave(Expr e, std::vector<Known*> operands, Frame& frame, std::string name) {
    std::vector<Expr> atoms;
    for (Known* operand : operands) {
      const Expr atom = co_await reify(operand);
      atoms.push_back(atom);
    }
    Expr left = relay::with_children(e, atoms);
    if (const auto* node = left.as<CallNode>(); node != nullptr && !node->type_args.empty()) {
      Array<Type> type_args;
      for (const Type& type : node->type_args) type_args.push_back(retyped(type, frame));
      left = copy_with(*node, [&](CallNode& copy) { copy.type_args = type_args; });
    }
    // Copies the node: a node that occurs twice in the residual program would be evaluated only once.
    co_return unknown(residual_.bind(left == e ? renewed(e) : left, name));
  }

  Nested<Known*> reference(Expr e, Frame& frame, std::string name) {
    const std::vector<Known*> operands = co_await operands_of(e, frame);
    const int id = operands[0]->cell_id;
    if (e.is<relay::RefReadNode>()) {
      if (Known* held = store_.find(id)) co_return held;
    }
    Known* left = co_await leave(e, operands, frame, name);
    if (e.is<relay::RefCreateNode>()) {
      left->kind = Known::cell;
      left->cell_id = next_cell_++;
      store_.set(left->cell_id, operands[0]);
    } else if (e.is<relay::RefReadNode>()) {
      if (id >= 0) store_.set(id, left);
    } else if (id >= 0) {
      store_.set(id, operands[1]);
    } else {
      store_.forget();  // the write may be to any reference
    }
    co_return left;
  }

  Nested<Known*> literal(Expr e, Frame& frame, Var self) {
    Known value;
    value.kind = Known::closure;
    value.node = e;
    value.span = e->span;
    value.types = frame.types;
    value.self = self;
    for (const Var& var : captures_of(e)) {
      const auto bound = frame.vars.find(var.object());
      if (bound != frame.vars.end() && Expr(var) != Expr(self)) value.captured.insert(*bound);
    }
    if (!is_opaque(*e.as<FunctionNode>())) {
      Known* made = make(std::move(value));
      if (num_copies_ > kMostCopies) co_await reify(made);  // binds it once here, not in each block that uses it
      co_return made;
    }
    Renewal renewal{{}, frame.types};
    for (const Var& var : captures_of(e)) {
      const auto held = value.captured.find(var.object());
      if (held == value.captured.end()) continue;
      const Expr atom = co_await reify(held->second);
      renewal.values[var.object()] = atom;
    }
    const Var var = relay::make_var(self ? self->name_hint : "f", {}, e->span);
    if (self) renewal.values[self.object()] = var;
    residual_.bind(var, renewed(e, renewal));
    co_return unknown(var);
  }

  // ---- calls

  Nested<Known*> call(Expr e, Frame& frame, std::string name) {
    const std::vector<Known*> operands = co_await operands_of(e, frame);
    Known* callee = operands[0];
    const std::vector<Known*> args(operands.begin() + 1, operands.end());
    const auto& node = *e.as<CallNode>();
    if (callee->node.is<ConstructorNode>())
      co_return made_of(Known::data, callee->node, args, e->span, type_of(e, frame));
    if (callee->node.is<OpNode>()) {
      if (Known* result = evaluated(node, callee->node, args)) co_return result;
    } else if (const Function function = function_of(*callee)) {
      Frame inner{callee->captured, callee->types};
      if (may_follow(function.object(), args) && bind_types(*function, types_of(node, frame), inner.types)) {
        if (callee->self) inner.vars[callee->self.object()] = callee;
        for (size_t i = 0; i < args.size(); ++i) inner.vars[function->params[i].object()] = args[i];
        Known* result = co_await follow(function, inner);
        co_return result;
      }
    }
    const bool is_op = callee->node.is<OpNode>();
    Known* left = co_await leave(e, operands, frame, name);
    if (!is_op || std::any_of(args.begin(), args.end(), may_be_called)) store_.forget();
    co_return left;
  }

  Nested<Known*> follow(Function function, Frame& frame) {
    ++num_unfolded_;
    activations_[function.object()].push_back(active_.size());
    active_.push_back(function.object());
    Known* result = co_await evaluate(function->body, frame);
    active_.pop_back();
    activations_[function.object()].pop_back();
    co_return result;
  }

  // Returns whether an op that takes the value as an operand may call it.
  static bool may_be_called(const Known* value) { return value->kind == Known::closure || value->kind == Known::named; }

  Known* evaluated(const CallNode& node, const Expr& op, const std::vector<Known*>& args) {
    Array<Expr> constants;
    for (const Known* arg : args) {
      const Expr constant = as_constants(*arg);
      if (!constant) return nullptr;
      constants.push_back(constant);
    }
    const auto call = relay::make_call(op, constants, node.attrs, {}, node.span);
    const Expr result = evaluate_call(*call, kMostBytes, budget_, context_);
    return result ? from_constants(result) : nullptr;
  }

  // Returns a constant or a tuple of constants; null for any other value.
  static Expr as_constants(const Known& value) {
    if (value.kind == Known::tensor) return value.node;
    if (value.kind != Known::tuple) return {};
    Array<Expr> items;
    for (const Known* item : value.items) {
      if (item->kind != Known::tensor) return {};
      items.push_back(item->node);
    }
    return relay::make_tuple(items);
  }

  // Returns the function that a value stands for; null if its body is unknown or must be left alone.
  Function function_of(const Known& callee) const {
    if (callee.kind == Known::closure) return callee.node.cast<FunctionNode>();
    const auto* global = callee.kind == Known::named ? callee.node.as<GlobalVarNode>() : nullptr;
    const Function function = global == nullptr ? Function() : module_->lookup(global->name_hint).cast<FunctionNode>();
    return function && !relay::is_left_alone(*function) ? function : Function();
  }

  bool may_follow(const Object* function, const std::vector<Known*>& args) const {
    if (num_unfolded_ > most_unfolded_) return false;
    const auto known = activations_.find(function);
    if (known == activations_.end() || known->second.empty()) return true;
    const bool by_chance = !boundaries_.empty() && boundaries_.back() > known->second.back();
    const bool is_known = std::any_of(args.begin(), args.end(), [](const Known* arg) { return arg->is_static(); });
    return is_known && !by_chance && known->second.size() < kMostUnrolled;
  }

  static CallTypes types_of(const CallNode& call, const Frame& frame) {
    CallTypes types{{}, {}, retyped(call.checked_type(), frame)};
    for (const Type& type : call.type_args) types.type_args.push_back(retyped(type, frame));
    for (const Expr& arg : call.args) types.args.push_back(type_of(arg, frame));
    return types;
  }

  // ---- conditions

  // Evaluates a body that runs conditionally. Its bindings stay in a block of its own, and its changes of references
  // are undone afterwards.
  Nested<Expr> block(Expr body, Frame& frame, const std::vector<std::pair<Var, Var>>& vars) {
    const size_t outer = store_.mark();
    residual_.open();
    boundaries_.push_back(active_.size());
    for (const auto& [before, after] : vars) frame.vars[before.object()] = unknown(after);
    const Expr result = co_await result_of(body, frame);
    const Expr made = residual_.close(result);
    boundaries_.pop_back();
    store_.go_back(outer);
    co_return made;
  }

  Nested<Known*> branch(Expr e, Frame& frame, std::string name) {
    const auto& node = *e.as<IfNode>();
    Known* condition = co_await step(node.cond, frame, "x");
    if (condition->kind == Known::tensor) {
      const NDArray data = condition->node.as<relay::ConstantNode>()->data.to_dense();
      if (data.num_elements() == 1) {
        const bool is_true = element_as_double(data.tensor(), 0) != 0;
        Known* taken = co_await evaluate(is_true ? node.true_branch : node.false_branch, frame);
        co_return taken;
      }
    }
    const Expr cond = co_await reify(condition);
    const Expr first = co_await block(node.true_branch, frame, {});
    const Expr second = co_await block(node.false_branch, frame, {});
    store_.forget();
    co_return unknown(residual_.bind(relay::make_if(cond, first, second, e->span), name));
  }

  Nested<Known*> match(Expr e, Frame& frame, std::string name) {
    const auto& node = *e.as<MatchNode>();
    Known* data = co_await step(node.data, frame, "x");
    for (const relay::Clause& clause : node.clauses) {
      Known::Vars vars;
      const Match fit = match_known(clause->lhs, data, vars);
      if (fit == Match::unknown) break;
      if (fit == Match::no) continue;
      for (const auto& [var, value] : vars) frame.vars[var] = value;
      Known* taken = co_await evaluate(clause->rhs, frame);
      co_return taken;
    }
    const Expr atom = co_await reify(data);
    std::vector<Expr> children{atom};
    for (const relay::Clause& clause : node.clauses) {
      std::vector<std::pair<Var, Var>> vars;
      for (const Var& var : relay::pattern_vars(clause->lhs)) {
        vars.emplace_back(var, relay::make_var(var->name_hint, retyped(var->type_annotation, frame), var->span));
        children.push_back(vars.back().second);
      }
      const Expr rhs = co_await block(clause->rhs, frame, vars);
      children.push_back(rhs);
    }
    store_.forget();
    const Expr left = relay::with_children(e, children);
    co_return unknown(residual_.bind(left == e ? renewed(e) : left, name));
  }

  const IRModule& module_;
  const pass::PassContext& context_;
  Residual residual_;
  interp::ConstantBudget budget_{0};  // shared by all evaluated calls
  std::deque<Known> values_;
  Store store_;
  int next_cell_ = 0;
  std::vector<const Object*> active_;  // the stack of functions whose bodies are being evaluated
  std::vector<size_t> boundaries_;     // the size of `active_` at the start of each open conditional or literal body
  relay::Captures captures_;
  std::unordered_map<const Object*, std::vector<size_t>> activations_;  // positions of each function in `active_`
  std::unordered_set<const Object*> reified_;
  int64_t most_unfolded_, num_unfolded_ = 0, num_copies_ = 0;
};

}  // namespace

IRModule partial_evaluate(const IRModule& module, const pass::PassContext& context) {
  IRModule normal = snapshot(module);
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || relay::is_left_alone(*node)) continue;
    const Expr body = relay::place_lets(node->body, relay::Bind::everything);
    if (body != node->body)
      normal->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.body = body; }), true);
  }
  normal = relay::infer_type(normal);
  // A loop comes to a call again and again, and what it leaves is noted once.
  pass::PassContext noted = context;
  noted.note = pass::each_once(context.note);
  IRModule result = snapshot(normal);
  for (const auto& [var, function] : normal->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || relay::is_left_alone(*node)) continue;
    const auto share = kMostUnfolded / static_cast<int64_t>(normal->functions().size());
    const Expr body = Evaluator(normal, var->name_hint == "main" ? kMostUnfolded : share, noted).run(*node);
    result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.body = body; }), true);
  }
  result = drop_unused_lets(result);
  for (const auto& [var, function] : module->functions()) {
    if (structural_equal(Value(result->functions().at(var)), Value(function)))
      result->add_function(var, function, true);
  }
  return structural_equal(Value(result), Value(module)) ? module : result;
}

}  // namespace headrace::passes
