#include "passes/functions/defunctionalization.h"

#include "passes/functions/function_values.h"
#include "passes/functions/lambda_lift.h"
#include "passes/functions/remove_unused_functions.h"
#include "passes/functions/specialize.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::Clause;
using relay::FunctionNode;
using relay::MatchNode;
using relay::Pattern;

namespace {

bool is_function_value(const Expr& e) {
  const auto* constructor = e.as<ConstructorNode>();
  return e.is<FunctionNode>() || e.is<GlobalVarNode>() || (constructor != nullptr && !constructor->inputs.empty());
}

// Returns whether a function in place `child` of a node is used as a value. A callee is not, nor is an argument of an
// op (call_dps takes the function that it calls), nor is the variable of a let, which children_of lists.
bool takes_function_values(const Expr& parent, size_t child) {
  const auto* call = parent.as<CallNode>();
  if (call != nullptr) return child > 0 && call->as_op() == nullptr;
  const auto* let = parent.as<relay::LetNode>();
  return let == nullptr || child != 1;
}

bool is_called_in_place(const Expr& callee) {
  return callee.is<OpNode>() || callee.is<GlobalVarNode>() || callee.is<ConstructorNode>() || callee.is<FunctionNode>();
}

bool uses_function_values(const IRModule& module) {
  bool found = false;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr) continue;
    found = found || is_function_value(node->body);
    relay::post_order(node->body, [&](const Expr& e) {
      const auto* call = e.as<CallNode>();
      found = found || (call != nullptr && !is_called_in_place(call->op));
      const std::vector<Expr> children = relay::children_of(e);
      for (size_t i = 0; i < children.size(); ++i)
        found = found || (takes_function_values(e, i) && is_function_value(children[i]));
    });
  }
  return found;
}

// Makes literals with type parameters that use nothing from around them functions of the module, where they become one
// function for each of their types.
IRModule with_generic_literals_named(const IRModule& module) {
  const IRModule result = snapshot(module);
  size_t count = 0;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || !node->type_params.empty() || relay::is_left_alone(*node)) continue;
    const auto is_generic = [](const Expr& e) {
      const auto* literal = e.as<FunctionNode>();
      return literal != nullptr && literal->attrs.empty() && !literal->type_params.empty();
    };
    const std::string host = var->name_hint;
    const Expr body = relay::rewrite_post_order(
        node->body, [&](const Expr& e) { return relay::is_entered(e) && !is_generic(e); },
        [&](const Expr&, const Expr& after) -> Expr {
          if (!is_generic(after) || !relay::free_vars(after).empty()) return after;
          std::string name;
          do name = fmt::format("{}_fn_{}", host, ++count);
          while (result->find_global_var(name));
          const GlobalVar global = make_global_var(name);
          result->add_function(global, after.cast<FunctionNode>());
          return global;
        });
    if (body != node->body)
      result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.body = body; }), true);
  }
  return count == 0 ? module : relay::infer_type(result);
}

class Converter {
 public:
  explicit Converter(const IRModule& module)
      : module_(module), result_(snapshot(module)), values_(module), holders_(module) {}

  IRModule run() {
    convert_types();
    for (const auto& [var, function] : module_->functions()) {
      const auto* node = function.as<FunctionNode>();
      if (node == nullptr) continue;
      check_entry(*var, *node);
      if (!relay::is_left_alone(*node)) result_->add_function(var, convert(*node), true);
    }
    values_.define(result_);
    return relay::infer_type(result_);
  }

 private:
  void check_entry(const GlobalVarNode& var, const FunctionNode& function) const {
    const bool is_entry = var.name_hint == "main" || function.attrs.contains("global_symbol");
    if (!is_entry && !relay::is_left_alone(function)) return;
    const auto* type = function.checked_type().as<FuncTypeNode>();
    Array<Type> parts = type->arg_types;
    parts.push_back(type->ret_type);
    const bool has_any = std::any_of(parts.begin(), parts.end(), contains_function);
    std::string holder;
    for (const Type& part : parts) {
      if (holder.empty()) holder = holders_.find_in(part);
    }
    if (!has_any && holder.empty()) return;
    const std::string where = has_any ? "" : fmt::format(", and the data type {} holds some", holder);
    throw_at(function.span, "@" + var.name_hint,
             fmt::format("its type is {}; what is called from outside cannot take or give functions{}",
                         to_string(function.checked_type()), where));
  }

