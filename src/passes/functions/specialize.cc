#include "passes/functions/specialize.h"

#include <deque>

#include "ir/type_parts.h"
#include "object/structural_equal.h"
#include "passes/rewrite/renewed.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;
using relay::LetNode;

namespace {

bool has_type_var(const Type& type) {
  return any_type(type, [](const Type& part) { return part.is<TypeVarNode>(); });
}

Type with_bindings(const Type& type, const relay::TypeBindings& bindings) {
  return relay::instantiate(type, [](const Object*) { return false; }, bindings);
}

// Declares the result type of every relay function, so that a call is checked against a signature and never against
// another body.
IRModule with_signatures(const IRModule& module) {
  const IRModule result = snapshot(module);
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || node->ret_type) continue;
    const Type ret = node->checked_type().as<FuncTypeNode>()->ret_type;
    result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.ret_type = ret; }), true);
  }
  return result;
}

// Returns the type that a child of the node must have where a function may occur that is not an argument; null
// elsewhere.
Type expected_at(const Expr& parent, size_t child, size_t num_children) {
  const Type type = parent->checked_type();
  if (const auto* tuple = type.as<TupleTypeNode>(); parent.is<relay::TupleNode>()) return tuple->items[child];
  if (parent.is<relay::RefCreateNode>()) return type.as<RefTypeNode>()->value;
  if (const auto* write = parent.as<relay::RefWriteNode>())
    return child == 1 ? write->ref->checked_type().as<RefTypeNode>()->value : Type();
  if (parent.is<FunctionNode>()) return child + 1 == num_children ? type.as<FuncTypeNode>()->ret_type : Type();
  if (const auto* let = parent.as<LetNode>(); let != nullptr && child == 0) return let->var->checked_type();
  const bool gives_child = parent.is<relay::IfNode>() || parent.is<relay::MatchNode>() || parent.is<LetNode>();
  return gives_child && child > 0 ? type : Type();
}

class Specializer {
 public:
  explicit Specializer(const IRModule& module) : module_(snapshot(module)), signatures_(with_signatures(module)) {}

  IRModule run() {
    for (const auto& [var, function] : module_->functions()) {
      const auto* node = function.as<FunctionNode>();
      if (node != nullptr && node->type_params.empty() && !relay::is_left_alone(*node)) pending_.push_back(var);
    }
    for (; !pending_.empty(); pending_.pop_front()) rewrite(pending_.front());
    return without_type_params();
  }

 private:
  // A copy of a function: the tuple of what its type parameters are.
  struct Instance {
    TupleType types;
    GlobalVar var;
  };

  const FunctionNode* polymorphic(const Expr& callee) const {
    const auto* global = callee.as<GlobalVarNode>();
    const auto* function = global == nullptr ? nullptr : module_->lookup(global->name_hint).as<FunctionNode>();
    return function == nullptr || function->type_params.empty() ? nullptr : function;
  }

  void rewrite(const GlobalVar& var) {
    relay::Function function = module_->functions().at(var).cast<FunctionNode>();
    // A copy has no types yet.
    if (!function->has_checked_type()) function = relay::infer_type(Expr(function), signatures_).cast<FunctionNode>();
    find_names(function->body);
    const Expr rebuilt = relay::rewrite_post_order(
        function->body, [&](const Expr& before, const Expr& after) { return rewritten(before, after); });
    const Type result = function->checked_type().as<FuncTypeNode>()->ret_type;
    const Expr body = value(rebuilt, result, function->body->span);
    if (body == function->body) return;
    module_->add_function(var, copy_with(*function, [&](FunctionNode& copy) { copy.body = body; }), true);
  }

  // Finds variables of `body` that are only aliases of something with type parameters, and replaces them by it: each
  // use has its own types.
  void find_names(const Expr& body) {
    names_.clear();
    relay::post_order(body, [&](const Expr& e) {
      const auto* let = e.as<LetNode>();
      if (let == nullptr) return;
      const auto* type = let->var->checked_type().as<FuncTypeNode>();
      const bool is_name =
          let->value.is<GlobalVarNode>() || let->value.is<ConstructorNode>() || let->value.is<relay::VarNode>();
      if (is_name && type != nullptr && !type->type_params.empty()) names_.emplace(let->var.object(), let->value);
    });
  }

  Expr named(const Expr& var) {
    Expr at = var;
    for (auto it = names_.find(at.object()); it != names_.end(); it = names_.find(at.object())) at = it->second;
    if (at != var) names_[var.object()] = at;
    return at;
  }

