#include "interp/interp.h"

#include "base/count_of.h"
#include "base/interrupt.h"
#include "interp/check_arguments.h"
#include "object/string.h"
#include "ops/loops/element.h"
#include "ops/op_handles.h"
#include "ops/op_keys.h"
#include "relay/captures.h"
#include "relay/descent.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/place_lets.h"
#include "relay/unique_binders.h"
#include "relay/visit.h"

namespace headrace::interp {

using relay::CallNode;
using relay::ConstantNode;
using relay::FunctionNode;
using relay::IfNode;
using relay::LetNode;
using relay::MatchNode;
using relay::Nested;
using relay::Pattern;
using relay::RelationInput;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::VarNode;

namespace {

// A value and the type the program declares for it: in a float64 run the data is wider than its declaration. Of a value
// of a data type, the tuple of its fields' types; null for functions and references.
struct Typed {
  Value value;
  Type declared;
};

using Bindings = std::unordered_map<const VarNode*, Typed>;

// A function with the variables it captured.
struct ClosureObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "interp.Closure";
  static constexpr bool is_final = true;
  relay::Function function;
  relay::Var self;  // the let variable it is bound to, which its body may call; null otherwise
  Bindings captured;
};
using Closure = Ref<ClosureObj>;

// One activation: the variables in scope, and the value of every node computed so far.
struct Frame {
  Bindings vars;
  Closure closure;  // callee, whose captured variables are in scope too; null for a function of the module
  std::unordered_map<const ExprNode*, Typed> done;

  // Null when it is not in scope.
  const Typed* find(const VarNode* var) const {
    if (const auto own = vars.find(var); own != vars.end()) return &own->second;
    if (!closure) return nullptr;
    const auto outer = closure->captured.find(var);
    return outer == closure->captured.end() ? nullptr : &outer->second;
  }
};

// Without fields: it may hold itself.
struct RefValueObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "interp.RefValue";
  static constexpr bool is_final = true;
  Typed content;
};

bool widens(DataType dtype) { return dtype.is_float() && dtype.bits() < 64; }

// Returns the items of a tuple or the arguments of a value of a data type; null for other values.
const std::vector<Value>* parts_of(const Value& value) {
  if (const auto* tuple = value.as_node<ADTObj>()) return &tuple->items;
  if (const auto* data = value.as_node<ConstructorValueObj>()) return &data->parts;
  return nullptr;
}

Value make_data(const Constructor& constructor, std::vector<Value> parts) {
  auto data = make_object<ConstructorValueObj>();
  data->constructor = constructor;
  data->parts = std::move(parts);
  return Value(data);
}

// The tensors of a value, left to right, tuples and data types taken apart.
void collect(const Value& root, std::vector<NDArray>& out) {
  std::vector<Value> pending{root};
  while (!pending.empty()) {
    const Value value = std::move(pending.back());
    pending.pop_back();
    if (const auto* parts = parts_of(value)) {
      pending.insert(pending.end(), parts->rbegin(), parts->rend());
    } else {
      out.push_back(value.as<NDArray>());
    }
  }
}

class Interpreter {
 public:
  Interpreter(IRModule module, const Options& options) : module_(std::move(module)), options_(options) {}

  // With a stack of its own: a list of a data type nests as deep as it is long.
  Typed import(const Value& root) const {
    std::vector<Imported> open{{root, parts_of(root), {}, {}}};
    for (;;) {
      Imported& top = open.back();
      if (top.parts != nullptr && top.items.size() < top.parts->size()) {
        const Value& part = (*top.parts)[top.items.size()];
        open.push_back({part, parts_of(part), {}, {}});
        continue;
      }
      const Typed done = imported(std::move(top));
      open.pop_back();
      if (open.empty()) return done;
      open.back().items.push_back(done.value);
      open.back().types.push_back(done.declared);
    }
  }

  Typed call(const FunctionNode& function, std::vector<Typed> args) {
    if (const std::optional<Typed> result = call_external(function, args, function.span)) return *result;
    return call_function(prepared(function), std::move(args), {}, function.span).run();
  }

  Typed eval_closed(const Expr& expr) {
    Frame frame;
    return eval(relay::place_lets(relay::unique_binders(expr), relay::Bind::across_branches), frame).run();
  }

