#include "relay/infer/escapes.h"

#include <unordered_set>

#include "ir/type_parts.h"
#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

// How many of the scopes around a place bind a name: a symbol or a type parameter.
class BoundNames {
 public:
  bool contains(const Object* name) const {
    const auto it = counts_.find(name);
    return it != counts_.end() && it->second > 0;
  }
  void change(const Array<TypeVar>& params, int by) {
    for (const TypeVar& param : params) counts_[param.object()] += by;
  }
  void change_symbols(const Type& type, int by) {
    visit_symbols(type, [&](const PrimVarNode* symbol) { counts_[symbol] += by; });
  }
  void change_symbol(const Object* symbol, int by) { counts_[symbol] += by; }

 private:
  std::unordered_map<const Object*, int> counts_;
};

class EscapeFinder {
 public:
  EscapeFinder(bool is_part, const std::function<Type(const Expr&)>& type_of) : is_part_(is_part), type_of_(type_of) {}

  // Records the names that functions under `root` bind by their annotations.
  void prepare(const Expr& root) {
    post_order(root, [&](const Expr& node) {
      const auto* function = node.as<FunctionNode>();
      if (function == nullptr) return;
      for (const TypeVar& param : function->type_params) declared_.insert(param.object());
      for (const Var& param : function->params) {
        const Type& annotation = param->type_annotation;
        if (annotation) visit_symbols(annotation, [&](const PrimVarNode* symbol) { written_.insert(symbol); });
      }
    });
  }

  void walk(const Expr& root) {
    std::vector<std::pair<Expr, bool>> stack{{root, false}};
    while (!stack.empty()) {
      const auto [node, is_done] = stack.back();
      stack.pop_back();
      if (is_done) {
        leave(node);
      } else if (seen_.insert(node.object()).second) {
        enter(node);
        stack.emplace_back(node, true);
        const std::vector<Expr> children = children_of(node);
        for (size_t i = children.size(); i-- > 0;) stack.emplace_back(children[i], false);
      }
    }
  }
  std::vector<Escape> take() { return std::move(escapes_); }

 private:
  void enter(const Expr& node) {
    if (const auto* function = node.as<FunctionNode>()) {
      change(*function, 1);
      for (const Var& param : function->params) seen_.insert(param.object());
    } else if (const auto* let = node.as<LetNode>()) {
      seen_.insert(let->var.object());
    } else if (const auto* match = node.as<MatchNode>()) {
      for (const Clause& clause : match->clauses) {
        for (const Var& var : pattern_vars(clause->lhs)) seen_.insert(var.object());
      }
    } else if (const auto* var = node.as<VarNode>(); var != nullptr && var->type_annotation) {
      bind_all(var->type_annotation);  // one that no binder came before
    }
  }

  void leave(const Expr& node) {
    if (const auto* function = node.as<FunctionNode>()) change(*function, -1);
    if (node.is<VarNode>() || node.is<OpNode>() || node.is<ConstructorNode>()) return;
    const Type type = type_of_(node);
    if (type)
      check(type, [&](const Object* name, std::string what) {
        if (reported_.insert(name).second) escapes_.push_back({node, type, std::move(what)});
      });
  }

  void bind_all(const Type& type) {
    check(type, [&](const Object* name, const std::string&) { free_.insert(name); });
  }

  // Calls `report` for each name of the type that is bound neither around it nor in it.
  template <typename F>
  void check(const Type& type, F&& report) {
    if (const auto* tensor = type.as<TensorTypeNode>()) {
      for (const PrimExpr& dim : tensor->shape) {
        if (!as_int(dim) && !is_any(dim)) check_dim(dim, report);
      }
    } else if (const auto* var = type.as<TypeVarNode>()) {
      ++num_names_;
      if (!is_bound(var) && (!is_part_ || declared_.contains(var)))
        report(var, fmt::format("the type parameter {}", var->name_hint));
    } else {
      check_parts(type, report);
    }
  }

  // Visits a tuple without names once, however many nodes have its type.
  template <typename F>
  void check_parts(const Type& type, F&& report) {
    if (nameless_.contains(type.object())) return;
    const int64_t before = num_names_;
    const auto* function = type.as<FuncTypeNode>();
    if (function != nullptr) change(*function, 1);
    for (const Type& part : type_children(type)) check(part, report);
    if (function != nullptr) change(*function, -1);
    if (num_names_ == before && type.is<TupleTypeNode>()) nameless_.insert(type.object());
  }

  template <typename F>
  void check_dim(const PrimExpr& dim, F&& report) {
    visit_symbols(dim, [&](const PrimVarNode* symbol) {
      ++num_names_;
      if (!is_bound(symbol)) report(symbol, fmt::format("the dimension {}", symbol->name_hint));
    });
  }

  // Binds (`by` 1) or releases (`by` -1) the names of a function: the symbols of its annotations, and of the types that
  // its parameters got from outside, except those of another function.
  void change(const FunctionNode& function, int by) {
    bound_.change(function.type_params, by);
    for (const Var& param : function.params) {
      if (param->type_annotation) bound_.change_symbols(param->type_annotation, by);
      const Type type = type_of_(param);
      if (!type || type == param->type_annotation) continue;
      visit_symbols(type, [&](const PrimVarNode* symbol) {
        if (!written_.contains(symbol)) bound_.change_symbol(symbol, by);
      });
    }
  }
  void change(const FuncTypeNode& function, int by) {
    bound_.change(function.type_params, by);
    for (const Type& arg : function.arg_types) bound_.change_symbols(arg, by);
  }
  bool is_bound(const Object* name) const { return bound_.contains(name) || free_.contains(name); }

  bool is_part_;
  const std::function<Type(const Expr&)>& type_of_;
  BoundNames bound_;
  std::unordered_set<const Object*> declared_, written_, free_, seen_, reported_;
  std::unordered_set<const Object*> nameless_;  // tuple types
  int64_t num_names_ = 0;                       // met so far
  std::vector<Escape> escapes_;
};

}  // namespace

std::vector<Escape> find_escapes(const std::vector<Expr>& roots, bool is_part,
                                 const std::function<Type(const Expr&)>& type_of) {
  EscapeFinder finder(is_part, type_of);
  for (const Expr& root : roots) finder.prepare(root);
  for (const Expr& root : roots) finder.walk(root);
  return finder.take();
}

}  // namespace headrace::relay
