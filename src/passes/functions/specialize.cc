#include "passes/functions/specialize.h"

#include "passes/rewrite/renewed.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;

namespace {

bool has_type_var(const Type& type) {
  if (type.is<TypeVarNode>()) return true;
  const auto any = [](const Array<Type>& types) { return std::any_of(types.begin(), types.end(), has_type_var); };
  if (const auto* tuple = type.as<TupleTypeNode>()) return any(tuple->items);
  if (const auto* call = type.as<TypeCallNode>()) return any(call->args);
  if (const auto* cell = type.as<RefTypeNode>()) return has_type_var(cell->value);
  const auto* function = type.as<FuncTypeNode>();
  return function != nullptr && (any(function->arg_types) || has_type_var(function->ret_type));
}

Type with_bindings(const Type& type, const relay::TypeBindings& bindings) {
  return relay::instantiate(type, [](const Object*) { return false; }, bindings);
}

class Specializer {
 public:
  explicit Specializer(const IRModule& module) : module_(make_object<IRModuleNode>(*module)) {}

  IRModule run() {
    std::vector<GlobalVar> pending;
    for (const auto& [var, function] : module_->functions) {
      const auto* node = function.as<FunctionNode>();
      if (node != nullptr && node->type_params.empty() && !relay::is_left_alone(*node)) pending.push_back(var);
    }
    while (!pending.empty()) {
      for (const GlobalVar& var : pending) rewrite(var);
      pending = std::exchange(made_, {});
      module_ = relay::infer_type(module_);
    }
    return without_type_params();
  }

 private:
  const FunctionNode* polymorphic(const Expr& callee) const {
    const auto* global = callee.as<GlobalVarNode>();
    const auto* function = global == nullptr ? nullptr : module_->lookup(global->name_hint).as<FunctionNode>();
    return function == nullptr || function->type_params.empty() ? nullptr : function;
  }

  void rewrite(const GlobalVar& var) {
    const relay::Function function = module_->functions.at(var).cast<FunctionNode>();
    const Expr body = relay::rewrite_post_order(function->body, [&](const Expr& before, const Expr& after) {
      const auto* call = before.as<CallNode>();
      return call == nullptr || call->as_op() != nullptr ? after : rewrite_call(*call, *after.as<CallNode>());
    });
    if (body == function->body) return;
    module_->add_function(var, copy_with(*function, [&](FunctionNode& copy) { copy.body = body; }), true);
  }

  Expr rewrite_call(const CallNode& before, const CallNode& after) {
    const FunctionNode* callee = polymorphic(before.op);
    relay::TypeBindings bindings;
    if (callee != nullptr) bindings = bindings_at(before, *callee);
    const Array<Type> expected = parameter_types(before, callee, bindings);
    Array<Expr> args;
    for (size_t i = 0; i < after.args.size(); ++i)
      args.push_back(i < expected.size() ? value(before.args[i], after.args[i], expected[i]) : after.args[i]);
    const bool is_same = std::equal(args.begin(), args.end(), after.args.begin());
    if (callee == nullptr && is_same) return ref(&after);
    return copy_with(after, [&](CallNode& copy) {
      copy.args = args;
      if (callee == nullptr) return;
      copy.op = instance(before.op, *callee, bindings, before.span);
      copy.type_args = {};
    });
  }

  // What the callee's type parameters are.
  static relay::TypeBindings bindings_at(const CallNode& call, const FunctionNode& callee) {
    relay::TypeBindings bindings;
    for (size_t i = 0; i < std::min(callee.type_params.size(), call.type_args.size()); ++i)
      bindings.types.emplace(callee.type_params[i].get(), call.type_args[i]);
    const auto* type = callee.checked_type().as<FuncTypeNode>();
    match_types(type->ret_type, call.checked_type(), bindings);
    for (size_t i = 0; i < std::min(type->arg_types.size(), call.args.size()); ++i) {
      const auto* function = call.args[i]->checked_type().as<FuncTypeNode>();
      const bool is_open =
          call.args[i].is<ConstructorNode>() || (function != nullptr && !function->type_params.empty());
      if (!is_open) match_types(type->arg_types[i], call.args[i]->checked_type(), bindings);
    }
    return bindings;
  }

  // What the callee takes at this call; nothing where that is not known.
  Array<Type> parameter_types(const CallNode& call, const FunctionNode* callee,
                              const relay::TypeBindings& bindings) const {
    if (callee != nullptr) {
      Array<Type> types;
      for (const Type& type : callee->checked_type().as<FuncTypeNode>()->arg_types)
        types.push_back(with_bindings(type, bindings));
      return types;
    }
    if (const auto* constructor = call.op.as<ConstructorNode>()) return field_types(*constructor, call.checked_type());
    const auto* type = call.op->checked_type().as<FuncTypeNode>();
    return type == nullptr ? Array<Type>() : type->arg_types;
  }

