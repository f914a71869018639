// The state of one type inference; private to relay/infer_*.cc.
#pragma once

#include <unordered_set>

#include "relay/infer_type.h"
#include "relay/op_keys.h"
#include "relay/type_match.h"

namespace headrace::relay {

// Collects the errors of one inference.
class TypeErrors {
 public:
  void add(const UserError& error);
  void add(const Span& span, std::string op, std::string message);
  bool empty() const { return messages_.empty(); }
  // Throws when there is any: one as it is, several as a list.
  void raise() const;

 private:
  static constexpr size_t kMaxShown = 50;
  std::vector<UserError> messages_;
  size_t not_shown_ = 0;
};

class Inferencer {
 public:
  explicit Inferencer(IRModule module) : module_(std::move(module)) {}
  // The typed expression. Errors are in errors().
  Expr run(const Expr& expr);
  // The module's variable of that name, as references to it became.
  GlobalVar typed_global(const GlobalVar& var) const;
  const TypeErrors& errors() const { return errors_; }
  ValueMap take_values(const Expr& root);
  // For a program that grows: gives the errors since the last time, to be raised.
  TypeErrors take_errors() { return std::exchange(errors_, {}); }
  std::optional<std::vector<PrimExpr>> value_of(const Expr& original);

 private:
  // What became of a node; a null type is an error that has been reported.
  struct Typed {
    Expr expr;
    Type type;
  };
  struct Frame {
    Expr expr;
    int stage;
  };
  using Symbols = std::unordered_map<const PrimVarNode*, int>;

  void step(const Frame& frame);
  void later(const Expr& expr, int stage) { stack_.push_back({expr, stage}); }
  void need(const Expr& expr);
  void need_all(const Array<Expr>& exprs);
  const Typed& typed(const Expr& expr) const { return memo_.at(expr.get()); }
  bool is_known(const Expr& expr) const { return memo_.contains(expr.get()); }
  bool all_typed(const Array<Expr>& exprs) const;
  Array<Expr> typed_all(const Array<Expr>& exprs, bool& changed) const;
  Expr typed_child(const Expr& expr, bool& changed) const;
  // Records what became of `original`: sets the type, in a copy when another one is there.
  void finish(const Expr& original, Expr rebuilt, Type type);
  void fail(const Expr& original, Span span, std::string op, std::string message);
  // False, and an error, when a user's type is no type to infer with.
  bool check_annotation(const Type& type, const Span& span);

  void visit_constant(const Constant& node);
  void visit_var(const Var& node);
  void visit_global(const GlobalVar& node, int stage);
  void visit_constructor(const Constructor& node);
  void visit_tuple(const Tuple& node, int stage);
  void visit_get_item(const TupleGetItem& node, int stage);
  void visit_let(const Let& node, int stage);
  void visit_if(const If& node, int stage);
  void visit_function(const Function& node, int stage);
  void finish_function(const Function& node);
  void visit_ref(const Expr& node, int stage);
  void finish_ref(const Expr& node);
  void visit_match(const Ref<MatchNode>& node, int stage);
  void finish_match(const Ref<MatchNode>& node);
  void bind_pattern(const Pattern& pattern, const Type& type, const Span& span);
  void bind_constructor_pattern(const PatternConstructorNode& pattern, const Type& type, const Span& span,
                                std::vector<std::pair<Pattern, Type>>& pending);
  Pattern typed_pattern(const Pattern& pattern) const;
  void bind_var(const Var& var, const Type& type);
  void enter_symbols(const Function& function, int change);

  // infer_call.cc
  void visit_call(const Call& node, int stage);
  Type op_call_type(const Call& original, const Call& call, const std::vector<Type>& arg_types);
  bool check_op_call(const Call& call, const OpNode& op);
  Type function_call_type(const Call& call, const Type& callee, const std::vector<Type>& arg_types);
  RelationInput relation_input(const Call& original, const Call& call, const std::vector<Type>& arg_types);
  void infer_call_value(const Call& original, const Call& call, const Type& type, const std::vector<Type>& arg_types);
  void set_value(const Expr& original, std::vector<PrimExpr> value, size_t expected);

  IRModule module_;
  std::vector<Frame> stack_;
  std::unordered_map<const ExprNode*, Typed> memo_;
  ValueMap values_;                     // by original node
  Symbols symbols_;                     // of the enclosing functions, with the number of binders
  std::vector<Symbols> outer_symbols_;  // of the functions whose inference waits for a global's
  std::unordered_set<std::string> in_progress_;
  std::unordered_map<std::string, GlobalVar> globals_;
  TypeErrors errors_;
};

// Elements of an integer or bool tensor that are followed as values, or of a tuple of such; nothing for other types.
std::optional<size_t> value_elements(const Type& type);
// The function's type as its annotations say it; null when one is missing.
Type annotated_type(const Function& function);
// The data type of that name in the module; null when there is none.
TypeData find_type_data(const IRModule& module, const GlobalTypeVar& var);
// fn <T...>(inputs) -> Type[T...]
Type constructor_type(const Constructor& constructor, const TypeData& data);

}  // namespace headrace::relay
