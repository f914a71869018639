#include "passes/functions/eta_expand.h"

#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/renewed.h"
#include "relay/function_attrs.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;

namespace {

// Makes a function literal that calls `callee`.
Expr expanded(const Expr& callee, const FuncTypeNode& type) {
  Array<TypeVar> type_params;
  Array<Type> type_args;
  relay::TypeBindings bindings;
  for (const TypeVar& param : type.type_params) {
    const auto renamed = make_type_var(param->name_hint, param->kind);
    type_params.push_back(renamed);
    type_args.push_back(renamed);
    bindings.types.emplace(param.get(), renamed);
  }
  const auto renamed = [&](const Type& t) {
    return relay::instantiate(t, [](const Object*) { return false; }, bindings);
  };
  Array<relay::Var> params;
  Array<Expr> args;
  for (const Type& arg : type.arg_types) {
    params.push_back(relay::make_var(fmt::format("x{}", params.size()), renamed(arg), callee->span));
    args.push_back(params.back());
  }
  const Expr call = relay::make_call(callee, args, Attrs(), type_args, callee->span);
  return relay::make_function(params, call, renamed(type.ret_type), type_params, {}, callee->span);
}

class Expander {
 public:
  Expander(const IRModule& module, const EtaOptions& options) : module_(module), options_(options) {}

  Expr run(const Expr& body) {
    return value(relay::rewrite_post_order(body, relay::is_entered, [&](const Expr&, const Expr& after) {
      std::vector<Expr> children = relay::children_of(after);
      for (size_t i = after.is<CallNode>() ? 1 : 0; i < children.size(); ++i) children[i] = value(children[i]);
      return relay::with_children(after, children);
    }));
  }

 private:
  Expr value(const Expr& e) const {
    if (const auto* constructor = e.as<ConstructorNode>(); constructor != nullptr && options_.expand_constructor) {
      const Type type = type_of(*constructor);
      return type.is<FuncTypeNode>() ? expanded(e, *type.as<FuncTypeNode>()) : e;
    }
    const auto* global = e.as<GlobalVarNode>();
    if (global == nullptr || !options_.expand_global_var) return e;
    const auto* function = module_->lookup(global->name_hint).as<FunctionNode>();
    const auto* type = function == nullptr ? nullptr : function->checked_type().as<FuncTypeNode>();
    return type == nullptr ? e : expanded(e, *type);
  }

  // Returns the constructor's type, with all of its type parameters whatever the use determines.
  Type type_of(const ConstructorNode& constructor) const {
    const TypeData data = module_->type_definitions().at(constructor.belong_to);
    Array<Type> args;
    for (const TypeVar& var : data->type_vars) args.push_back(var);
    const Type result = make_type_call(constructor.belong_to, args);
    return make_func_type(constructor.inputs, result, data->type_vars);
  }

  const IRModule& module_;
  const EtaOptions& options_;
};

}  // namespace

EtaOptions eta_options(const pass::PassContext& context) {
  const EtaOptions defaults;
  return {context.option<bool>("relay.EtaExpand.expand_constructor").value_or(defaults.expand_constructor),
          context.option<bool>("relay.EtaExpand.expand_global_var").value_or(defaults.expand_global_var)};
}

IRModule eta_expand(const IRModule& module, const EtaOptions& options) {
  return rewrite_bodies(module, [&](const Expr& body) { return Expander(module, options).run(body); });
}

}  // namespace headrace::passes