  // Converts data types with fields that are functions.
  void convert_types() {
    for (const auto& [var, data] : module_->type_definitions()) {
      Array<Constructor> constructors;
      bool is_changed = false;
      for (const Constructor& constructor : data->constructors) {
        const bool changes = std::any_of(constructor->inputs.begin(), constructor->inputs.end(), contains_function);
        constructors.push_back(changes ? converted(*constructor, *data) : constructor);
        is_changed = is_changed || changes;
      }
      if (!is_changed) continue;
      result_->add_type_def(copy_with(*data, [&](TypeDataNode& copy) { copy.constructors = constructors; }), true);
    }
  }

  Constructor converted(const ConstructorNode& constructor, const TypeDataNode& data) {
    Array<Type> inputs;
    for (const Type& type : constructor.inputs) {
      if (contains_function(type) && !data.type_vars.empty())
        throw_at(constructor.span, constructor.name_hint,
                 fmt::format("the data type {} has type parameters and holds functions; remove its type parameters",
                             data.header->name_hint));
      inputs.push_back(values_.encoded(type, constructor.span));
    }
    const Constructor made = copy_with(constructor, [&](ConstructorNode& copy) { copy.inputs = inputs; });
    constructors_.emplace(&constructor, made);
    return made;
  }

  relay::Function convert(const FunctionNode& function) {
    const Expr root = ref(&function);
    done_.clear();
    relay::post_order(root, relay::is_entered, [&](const Expr& e) { done_.emplace(e.object(), rewritten(e)); });
    return done_.at(root.object()).cast<FunctionNode>();
  }

  Expr rewritten(const Expr& e) {
    if (!relay::is_entered(e)) return e;  // a unit keeps its content
    if (const auto* var = e.as<relay::VarNode>()) return converted_var(*var);
    if (e.is<ConstructorNode>()) {
      const auto made = constructors_.find(e.object());
      return made == constructors_.end() ? e : Expr(made->second);
    }
    const std::vector<Expr> before = relay::children_of(e);
    std::vector<Expr> after;
    for (size_t i = 0; i < before.size(); ++i) {
      const bool is_value = takes_function_values(e, i) && is_function_value(before[i]);
      after.push_back(is_value && !is_param(e, i, before.size()) ? value(before[i]) : done_.at(before[i].object()));
    }
    const Expr result = relay::with_children(e, after);
    if (const auto* call = result.as<CallNode>()) return converted_call(*e.as<CallNode>(), *call);
    if (const auto* function = result.as<FunctionNode>()) return converted_function(*function);
    if (const auto* match = result.as<MatchNode>()) return converted_match(*match);
    return result;
  }

  static bool is_param(const Expr& e, size_t child, size_t num_children) {
    return e.is<FunctionNode>() && child + 1 < num_children;
  }

  Expr converted_var(const relay::VarNode& var) {
    const Type type = values_.encoded(var.type_annotation, var.span);
    return type == var.type_annotation ? Expr(ref(&var)) : Expr(relay::make_var(var.name_hint, type, var.span));
  }

  Expr converted_function(const FunctionNode& function) {
    const Type type = values_.encoded(function.ret_type, function.span);
    if (type == function.ret_type) return ref(&function);
    return copy_with(function, [&](FunctionNode& copy) { copy.ret_type = type; });
  }

  Expr converted_call(const CallNode& before, const CallNode& after) {
    if (before.as_op() != nullptr) return ref(&after);
    if (!is_called_in_place(before.op)) {
      const auto* type = before.op->checked_type().as<FuncTypeNode>();
      return values_.apply(*type, after.op, after.args, before.span);
    }
    const auto* literal = before.op.as<FunctionNode>();
    const CallNode* inner = literal == nullptr ? nullptr : handed_on(*literal);
    if (inner != nullptr) {
      Array<Expr> args = captured(*literal, *inner);
      for (const Expr& arg : after.args) args.push_back(arg);
      return relay::make_call(done_.at(inner->op.object()), args, Attrs(), {}, before.span);
    }
    if (!std::any_of(after.type_args.begin(), after.type_args.end(), contains_function)) return ref(&after);
    Array<Type> type_args;
    for (const Type& type : after.type_args) type_args.push_back(values_.encoded(type, before.span));
    return copy_with(after, [&](CallNode& copy) { copy.type_args = type_args; });
  }