  Array<Type> field_types(const ConstructorNode& constructor, const Type& result) const {
    const TypeData data = module_->type_definitions.at(constructor.belong_to);
    const auto* applied = result.as<TypeCallNode>();
    relay::TypeBindings bindings;
    for (size_t i = 0; applied != nullptr && i < std::min(applied->args.size(), data->type_vars.size()); ++i)
      bindings.types.emplace(data->type_vars[i].get(), applied->args[i]);
    Array<Type> types;
    for (const Type& type : constructor.inputs) types.push_back(with_bindings(type, bindings));
    return types;
  }

  // An argument; a function literal in place of what has no single type of its own.
  Expr value(const Expr& before, const Expr& after, const Type& expected) {
    const FunctionNode* function = polymorphic(before);
    const auto* constructor = before.as<ConstructorNode>();
    const auto* type = expected.as<FuncTypeNode>();
    const bool is_open = function != nullptr || (constructor != nullptr && !constructor->inputs.empty());
    if (!is_open || type == nullptr || has_type_var(expected)) return after;
    Expr callee = before;
    if (function != nullptr) {
      relay::TypeBindings bindings;
      const auto* own = function->checked_type().as<FuncTypeNode>();
      for (size_t i = 0; i < std::min(own->arg_types.size(), type->arg_types.size()); ++i)
        match_types(own->arg_types[i], type->arg_types[i], bindings);
      match_types(own->ret_type, type->ret_type, bindings);
      callee = instance(before, *function, bindings, before->span);
    }
    Array<relay::Var> params;
    Array<Expr> args;
    for (const Type& arg : type->arg_types) {
      params.push_back(relay::make_var(fmt::format("x{}", params.size()), arg, before->span));
      args.push_back(params.back());
    }
    const Expr call = relay::make_call(callee, args, Attrs(), {}, before->span);
    return relay::make_function(params, call, type->ret_type, {}, {}, before->span);
  }

  GlobalVar instance(const Expr& callee, const FunctionNode& function, const relay::TypeBindings& bindings,
                     const Span& span) {
    const std::string& name = callee.as<GlobalVarNode>()->name_hint;
    std::string key = name;
    for (const TypeVar& param : function.type_params) {
      const auto bound = bindings.types.find(param.get());
      if (bound == bindings.types.end())
        throw_at(span, "@" + name, fmt::format("what its type parameter {} is here is not known", param->name_hint));
      if (has_type_var(bound->second))
        throw_at(span, "@" + name, "it is used in a function literal that has type parameters");
      if (relay::type_size(bound->second, kMostTypeNodes) >= kMostTypeNodes)
        throw_at(span, "@" + name, "it is used with ever larger types; does it call itself so?");
      key += ", " + to_string(bound->second);
    }
    GlobalVar& known = instances_[key];
    if (!known) known = make_instance(name, function, bindings, span);
    return known;
  }

  GlobalVar make_instance(const std::string& name, const FunctionNode& function, const relay::TypeBindings& bindings,
                          const Span& span) {
    if (instances_.size() > kMostSpecializations)
      throw_at(
          span, "@" + name,
          fmt::format("more than {} copies of functions with type parameters are needed here", kMostSpecializations));
    std::string fresh;
    for (int i = 1; fresh.empty() || module_->find_global_var(fresh); ++i) fresh = fmt::format("{}_{}", name, i);
    const Expr copy = renewed(ref(&function), Renewal{{}, {{}, bindings.types}});
    const auto made = copy_with(*copy.as<FunctionNode>(), [](FunctionNode& f) { f.type_params = {}; });
    const GlobalVar var = module_->add_function(make_global_var(fresh), made);
    made_.push_back(var);
    return var;
  }

  IRModule without_type_params() const {
    const IRModule result = make_object<IRModuleNode>(*module_);
    result->functions = {};
    result->globals_by_name.clear();
    for (const auto& [var, function] : module_->functions) {
      const auto* node = function.as<FunctionNode>();
      if (node == nullptr || node->type_params.empty()) result->add_function(var, function);
    }
    return result;
  }

  IRModule module_;
  std::unordered_map<std::string, GlobalVar> instances_;
  std::vector<GlobalVar> made_;
};

bool has_type_params(const IRModule& module) {
  return std::any_of(module->functions.begin(), module->functions.end(), [](const auto& row) {
    const auto* function = row.second.template as<FunctionNode>();
    return function != nullptr && !function->type_params.empty();
  });
}

}  // namespace

IRModule specialize(const IRModule& module) {
  // Constructors that are handed over have type parameters too.
  const bool has_data = !module->type_definitions.empty();
  return has_data || has_type_params(module) ? relay::infer_type(Specializer(module).run()) : module;
}

}  // namespace headrace::passes
