#include "partition/compiler_functions.h"

#include <unordered_set>

#include "object/structural_equal.h"
#include "partition/rewrite_functions.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/renewed.h"
#include "relay/composites.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;
using relay::LetNode;

namespace {

constexpr const char* kExtern = "Extern";

const FunctionNode* as_compilers(const Expr& expr, const std::string& compiler) {
  const auto* function = expr.as<FunctionNode>();
  const auto name = function == nullptr ? std::nullopt : relay::compiler_of(*function);
  return name && (compiler.empty() || *name == compiler) ? function : nullptr;
}

class Outliner {
 public:
  Outliner(const IRModule& module, std::string compiler) : module_(snapshot(module)), compiler_(std::move(compiler)) {}

  IRModule outlined(const IRModule& module) {
    const IRModule rewritten = rewrite_entered_functions(
        module, [&](const std::string&, const FunctionNode& function) { return body(function.body); });
    if (rewritten == module) return module;
    for (const auto& [var, function] : rewritten->functions()) module_->add_function(var, function, true);
    return module_;
  }

 private:
  // A literal becomes its name, and so does the variable of a let that binds it.
  Expr body(const Expr& before) {
    std::unordered_map<const Object*, Expr> bound;
    relay::post_order(
        before, [](const Expr& expr) { return relay::is_entered(expr); },
        [&](const Expr& expr) {
          const auto* let = expr.as<LetNode>();
          const FunctionNode* function = let == nullptr ? nullptr : as_compilers(let->value, compiler_);
          if (function != nullptr) bound.emplace(let->var.object(), name_of(*function));
        });
    return relay::rewrite_post_order(
        before, [](const Expr& expr) { return relay::is_entered(expr); },
        [&](const Expr& expr, const Expr& after) -> Expr {
          if (const FunctionNode* function = as_compilers(expr, compiler_)) return name_of(*function);
          if (const auto var = bound.find(expr.object()); var != bound.end()) return var->second;
          const auto* let = expr.as<LetNode>();
          return let != nullptr && bound.contains(let->var.object()) ? after.as<LetNode>()->body : after;
        });
  }

  GlobalVar name_of(const FunctionNode& function) {
    const auto symbol = relay::symbol_of(function);
    constexpr const char* kPass = "OutlineCompilerFunctionsWithExistingGlobalSymbols";
    if (!symbol)
      throw_at(function.span, kPass,
               fmt::format("a function for the compiler '{}' has no name; give it the attribute {}",
                           *relay::compiler_of(function), relay::kGlobalSymbol));
    if (const auto captured = relay::free_vars(ref(&function)); !captured.empty())
      throw_at(function.span, kPass,
               fmt::format("the function '{}' uses the variable '{}' of the function around it; make it a parameter",
                           *symbol, captured[0]->name_hint));
    if (const GlobalVar known = module_->find_global_var(*symbol)) {
      if (!structural_equal(module_->lookup(*symbol), ref(&function)))
        throw_at(function.span, kPass, fmt::format("another function is named '{}' already; rename one", *symbol));
      return known;
    }
    return module_->add_function(make_global_var(*symbol), ref(&function).cast<BaseFuncNode>());
  }

  IRModule module_;
  std::string compiler_;
};

// Replaces calls of some functions by their bodies.
class CompilerInliner {
 public:
  explicit CompilerInliner(const IRModule& module) : module_(module), effects_(module, true) {}

  CompilerInliner(const IRModule& module, const std::vector<std::string>& names)
      : module_(module), names_(names.begin(), names.end()), effects_(module, true) {
    for (const std::string& name : names) {
      const auto function = module->lookup(name).cast<FunctionNode>();
      if (!function || !relay::compiler_of(*function))
        throw_user_error("@{} is not marked Compiler, and only functions that are can be inlined here", name);
    }
  }

  // Replaces calls of composite functions with one of these names.
  IRModule without_composites(const std::unordered_set<std::string>& composites) {
    return rewrite_entered_functions(module_, [&](const std::string&, const FunctionNode& function) {
      return body(function.body, [&](const CallNode& call) {
        const relay::Function callee = composite(call);
        return callee && composites.contains(relay::composite_name(*callee)) ? callee : relay::Function();
      });
    });
  }