 private:
  // An argument, with what came of the first of its parts.
  struct Imported {
    Value value;
    const std::vector<Value>* parts;
    std::vector<Value> items;
    Array<Type> types;
  };

  Typed imported(Imported argument) const {
    if (argument.parts != nullptr) {
      const auto* data = argument.value.as_node<ConstructorValueObj>();
      const Value value = data != nullptr ? make_data(data->constructor, std::move(argument.items))
                                          : Value(make_adt(0, std::move(argument.items)));
      return {value, make_tuple_type(argument.types)};
    }
    if (const auto* cell = argument.value.as_node<RefValueObj>()) {
      const Type content = cell->content.declared;
      return {argument.value, content ? Type(make_ref_type(content)) : content};
    }
    const NDArray tensor = argument.value.as<NDArray>();
    if (!tensor) throw UserError("an argument is None; a tensor was expected");
    const Type declared = make_tensor_type(tensor.shape(), tensor.dtype());
    return {Value(working(tensor)), declared};
  }

  // A function of the module with what crosses its branches bound: evaluated where that says, not where a branch or a
  // closure happens to ask for it first. A frame has one value for each variable: no two binders of a function may
  // share one.
  const FunctionNode& prepared(const FunctionNode& function) {
    relay::Function& known = prepared_[&function];
    if (!known) {
      const auto own = relay::unique_binders(Expr(ref(&function))).cast<FunctionNode>();
      const Expr body = relay::place_lets(own->body, relay::Bind::across_branches);
      known = copy_with(*own, [&](FunctionNode& copy) { copy.body = body; });
    }
    return *known;
  }

  static void check_call(const FunctionNode& function, const std::vector<Typed>& args, const Span& span) {
    if (args.size() != function.params.size()) {
      throw_at(span, "call",
               fmt::format("the function takes {}, got {}", count_of(function.params.size(), "argument"), args.size()));
    }
    std::vector<Type> types;
    for (const Typed& arg : args) types.push_back(arg.declared);
    check_arguments(function, types);
  }

  static bool has_tensors_only(const Value& root) {
    std::vector<Value> pending{root};
    while (!pending.empty()) {
      const Value value = std::move(pending.back());
      pending.pop_back();
      if (const auto* tuple = value.as_node<ADTObj>()) {
        pending.insert(pending.end(), tuple->items.begin(), tuple->items.end());
      } else if (!value.is<NDArray>()) {
        return false;
      }
    }
    return true;
  }

  // Returns the result of a call that the code of another compiler computes; nothing for all other calls.
  std::optional<Typed> call_external(const FunctionNode& function, const std::vector<Typed>& args, const Span& span) {
    if (!options_.call_external || options_.precision != Precision::declared || !relay::compiler_of(function) ||
        !captures_of(ref(&function)).empty())
      return std::nullopt;
    std::vector<Value> values;
    for (const Typed& arg : args) values.push_back(arg.value);
    if (!std::all_of(values.begin(), values.end(), has_tensors_only)) return std::nullopt;
    check_call(function, args, span);
    const std::optional<Value> result = options_.call_external(ref(&function), values);
    return result ? std::optional<Typed>(import(*result)) : std::nullopt;
  }

  Nested<Typed> call_function(const FunctionNode& function, std::vector<Typed> args, Closure closure, Span span) {
    check_call(function, args, span);
    Frame frame;
    if (closure && closure->self) frame.vars[closure->self.get()] = Typed{Value(closure), Type()};
    frame.closure = std::move(closure);
    for (size_t i = 0; i < args.size(); ++i) {
      frame.vars[function.params[i].get()] = std::move(args[i]);
    }
    Typed result = co_await eval(function.body, frame);
    co_return result;
  }

  // Bounds the memory of a run: how deep calls and branches nest, the program decides.
  class DepthGuard {
   public:
    DepthGuard(Interpreter& owner, const Span& span) : owner_(owner) {
      if (++owner_.depth_ > owner_.options_.max_depth) {
        --owner_.depth_;
        throw_at(span, "call",
                 fmt::format("calls and branches are nested more than {} deep", owner_.options_.max_depth));
      }
    }
    ~DepthGuard() { --owner_.depth_; }
    DepthGuard(const DepthGuard&) = delete;

   private:
    Interpreter& owner_;
  };

