// Infers types of functions, of nodes that bind variables, and of references to the module's functions.
//
// A function has a signature from the moment it is entered, with unknowns for missing annotations. Inside the function
// itself (and the functions it is entered from) the signature is one type, the same at each use. Once the function is
// inferred, each use has its own symbols and type parameters. A fully annotated signature has them inside, too.
#include "relay/infer/inferencer.h"

namespace headrace::relay {

void Inferencer::bind_var(const Var& var, const Type& type) {
  const auto [it, is_new] = memo_.try_emplace(var.get(), Typed{var, type});
  if (is_new) return order_.push_back(var);
  const Type before = resolved(var, it->second.type);
  agree(var, before, type, [&] {
    return fmt::format("variable '%{}' is bound twice, as {} and as {}", var->name_hint, to_string(before),
                       to_string(type));
  });
}

Type Inferencer::open_function(const Function& node) {
  const auto present = signatures_.find(node.get());
  if (present != signatures_.end()) return present->second;
  Array<Type> types;
  for (const Var& param : node->params) {
    const Type& annotation = param->type_annotation;
    // After an error nothing more is said of the parameter.
    if (annotation && !check_annotation(annotation, param->span)) {
      bind_var(param, {});
      types.push_back(make_incomplete_type());
      continue;
    }
    types.push_back(annotation ? annotation : make_incomplete_type());
    bind_var(param, types.back());
    if (!annotation || solver_.is_open(annotation)) annotate_.insert(param.get());
  }
  const bool has_ret = node->ret_type && check_annotation(node->ret_type, node->span);
  const Type signature = make_func_type(types, has_ret ? node->ret_type : make_incomplete_type(), node->type_params);
  if (!annotated_type(node)) monomorphic_.insert(signature.object());
  return signatures_[node.get()] = signature;
}

bool Inferencer::is_fixed(const PrimVarNode* symbol) const {
  const auto it = symbols_.find(symbol);
  return it != symbols_.end() && it->second != 0;
}

void Inferencer::enter_symbols(const Function& function, int change) {
  for (const Var& param : function->params) {
    if (!memo_.at(param.get()).type || !param->type_annotation) continue;
    visit_symbols(param->type_annotation, [&](const PrimVarNode* symbol) { symbols_[symbol] += change; });
  }
}

// Its own symbols stand for themselves here.
bool Inferencer::gives(const Function& node, const Type& declared, const Type& ret) {
  try {
    return agree(node, declared, ret, [&] {
      const Type expected = resolved(node, declared);
      if (expected.is<IncompleteTypeNode>()) return fmt::format("the function's body gives {}", to_string(ret));
      return fmt::format("the function is {} to give {} and its body gives {}", node->ret_type ? "annotated" : "called",
                         to_string(expected), to_string(ret));
    });
  } catch (const UserError& error) {  // a type that became too deep
    errors_.add(node->span, "", error.message());
    return false;
  }
}

void Inferencer::visit_function(const Function& node, int stage) {
  const Type signature = open_function(node);
  if (stage == 0) {
    enter_symbols(node, 1);
    later(node, 1);
    return need(node->body);
  }
  const Type declared = signature.as<FuncTypeNode>()->ret_type, ret = type_of(node->body);
  const bool agrees = ret && gives(node, declared, ret);
  enter_symbols(node, -1);
  monomorphic_.erase(signature.object());
  finish(node, agrees ? resolved(node, signature) : Type());
}

// Handles a reference; stage 1 follows the function's own inference.
void Inferencer::visit_global(const GlobalVar& node, int stage) {
  if (stage == 1) {
    symbols_ = std::move(outer_symbols_.back());
    outer_symbols_.pop_back();
    if (is_known(node)) return;
  }
  const std::string& name = node->name_hint;
  const GlobalVar var = module_ ? module_->find_global_var(name) : GlobalVar();
  if (!var) return fail(node, node->span, "", fmt::format("there is no function '@{}' in the module", name));
  const Function function = module_->functions().at(var).cast<FunctionNode>();
  if (!function)
    return fail(node, node->span, "", fmt::format("'@{}' is not a relay function and cannot be called from one", name));
  if (const Type type = annotated_type(function)) return finish(node, type);
  if (is_known(function)) return finish(node, memo_.at(function.get()).type);
  if (signatures_.contains(function.get())) return finish(node, signatures_.at(function.get()));
  outer_symbols_.push_back(std::exchange(symbols_, {}));
  later(node, 1);
  need(function);
}

}  // namespace headrace::relay