  Expr converted_match(const MatchNode& match) {
    if (constructors_.empty()) return ref(&match);
    Array<Clause> clauses;
    for (const Clause& clause : match.clauses)
      clauses.push_back(relay::make_clause(converted_pattern(clause->lhs), clause->rhs));
    return copy_with(match, [&](MatchNode& copy) { copy.clauses = clauses; });
  }

  // Patterns are as deep as the user wrote them.
  Pattern converted_pattern(const Pattern& pattern) const {
    const auto each = [&](const Array<Pattern>& patterns) {
      Array<Pattern> result;
      for (const Pattern& one : patterns) result.push_back(converted_pattern(one));
      return result;
    };
    Pattern result = pattern;
    if (const auto* constructor = pattern.as<relay::PatternConstructorNode>()) {
      const auto made = constructors_.find(constructor->constructor.object());
      result = relay::make_pattern_constructor(made == constructors_.end() ? constructor->constructor : made->second,
                                               each(constructor->patterns));
    } else if (const auto* tuple = pattern.as<relay::PatternTupleNode>()) {
      result = relay::make_pattern_tuple(each(tuple->patterns));
    }
    if (result != pattern) result->span = pattern->span;
    return result;
  }

  Array<Expr> captured(const FunctionNode& literal, const CallNode& inner) const {
    Array<Expr> args;
    for (size_t i = 0; i + literal.params.size() < inner.args.size(); ++i)
      args.push_back(done_.at(inner.args[i].object()));
    return args;
  }

  // Converts a function that is used as a value.
  Expr value(const Expr& e) {
    const auto* literal = e.as<FunctionNode>();
    const CallNode* inner = literal == nullptr ? nullptr : handed_on(*literal);
    if (literal != nullptr && inner == nullptr) check_unit(*literal);
    const Type type = literal != nullptr ? e->checked_type() : type_of(e);
    const auto* function = type.as<FuncTypeNode>();
    std::vector<Type> types;
    for (size_t i = 0; inner != nullptr && i + literal->params.size() < inner->args.size(); ++i)
      types.push_back(inner->args[i]->checked_type());
    const Expr callee = inner == nullptr ? e : inner->op;
    return values_.value(*function, done_.at(callee.object()),
                         inner == nullptr ? Array<Expr>() : captured(*literal, *inner), types, e->span);
  }

  // Refuses a literal that no function of the module was made of, and that cannot stay as it is.
  static void check_unit(const FunctionNode& literal) {
    if (!literal.type_params.empty())
      throw_at(literal.span, "fn",
               "a function with type parameters is used as a value; make it a function of the module, or write one for "
               "each of its types");
    if (!relay::free_vars(ref(&literal)).empty())
      throw_at(literal.span, "fn", "a unit that captures variables is used as a value");
  }

  Type type_of(const Expr& e) const {
    if (const auto* global = e.as<GlobalVarNode>()) return module_->lookup(global->name_hint)->checked_type();
    const auto* constructor = e.as<ConstructorNode>();
    const TypeData data = module_->type_definitions().at(constructor->belong_to);
    if (!data->type_vars.empty())
      throw_at(e->span, constructor->name_hint,
               "a constructor of a data type with type parameters is used as a value; write fn (%x: T) { ... }");
    return make_func_type(constructor->inputs, constructor->belong_to);
  }

  const IRModule& module_;
  IRModule result_;
  FunctionValues values_;
  FunctionHolders holders_;
  std::unordered_map<const Object*, Constructor> constructors_;
  std::unordered_map<const Object*, Expr> done_;
};

}  // namespace

IRModule defunctionalization(const IRModule& module) {
  const IRModule reached = remove_unused_functions(module);
  if (!uses_function_values(reached)) return module;
  const IRModule lifted = relay::infer_type(lambda_lift(specialize(with_generic_literals_named(reached))));
  return Converter(lifted).run();
}

}  // namespace headrace::passes