  NDArray working(const NDArray& tensor) const {
    const bool wide = options_.precision == Precision::float64 && widens(tensor.dtype());
    return ops::as_dtype(tensor.to_dense(), wide ? DataType::float_(64) : tensor.dtype());
  }

  // The nodes whose values `expr` needs first; branches and function bodies are not among them.
  static void push_operands(const ExprNode& expr, std::vector<Expr>& out) {
    if (const auto* call = as<CallNode>(expr)) {
      if (!call->op.is<OpNode>()) out.push_back(call->op);
      for (const Expr& arg : call->args) out.push_back(arg);
    } else if (const auto* tuple = as<TupleNode>(expr)) {
      for (const Expr& item : tuple->items) out.push_back(item);
    } else if (const auto* item = as<TupleGetItemNode>(expr)) {
      out.push_back(item->tuple);
    } else if (const auto* branch = as<IfNode>(expr)) {
      out.push_back(branch->cond);
    } else if (const auto* match = as<MatchNode>(expr)) {
      out.push_back(match->data);
    } else if (const auto* create = as<relay::RefCreateNode>(expr)) {
      out.push_back(create->value);
    } else if (const auto* read = as<relay::RefReadNode>(expr)) {
      out.push_back(read->ref);
    } else if (const auto* write = as<relay::RefWriteNode>(expr)) {
      out.push_back(write->ref);
      out.push_back(write->value);
    }
  }
  template <typename T>
  static const T* as(const ExprNode& node) {
    return node.is_instance<T>() ? static_cast<const T*>(&node) : nullptr;
  }

  // Evaluates along data edges with an explicit stack; a node is visited twice: before and after its operands.
  Nested<Typed> eval(Expr root, Frame& frame) {
    Expr at = root;
    // A chain of lets is a loop.
    while (const auto* let = at.as<LetNode>()) {
      if (const auto* function = let->value.as<FunctionNode>()) {
        frame.vars[let->var.get()] = make_closure(ref(function), frame, let->var);
      } else {
        Typed value = co_await eval(let->value, frame);
        frame.vars[let->var.get()] = std::move(value);
      }
      at = let->body;
    }
    std::vector<std::pair<Expr, bool>> stack{{at, false}};
    while (!stack.empty()) {
      auto [node, ready] = stack.back();
      if (frame.done.contains(node.get())) {
        stack.pop_back();
        continue;
      }
      if (!ready) {
        stack.back().second = true;
        std::vector<Expr> operands;
        push_operands(*node.get(), operands);
        for (size_t i = operands.size(); i-- > 0;) {
          if (!frame.done.contains(operands[i].get())) stack.emplace_back(operands[i], false);
        }
        continue;
      }
      stack.pop_back();
      poll_interrupt();
      if (enters_a_body(node)) {
        Typed value = co_await eval_body(node, frame);
        frame.done.emplace(node.get(), std::move(value));
      } else {
        frame.done.emplace(node.get(), eval_node(node, frame));
      }
    }
    co_return frame.done.at(at.get());
  }

  // Calls of functions, branches, clauses and lets run a body.
  static bool enters_a_body(const Expr& expr) {
    if (const auto* call = expr.as<CallNode>()) return call->as_op() == nullptr || relay::is_call(*call, op::kCallDps);
    return expr.is<IfNode>() || expr.is<LetNode>() || expr.is<MatchNode>();
  }

  Nested<Typed> eval_body(Expr expr, Frame& frame) {
    DepthGuard guard(*this, expr->span);
    const auto* call = expr.as<CallNode>();
    Typed result;
    if (call == nullptr) {
      result = co_await eval(body_of(expr, frame), frame);
    } else if (call->as_op() != nullptr) {
      result = co_await eval_call_dps(*call, operands_of(*call, frame));
    } else {
      result = co_await call_value(frame.done.at(call->op.get()).value, operands_of(*call, frame), call->span);
    }
    co_return result;
  }

  // Returns the expression whose value is the value of a let, an if or a match: the body or the taken branch.
  Expr body_of(const Expr& expr, Frame& frame) {
    if (const auto* branch = expr.as<IfNode>()) {
      const NDArray cond = frame.done.at(branch->cond.get()).value.as<NDArray>();
      if (!cond || cond.num_elements() != 1) throw_at(branch->span, "if", "the condition is not a scalar");
      return element_as_double(cond.tensor(), 0) != 0 ? branch->true_branch : branch->false_branch;
    }
    const auto* match = expr.as<MatchNode>();
    if (match == nullptr) return expr;
    const Typed& data = frame.done.at(match->data.get());
    for (const relay::Clause& clause : match->clauses) {
      if (bind(clause->lhs, data, frame, match->span)) return clause->rhs;
    }
    throw_at(match->span, "match", "no clause covers the value");
  }