  Expr rewritten(const Expr& before, const Expr& after) {
    if (before.is<relay::VarNode>()) return named(before);
    const auto* let = after.as<LetNode>();
    if (let != nullptr && names_.contains(before.as<LetNode>()->var.object()))
      return value(let->body, before->checked_type(), before->span);
    const auto* call = before.as<CallNode>();
    if (call == nullptr) return with_values(before, after);
    return call->as_op() != nullptr ? after : rewrite_call(*call, *after.as<CallNode>());
  }

  Expr with_values(const Expr& before, const Expr& after) {
    std::vector<Expr> children = relay::children_of(after);
    for (size_t i = 0; i < children.size(); ++i) {
      const bool may_be_open = children[i].is<GlobalVarNode>() || children[i].is<ConstructorNode>();
      if (may_be_open) children[i] = value(children[i], expected_at(before, i, children.size()), before->span);
    }
    return relay::with_children(after, children);
  }

  Expr rewrite_call(const CallNode& before, const CallNode& after) {
    const FunctionNode* callee = polymorphic(after.op);
    relay::TypeBindings bindings;
    if (callee != nullptr) bindings = bindings_at(before, *callee);
    const Array<Type> expected = parameter_types(before, after.op, callee, bindings);
    Array<Expr> args;
    for (size_t i = 0; i < after.args.size(); ++i)
      args.push_back(value(after.args[i], i < expected.size() ? expected[i] : Type(), before.args[i]->span));
    const bool is_same = std::equal(args.begin(), args.end(), after.args.begin());
    if (callee == nullptr && is_same) return ref(&after);
    return copy_with(after, [&](CallNode& copy) {
      copy.args = args;
      if (callee == nullptr) return;
      copy.op = instance(after.op, *callee, bindings, before.span);
      copy.type_args = {};
    });
  }