  IRModule inlined() {
    IRModule result = rewrite_entered_functions(module_, [&](const std::string&, const FunctionNode& function) {
      return body(function.body, [&](const CallNode& call) { return named(call); });
    });
    if (result == module_) result = snapshot(module_);
    const Map<GlobalVar, BaseFunc> functions = result->functions();
    result->set_functions({});
    for (const auto& [var, function] : functions) {
      if (names_.contains(var->name_hint)) continue;
      check_unused(var, function);
      result->add_function(var, function);
    }
    return result;
  }

 private:
  // Inlines the calls for which `callee_of` gives a function.
  template <typename CalleeOf>
  Expr body(const Expr& before, CalleeOf&& callee_of) {
    const auto enter = [](const Expr& expr) { return relay::is_entered(expr); };
    return relay::rewrite_post_order(before, enter, [&](const Expr& expr, const Expr& after) -> Expr {
      const auto* call = expr.as<CallNode>();
      const relay::Function callee = call == nullptr ? relay::Function() : callee_of(*call);
      if (!callee || callee->params.size() != call->args.size()) return after;
      return inline_call(*call, *after.as<CallNode>(), *callee);
    });
  }

  relay::Function named(const CallNode& call) const {
    const auto* name = call.op.as<GlobalVarNode>();
    return name != nullptr && names_.contains(name->name_hint) ? module_->lookup(name->name_hint).cast<FunctionNode>()
                                                               : relay::Function();
  }

  static relay::Function composite(const CallNode& call) {
    const FunctionNode* function = relay::called_composite(call);
    return function == nullptr ? relay::Function() : ref(function);
  }

  Expr inline_call(const CallNode& before, const CallNode& after, const FunctionNode& callee) {
    passes::Renewal renewal;
    if (!passes::bind_types(callee, passes::call_types(before), renewal.types)) return ref(&after);
    std::vector<std::pair<relay::Var, Expr>> lets;
    for (size_t i = 0; i < before.args.size(); ++i) {
      const relay::Var& param = callee.params[i];
      const bool moves = !effects_.of(before.args[i]);
      if (!moves) lets.emplace_back(relay::make_var(param->name_hint, {}, param->span), after.args[i]);
      renewal.values.emplace(param.object(), moves ? after.args[i] : Expr(lets.back().first));
    }
    relay::check_composite_depth(++depth_, before);
    Expr result = passes::renewed(body(callee.body, &composite), renewal);
    --depth_;
    for (size_t i = lets.size(); i-- > 0;) result = relay::make_let(lets[i].first, lets[i].second, result, after.span);
    return result;
  }

  void check_unused(const GlobalVar& user, const BaseFunc& function) const {
    relay::post_order(function, [&](const Expr& expr) {
      const auto* name = expr.as<GlobalVarNode>();
      if (name != nullptr && names_.contains(name->name_hint))
        throw_user_error(
            "@{} cannot be inlined, because @{} refers to it in another way than by a call with all "
            "arguments, or is a function that passes leave as it is",
            name->name_hint, user->name_hint);
    });
  }

  const IRModule& module_;
  std::unordered_set<std::string> names_;
  passes::Effects effects_;
  int depth_ = 0;  // how many functions around this one
};

}  // namespace

IRModule outline_compiler_functions(const IRModule& module, const std::string& compiler) {
  return Outliner(module, compiler).outlined(module);
}

IRModule mark_compiler_functions_as_extern(const IRModule& module, const std::string& compiler) {
  IRModule result = module;
  for (const auto& [var, function] : module->functions()) {
    const FunctionNode* marked = as_compilers(function, compiler);
    if (marked == nullptr) continue;
    if (result == module) result = snapshot(module);
    DictAttrs attrs;
    attrs.set(kExtern, Value(int64_t{1}));
    const Expr changed = copy_with(*marked, [&](FunctionNode& copy) { copy.attrs = attrs; });
    result->add_function(var, changed.cast<BaseFuncNode>(), true);
  }
  return result;
}

IRModule inline_composites(const IRModule& module, const std::vector<std::string>& names) {
  return CompilerInliner(module).without_composites({names.begin(), names.end()});
}

IRModule inline_compiler_functions(const IRModule& module, const std::vector<std::string>& names) {
  if (names.empty()) return module;
  return CompilerInliner(module, names).inlined();
}

}  // namespace headrace::partition