  // Binds the pattern's variables where it fits the value.
  bool bind(const Pattern& root, const Typed& value, Frame& frame, const Span& span) {
    std::vector<std::pair<Pattern, Typed>> pending{{root, value}};
    while (!pending.empty()) {
      const auto [pattern, at] = pending.back();
      pending.pop_back();
      if (const auto* var = pattern.as<relay::PatternVarNode>()) frame.vars[var->var.get()] = at;
      const auto* constructor = pattern.as<relay::PatternConstructorNode>();
      const auto* tuple = pattern.as<relay::PatternTupleNode>();
      if (constructor == nullptr && tuple == nullptr) continue;
      const std::vector<Value>* values = parts_of(at.value);
      const auto* types = at.declared.as<TupleTypeNode>();
      const Array<Pattern>& parts = constructor != nullptr ? constructor->patterns : tuple->patterns;
      if (values == nullptr || types == nullptr)
        throw_at(span, "match", "the pattern has parts, but the value is neither a tuple nor made by a constructor");
      const auto* data = at.value.as_node<ConstructorValueObj>();
      if ((constructor == nullptr) != (data == nullptr))
        throw_at(span, "match",
                 data != nullptr ? "a tuple pattern does not fit a value of a data type"
                                 : "a constructor's pattern does not fit a tuple");
      if (data != nullptr && tag_of(*data->constructor) != tag_of(*constructor->constructor)) return false;
      if (parts.size() != values->size())
        throw_at(span, "match", fmt::format("the pattern has {} parts, the value {}", parts.size(), values->size()));
      for (size_t i = 0; i < parts.size(); ++i) pending.push_back({parts[i], {(*values)[i], types->items[i]}});
    }
    return true;
  }

  // The module gives constructors their tags when it takes their type.
  static int32_t tag_of(const ConstructorNode& constructor) {
    if (constructor.tag < 0)
      throw_at(constructor.span, constructor.name_hint, "the constructor's type is not defined in the module");
    return constructor.tag;
  }

  const std::vector<relay::Var>& captures_of(const relay::Function& function) {
    if (!captures_.contains(function.get())) relay::find_captures(function, captures_);
    return captures_.at(function.get());
  }

  Typed make_closure(relay::Function function, const Frame& frame, relay::Var self = {}) {
    auto closure = make_object<ClosureObj>();
    for (const relay::Var& var : captures_of(function)) {
      if (const Typed* bound = frame.find(var.get())) closure->captured.emplace(var.get(), *bound);
    }
    closure->function = std::move(function);
    closure->self = std::move(self);
    return {Value(closure), Type()};
  }

  Typed eval_node(const Expr& expr, Frame& frame) {
    if (const auto* constant = expr.as<ConstantNode>())
      return {Value(working(constant->data).as_read_only()), constant->tensor_type()};
    if (const auto* var = expr.as<VarNode>()) return lookup(*var, frame);
    if (const auto* call = expr.as<CallNode>()) {
      const std::vector<Typed> operands = operands_of(*call, frame);
      // Borders of parts for other compilers, and checkpoints, may mark a value that is not a tensor.
      if (relay::is_call_of_any(*call, {&op::kCompilerBegin, &op::kCompilerEnd, &op::kCheckpoint}))
        return operands.at(0);
      return eval_op(*call->as_op(), *call, operands);
    }
    if (const auto* tuple = expr.as<TupleNode>()) return eval_tuple(*tuple, frame);
    if (const auto* item = expr.as<TupleGetItemNode>()) return eval_item(*item, frame);
    if (const auto* function = expr.as<FunctionNode>()) return make_closure(ref(function), frame);
    if (expr.is<ConstructorNode>()) return {Value(expr), Type()};
    if (const auto* global = expr.as<GlobalVarNode>()) return {Value(module_->lookup(global->name_hint)), Type()};
    if (const auto* create = expr.as<relay::RefCreateNode>()) {
      auto cell = make_object<RefValueObj>();
      cell->content = frame.done.at(create->value.get());
      return {Value(cell), Type()};
    }
    if (const auto* read = expr.as<relay::RefReadNode>()) return cell_of(read->ref, frame)->content;
    if (const auto* write = expr.as<relay::RefWriteNode>()) {
      cell_of(write->ref, frame)->content = frame.done.at(write->value.get());
      return {Value(make_adt(0, {})), make_tuple_type({})};
    }
    throw_at(expr->span, std::string(expr->key()), fmt::format("the interpreter does not run {} yet", expr->key()));
  }