  // Returns the values of the callee's type parameters. A missing one is reported where it is needed. An argument that
  // has type parameters itself determines none of them.
  static relay::TypeBindings bindings_at(const CallNode& call, const FunctionNode& callee) {
    CallTypes types = call_types(call);
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto* function = types.args[i].as<FuncTypeNode>();
      if (call.args[i].is<ConstructorNode>() || (function != nullptr && !function->type_params.empty()))
        types.args[i] = {};
    }
    relay::TypeBindings bindings;
    bind_types(callee, types, bindings);
    return bindings;
  }

  // Returns the types of the callee's parameters at this call; nothing where they are not known.
  Array<Type> parameter_types(const CallNode& call, const Expr& op, const FunctionNode* callee,
                              const relay::TypeBindings& bindings) const {
    if (callee != nullptr) {
      Array<Type> types;
      for (const Type& type : callee->checked_type().as<FuncTypeNode>()->arg_types)
        types.push_back(with_bindings(type, bindings));
      return types;
    }
    if (const auto* constructor = op.as<ConstructorNode>()) return field_types(*constructor, call.checked_type());
    const auto* type = call.op->checked_type().as<FuncTypeNode>();
    return type == nullptr ? Array<Type>() : type->arg_types;
  }

  Array<Type> field_types(const ConstructorNode& constructor, const Type& result) const {
    const TypeData data = module_->type_definitions().at(constructor.belong_to);
    const auto* applied = result.as<TypeCallNode>();
    relay::TypeBindings bindings;
    for (size_t i = 0; applied != nullptr && i < std::min(applied->args.size(), data->type_vars.size()); ++i)
      bindings.types.emplace(data->type_vars[i].get(), applied->args[i]);
    Array<Type> types;
    for (const Type& type : constructor.inputs) types.push_back(with_bindings(type, bindings));
    return types;
  }

  // Returns a value of the given type; a function literal replaces a value with type parameters.
  Expr value(const Expr& e, const Type& expected, const Span& span) {
    const FunctionNode* function = polymorphic(e);
    const auto* constructor = e.as<ConstructorNode>();
    const bool is_open = function != nullptr || (constructor != nullptr && !constructor->inputs.empty());
    if (!is_open) return e;
    const auto* type = expected.as<FuncTypeNode>();
    const bool is_known = type != nullptr && type->type_params.empty() && !has_type_var(expected);
    if (!is_known && function != nullptr) throw_unknown(e.as<GlobalVarNode>()->name_hint, *function, span);
    if (!is_known) return e;
    Expr callee = e;
    if (function != nullptr) {
      relay::TypeBindings bindings;
      match_types(function->checked_type(), expected, bindings);
      callee = instance(e, *function, bindings, span);
    }
    Array<relay::Var> params;
    Array<Expr> args;
    for (const Type& arg : type->arg_types) {
      params.push_back(relay::make_var(fmt::format("x{}", params.size()), arg, span));
      args.push_back(params.back());
    }
    const Expr call = relay::make_call(callee, args, Attrs(), {}, span);
    return relay::make_function(params, call, type->ret_type, {}, {}, span);
  }

  [[noreturn]] static void throw_unknown(const std::string& name, const FunctionNode& function, const Span& span) {
    std::string params, args;
    for (size_t i = 0; i < function.params.size(); ++i) {
      const char* comma = i == 0 ? "" : ", ";
      params += fmt::format("{}%x{}: T{}", comma, i, i);
      args += fmt::format("{}%x{}", comma, i);
    }
    throw_at(span, "@" + name,
             fmt::format("a function with type parameters is a value here, and not of one type; write "
                         "fn ({}) {{ @{}({}) }} with its types",
                         params, name, args));
  }

  GlobalVar instance(const Expr& callee, const FunctionNode& function, const relay::TypeBindings& bindings,
                     const Span& span) {
    const std::string& name = callee.as<GlobalVarNode>()->name_hint;
    std::string text = name;
    Array<Type> types;
    for (const TypeVar& param : function.type_params) {
      const auto bound = bindings.types.find(param.get());
      if (bound == bindings.types.end())
        throw_at(span, "@" + name,
                 fmt::format("its type parameter {} is not determined at this use", param->name_hint));
      if (has_type_var(bound->second))
        throw_at(span, "@" + name, "it is used in a function literal that has type parameters");
      if (relay::type_size(bound->second, kMostTypeNodes) >= kMostTypeNodes)
        throw_at(span, "@" + name, "it is used with ever larger types; does it call itself with a larger type?");
      text += ", " + to_string(bound->second);
      types.push_back(bound->second);
    }
    // Compares instances, since the text does not distinguish all types: different symbols may have one name. Symbols
    // of different functions are equal up to renaming, because a function's symbols are its own at each use.
    std::vector<Instance>& alike = instances_[text];
    const TupleType all = make_tuple_type(types);
    for (const Instance& known : alike) {
      if (structural_equal(Value(known.types), Value(all), {.map_free_vars = true})) return known.var;
    }
    alike.push_back({all, make_instance(name, function, bindings, span)});
    return alike.back().var;
  }

  GlobalVar make_instance(const std::string& name, const FunctionNode& function, const relay::TypeBindings& bindings,
                          const Span& span) {
    if (++num_instances_ > kMostSpecializations)
      throw_at(
          span, "@" + name,
          fmt::format("more than {} copies of functions with type parameters are needed here", kMostSpecializations));
    std::string fresh;
    int& number = numbers_[name];
    while (fresh.empty() || module_->find_global_var(fresh)) fresh = fmt::format("{}_{}", name, ++number);
    const Expr copy = renewed(ref(&function), Renewal{{}, {{}, bindings.types}});
    const auto made = copy_with(*copy.as<FunctionNode>(), [](FunctionNode& f) { f.type_params = {}; });
    const GlobalVar var = module_->add_function(make_global_var(fresh), made);
    pending_.push_back(var);
    return var;
  }

  IRModule without_type_params() const {
    const IRModule result = snapshot(module_);
    result->set_functions({});
    for (const auto& [var, function] : module_->functions()) {
      const auto* node = function.as<FunctionNode>();
      if (node == nullptr || node->type_params.empty()) result->add_function(var, function);
    }
    return result;
  }

  IRModule module_;
  IRModule signatures_;  // as it was at first; copies use nothing else
  std::deque<GlobalVar> pending_;
  std::unordered_map<const Object*, Expr> names_;
  std::unordered_map<std::string, std::vector<Instance>> instances_;  // by name and text of the types
  std::unordered_map<std::string, int> numbers_;
  size_t num_instances_ = 0;
};

bool has_type_params(const IRModule& module) {
  const Map<GlobalVar, BaseFunc> functions = module->functions();
  return std::any_of(functions.begin(), functions.end(), [](const auto& row) {
    const auto* function = row.second.template as<FunctionNode>();
    return function != nullptr && !function->type_params.empty();
  });
}

}  // namespace

IRModule specialize(const IRModule& module) {
  // Constructors that are handed over have type parameters too.
  const bool has_data = !module->type_definitions().empty();
  return has_data || has_type_params(module) ? relay::infer_type(Specializer(module).run()) : module;
}

}  // namespace headrace::passes