  RefValueObj* cell_of(const Expr& expr, Frame& frame) {
    const auto* cell = frame.done.at(expr.get()).value.as_node<RefValueObj>();
    if (cell == nullptr) throw_at(expr->span, "ref", "the operand is not a reference");
    return const_cast<RefValueObj*>(cell);
  }

  static Typed lookup(const VarNode& var, Frame& frame) {
    const Typed* bound = frame.find(&var);
    if (bound == nullptr) throw_at(var.span, "%" + var.name_hint, "the variable is not bound here");
    return *bound;
  }

  Typed eval_tuple(const TupleNode& tuple, Frame& frame) {
    std::vector<Value> items;
    Array<Type> types;
    for (const Expr& item : tuple.items) {
      const Typed& typed = frame.done.at(item.get());
      items.push_back(typed.value);
      types.push_back(typed.declared);
    }
    return {Value(make_adt(0, std::move(items))), make_tuple_type(types)};
  }

  static Typed eval_item(const TupleGetItemNode& item, Frame& frame) {
    const Typed& tuple = frame.done.at(item.tuple.get());
    const auto* items = tuple.value.as_node<ADTObj>();
    const auto* types = tuple.declared.as<TupleTypeNode>();
    if (items == nullptr || types == nullptr) throw_at(item.span, "tuple", "the operand of .i is not a tuple");
    const auto index = static_cast<size_t>(item.index);
    if (item.index < 0 || index >= items->items.size()) {
      throw_at(item.span, "tuple",
               fmt::format("there is no item {} in a tuple of {} items", item.index, items->items.size()));
    }
    return {items->items[index], types->items[index]};
  }

  static std::vector<Typed> operands_of(const CallNode& call, const Frame& frame) {
    std::vector<Typed> args;
    for (const Expr& arg : call.args) args.push_back(frame.done.at(arg.get()));
    return args;
  }

  // Returns the function of a closure, or the function itself; null for a constructor.
  static const FunctionNode* called_function(const Value& function_value) {
    const auto* closure = function_value.as_node<ClosureObj>();
    return closure != nullptr ? closure->function.get() : function_value.as_node<FunctionNode>();
  }

  Nested<Typed> call_value(Value function_value, std::vector<Typed> args, Span span) {
    Typed result;
    const FunctionNode* external = called_function(function_value);
    const std::optional<Typed> given = external == nullptr ? std::nullopt : call_external(*external, args, span);
    if (given) {
      result = *given;
    } else if (const auto* called = function_value.as_node<ClosureObj>()) {
      const auto closure = function_value.as<Closure>();
      result = co_await call_function(*called->function, std::move(args), closure, span);
    } else if (const auto* function = function_value.as_node<FunctionNode>()) {
      result = co_await call_function(prepared(*function), std::move(args), {}, span);
    } else if (const auto* constructor = function_value.as_node<ConstructorNode>()) {
      result = construct(*constructor, args, span);
    } else {
      throw_at(span, "call", fmt::format("a {} cannot be called", kind_name(function_value.raw())));
    }
    co_return result;
  }

  static Typed construct(const ConstructorNode& constructor, const std::vector<Typed>& args, const Span& span) {
    if (args.size() != constructor.inputs.size())
      throw_at(span, constructor.name_hint,
               fmt::format("it takes {}, got {}", count_of(constructor.inputs.size(), "argument"), args.size()));
    static_cast<void>(tag_of(constructor));  // a match asks for it
    std::vector<Value> items;
    Array<Type> types;
    for (const Typed& arg : args) {
      items.push_back(arg.value);
      types.push_back(arg.declared ? arg.declared : make_incomplete_type());
    }
    return {make_data(ref(&constructor), std::move(items)), make_tuple_type(types)};
  }

  // call_dps(function, inputs, outputs): the results are copied into the tensors that `outputs` has.
  Nested<Typed> eval_call_dps(const CallNode& call, std::vector<Typed> args) {
    const auto* inputs = args.size() == 3 ? args[1].value.as_node<ADTObj>() : nullptr;
    const auto* input_types = inputs != nullptr ? args[1].declared.as<TupleTypeNode>() : nullptr;
    if (input_types == nullptr)
      throw_at(call.span, call.as_op()->name, "expected a function, a tuple of inputs and a tuple of outputs");
    std::vector<Typed> operands;
    for (size_t i = 0; i < inputs->items.size(); ++i)
      operands.push_back({Value(inputs->items[i].as<NDArray>().to_dense()), input_types->items[i]});
    const Typed result = co_await call_value(args[0].value, std::move(operands), call.span);
    std::vector<NDArray> results, outputs;
    collect(result.value, results);
    collect(args[2].value, outputs);
    if (results.size() != outputs.size())
      throw_at(call.span, call.as_op()->name,
               fmt::format("the function gives {} results, but {} outputs are given", results.size(), outputs.size()));
    for (size_t i = 0; i < results.size(); ++i) outputs[i].copy_from(results[i]);
    co_return Typed{Value(make_adt(0, {})), make_tuple_type({})};
  }

  // Value inference and relations see the actual data: the interpreter knows everything.
  static std::optional<std::vector<PrimExpr>> value_of(const NDArray& tensor) {
    if (!tensor || tensor.num_elements() > 4096 || tensor.dtype().is_float()) return std::nullopt;
    return relay::known_integers(tensor);
  }

  static void flatten(const Typed& typed, std::vector<NDArray>& data, std::vector<TensorType>& types) {
    const size_t before = data.size();
    collect(typed.value, data);
    for (size_t i = before; i < data.size(); ++i) types.push_back(make_tensor_type(data[i].shape(), data[i].dtype()));
  }

  TensorType working_type(const Type& declared, const CallNode& call) const {
    const auto* tensor = declared.as<TensorTypeNode>();
    if (tensor == nullptr) throw_at(call.span, call.as_op()->name, "a result is not a tensor");
    const bool wide = options_.precision == Precision::float64 && widens(tensor->dtype);
    return wide ? make_tensor_type(tensor->shape, DataType::float_(64)) : ref(tensor);
  }

  // The declared type with the sizes that only the data could tell.
  static Type actual_type(const Type& declared, const NDArray& result) {
    const auto* tensor = declared.as<TensorTypeNode>();
    if (std::none_of(tensor->shape.begin(), tensor->shape.end(), is_any)) return declared;
    return make_tensor_type(result.shape(), tensor->dtype);
  }

  Typed eval_op(const OpNode& op, const CallNode& call, const std::vector<Typed>& args) {
    const auto* relation = op.find(relay::kTypeRelation);
    const auto* eval = op.find(ops::kEval);
    if (relation == nullptr || eval == nullptr)
      throw_at(
          call.span, op.name,
          "the op has no reference evaluation; in Python relay.op.register_compute or register_packed_func give an "
          "op one (docs/user-ops.md)");
    std::vector<Type> arg_types;
    std::vector<NDArray> data;
    std::vector<TensorType> data_types;
    for (const Typed& arg : args) {
      if (!arg.declared) throw_at(call.span, op.name, "an argument is neither a tensor nor a tuple of tensors");
      arg_types.push_back(arg.declared);
      flatten(arg, data, data_types);
    }
    auto constant = [&](size_t i) {
      return i < args.size() && args[i].value.is<NDArray>() ? args[i].value.as<NDArray>() : NDArray();
    };
    const RelationInput question{call, arg_types, [&](size_t i) { return value_of(constant(i)); }, constant};
    const Type declared = (*relation)(question);
    if (!declared) throw_at(call.span, op.name, "the result type is not determined by the arguments");
    return run_eval(*eval, call, std::move(data), std::move(data_types), declared);
  }

  // Evaluates the op. An error without a place, such as a result too large for memory, is reported at the op.
  static std::vector<NDArray> evaluated(const ops::EvalFn& eval, const ops::EvalInput& input) {
    try {
      return eval(input);
    } catch (const UserError& error) {
      if (!error.where().op.empty() || typeid(error) != typeid(UserError)) throw;
      throw_at(input.call.span, input.call.as_op()->name, error.message());
    }
  }

  static bool are_empty(const std::vector<TensorType>& types) {
    return !types.empty() && std::all_of(types.begin(), types.end(), [](const TensorType& type) {
      return std::any_of(type->shape.begin(), type->shape.end(), [](const PrimExpr& dim) { return is_int(dim, 0); });
    });
  }
  static std::vector<NDArray> empty_results(const ops::EvalInput& input) {
    std::vector<NDArray> results;
    for (size_t i = 0; i < input.out_types.size(); ++i) results.push_back(input.make_output(i));
    return results;
  }

  Typed run_eval(const ops::EvalFn& eval, const CallNode& call, std::vector<NDArray> data,
                 std::vector<TensorType> data_types, const Type& declared) {
    const auto* tuple = declared.as<TupleTypeNode>();
    std::vector<TensorType> out_types;
    if (tuple == nullptr) {
      out_types.push_back(working_type(declared, call));
    } else {
      for (const Type& item : tuple->items) out_types.push_back(working_type(item, call));
    }
    ops::EvalWork& work = options_.work != nullptr ? *options_.work : unlimited_;
    for (const NDArray& operand : data) work.spend(operand.num_elements());
    const bool has_elements = !are_empty(data_types) || !are_empty(out_types);
    const ops::EvalInput input{call, std::move(data), std::move(data_types), std::move(out_types), &work};
    // Without an element there is nothing to compute or to refuse; what an op makes along its other axes may be huge.
    const bool is_trivial = !has_elements && !relay::is_stateful(*call.as_op());
    std::vector<NDArray> results = is_trivial ? empty_results(input) : evaluated(eval, input);
    if (tuple == nullptr) return {Value(results.at(0)), actual_type(declared, results[0])};
    HEADRACE_CHECK(results.size() == tuple->items.size(), "'{}' gave {} results for {}", call.as_op()->name,
                   results.size(), to_string(declared));
    std::vector<Value> items(results.begin(), results.end());
    return {Value(make_adt(0, std::move(items))), declared};
  }

  IRModule module_;
  Options options_;
  std::unordered_map<const FunctionNode*, relay::Function> prepared_;
  relay::Captures captures_;  // captures of the functions inside them
  int64_t depth_ = 0;
  ops::EvalWork unlimited_{{}};
};

}  // namespace

void ConstructorValueObj::fields(FieldList<ConstructorValueObj>& f) {
  f.field<&ConstructorValueObj::constructor>("constructor", {.doc = "what made the value"});
  f.field<&ConstructorValueObj::parts>("fields", {.doc = "what it was made of"});
}

Value read_ref(const Value& value) {
  const auto* cell = value.as_node<RefValueObj>();
  if (cell == nullptr) throw UserError("the value is not a reference");
  return cell->content.value;
}

Value make_ref(const Value& content) {
  auto cell = make_object<RefValueObj>();
  cell->content = Interpreter(make_module(), {}).import(content);
  return Value(cell);
}

void register_types() {
  static_cast<void>(type_of<ConstructorValueObj>());
  static_cast<void>(type_of<RefValueObj>());
}

Value run(const IRModule& given, std::string_view name, const std::vector<Value>& args, const Options& options) {
  const IRModule module = snapshot(given);  // it is read at every call, while others may add to it
  const BaseFunc function = module->lookup(name);
  const auto* body = function.as<FunctionNode>();
  if (body == nullptr)
    throw_user_error("'@{}' is a {}, which the relay interpreter does not run", name, function->key());
  Interpreter interpreter(module, options);
  std::vector<Typed> typed;
  for (const Value& arg : args) typed.push_back(interpreter.import(arg));
  return interpreter.call(*body, std::move(typed)).value;
}

std::vector<NDArray> run_main(const IRModule& module, const std::vector<NDArray>& args, const Options& options) {
  std::vector<NDArray> results;
  collect(run(module, "main", std::vector<Value>(args.begin(), args.end()), options), results);
  return results;
}

Value run_expr(const Expr& expr, const Options& options) {
  return Interpreter(make_module(), options).eval_closed(expr).value;
}

}  // namespace headrace::interp
