// The state of one type inference; private to relay/infer.
//
// Inference is a worklist over unknowns. First every expression gets a type, children first, with IncompleteType nodes
// and unknown dimensions for everything that is not annotated; the solver (type_solver.h) unifies types where
// expressions meet. An op whose type relation cannot answer yet is registered under the unknowns of its arguments.
// Settling one of these unknowns puts the op's call back on the list.
//
// When the list is empty, the first of these steps that has an effect is taken, and the list runs again: types that ops
// assume of arguments without a type are used; equations of dimensions are solved; unknown dimensions become `?`; calls
// whose relation depends on more than types are asked once more. In the end the types are set, children first
// (finish.cc), and everything that is still unknown is an error.
//
// Waiting for single unknowns, in place of repeated passes over the program, keeps the work in proportion to what
// changes.
#pragma once

#include <algorithm>
#include <set>

#include "relay/infer/infer_type.h"
#include "relay/infer/type_solver.h"
#include "relay/op_keys.h"

namespace headrace::relay {

// Collects the errors of one inference.
class TypeErrors {
 public:
  // Sets the expression that the following errors are about.
  void set_place(const Expr& expr) { place_ = expr; }
  void add(const UserError& error);
  void add(const Span& span, std::string op, std::string message);
  bool empty() const { return messages_.empty(); }
  bool is_about(const Expr& place) const { return std::find(places_.begin(), places_.end(), place) != places_.end(); }
  // Adds line and caret to each error whose place is in a text of the module.
  void show_places(const IRModule& module);
  // Throws when there are errors: a single one unchanged, several as one error that lists them.
  void raise() const;
  // Throws as raise(). First names the function that each error without a place in a text is in; `names[i]` is the
  // name of `functions[i]`.
  void raise(std::span<const Expr> functions, std::span<const Expr> names);

 private:
  static constexpr size_t kMaxShown = 50;
  Expr place_;
  std::vector<UserError> messages_;
  std::vector<Expr> places_;  // one place per message
  size_t not_shown_ = 0;
};

class Inferencer {
 public:
  explicit Inferencer(IRModule module);
  // Returns the typed expression; take_errors() returns the errors.
  Expr run(const Expr& expr);
  // Types all of them before it looks for what nothing determines.
  std::vector<Expr> run_all(const std::vector<Expr>& exprs);
  // Returns whether all errors are about undetermined parts of types, such as List[_].
  bool lacks_parts_only() const { return lacks_parts_ && !lacks_whole_types_; }
  // Reports names of types that escape their function; call after run_all.
  void report_escapes(const std::vector<Expr>& exprs, bool is_part);
  ValueMap take_values();
  // Returns the errors since the last call, for a program that grows; the caller raises them.
  TypeErrors take_errors() { return std::exchange(errors_, {}); }
  std::optional<std::vector<PrimExpr>> value_of(const Expr& original);

 private:
  // The result for a node; a null type means that an error has been reported. `expr` is the original until the types
  // are set.
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
  void visit(const Frame& frame);
  void later(const Expr& expr, int stage) { stack_.push_back({expr, stage}); }
  void need(const Expr& expr);
  void need_all(const Array<Expr>& exprs);
  bool is_known(const Expr& expr) const { return memo_.contains(expr.get()); }
  // Returns the type as it is known by now; null after an error.
  Type type_of(const Expr& expr);
  bool all_typed(const Array<Expr>& exprs) const;
  // Records the type of a node; for a node that waited, unifies it with the node's unknown type.
  void finish(const Expr& original, Type type);
  void fail(const Expr& original, Span span, std::string op, std::string message);
  Type resolved(const Expr& at, const Type& type);
  // Gives `original` an unknown type for now, and asks again when an unknown of `of` is settled.
  void wait(const Expr& original, const std::vector<Type>& of);
  // Unifies two types, or reports the message at `at`; does nothing where one is null.
  bool agree(const Expr& at, const Type& a, const Type& b, const std::function<std::string()>& message);
  // Returns why a type from a user cannot be used for inference; empty when it can.
  std::string annotation_fault(const Type& type) const;
  // Checks an annotation; reports an error and returns false when it is not a type.
  bool check_annotation(const Type& type, const Span& span);

  void visit_var(const Var& node);
  void visit_global(const GlobalVar& node, int stage);
  void visit_constructor(const Constructor& node);
  void visit_tuple(const Tuple& node, int stage);
  void visit_get_item(const TupleGetItem& node, int stage);
  void set_item_value(const TupleGetItem& node, const TupleTypeNode& type);
  void visit_let(const Let& node, int stage);
  void bind_let(const Let& node);
  void visit_if(const If& node, int stage);
  void visit_ref(const Expr& node, int stage);

  // function.cc
  Type open_function(const Function& node);
  void visit_function(const Function& node, int stage);
  bool gives(const Function& node, const Type& declared, const Type& ret);
  void bind_var(const Var& var, const Type& type);
  void enter_symbols(const Function& function, int change);
  bool is_fixed(const PrimVarNode* symbol) const;

  // match.cc
  void visit_match(const Ref<MatchNode>& node, int stage);
  void finish_match(const Ref<MatchNode>& node);
  using PatternTypes = std::vector<std::pair<Pattern, Type>>;
  void bind_pattern(const Pattern& pattern, const Type& type, const Expr& match);
  void bind_tuple_pattern(const PatternTupleNode& pattern, const Type& type, const Expr& match, PatternTypes& pending);
  void bind_constructor_pattern(const PatternConstructorNode& pattern, const Type& type, const Expr& match,
                                PatternTypes& pending);

  // call.cc
  void visit_call(const Call& node, int stage);
  void visit_op_call(const Call& node, const std::vector<Type>& arg_types);
  void visit_function_call(const Call& node, const std::vector<Type>& arg_types);
  Type relate(const Call& call, const std::vector<Type>& arg_types);
  FuncType callee_type(const Call& call, size_t num_args, Array<Type>& type_args, std::vector<PrimExpr>& dims);
  void unify_arguments(const Call& call, const FuncTypeNode& function, const std::vector<Type>& arg_types);
  size_t count_unknown(const std::vector<PrimExpr>& dims) const;
  RelationInput relation_input(const Call& call, const std::vector<Type>& arg_types);
  void infer_call_value(const Call& call, const Type& type, const std::vector<Type>& arg_types);

  // constraints.cc
  struct Constraint {
    Call call;
    TypeSolver::Owed owed;
  };
  void ask_constraints();
  void ask_constraint(const TypeSolver::Owed& owed);
  void visit_constraint(const Constraint& constraint, const std::vector<Type>& arg_types);
  void fail_constraint(const TypeSolver::Owed& owed, const std::string& why);
  void report_constraints();

  // finish.cc
  void solve();
  void wake();
  bool take_assumptions();
  void report_equations();
  void report_waiting();
  void check_calls();
  void check_match(const Ref<MatchNode>& match);
  void check_complete(const MatchNode& match);
  void set_types();
  void set_type(const Expr& original);
  Expr rebuilt(const Expr& original, const Type& type);
  void report_unknown();
  void report_variables(bool with_values);
  void report_expression(const Expr& first);
  // Checks the parts of a call's type that the signature computes: a dimension such as n - 5 may be invalid at this
  // call.
  void check_result(const Expr& call, const Type& type);

  // A type that an op gives to an argument without a type; used when nothing else determines it.
  struct Assumption {
    Type unknown, type;
    Expr place;
  };
  std::vector<Assumption> assumed_;
  struct OpenCall {
    Call call;
    FuncType function;
    std::vector<Type> arg_types;
  };
  IRModule module_;
  TypeSolver solver_;
  std::vector<Frame> stack_;
  std::unordered_map<const ExprNode*, Typed> memo_;
  std::vector<Expr> order_;                                // nodes whose types are not set yet, children first
  ValueMap values_;                                        // by original node
  std::unordered_map<const ExprNode*, Expr> bound_value_;  // by let variables with an open value
  // Nodes that wait: all of them, by the unknown they wait for, and those that wait for something else.
  std::unordered_set<const ExprNode*> waiting_nodes_;
  std::unordered_map<const Object*, std::vector<Expr>> waiting_;
  std::set<std::pair<const Object*, const ExprNode*>> registered_;
  std::vector<Expr> asked_last_;
  size_t asked_before_ = 0;           // how many waited when those were asked
  std::vector<OpenCall> open_calls_;  // whose arguments were not all known
  std::vector<Constraint> constraints_;
  std::unordered_map<const ExprNode*, size_t> constraint_of_;  // by the call that it is asked as
  std::set<std::pair<const Object*, const Object*>> failed_constraints_;
  std::vector<Ref<MatchNode>> matches_;                   // to be checked when the types of their data are known
  std::unordered_map<const ExprNode*, Type> signatures_;  // types of functions, from when they are entered
  std::unordered_set<const Object*> monomorphic_;         // signatures that are the same at each use
  std::unordered_set<const VarNode*> annotate_;           // parameters whose annotation is inferred
  // Type arguments that the arguments of a call do not say. They are written into the call, since what does (an
  // annotation, the other branch) may be gone after a pass.
  std::unordered_map<const ExprNode*, Array<Type>> left_type_args_;
  std::unordered_set<const VarNode*> has_value_;          // bound by a let or a pattern
  std::vector<Expr> unknown_;                             // nodes whose types nothing determines
  bool lacks_parts_ = false, lacks_whole_types_ = false;  // kinds of errors about such nodes
  Symbols symbols_;                                       // symbols in scope, with the number of binders
  std::vector<Symbols> outer_symbols_;                    // for functions whose inference waits for a global function's
  std::unordered_map<std::string, GlobalVar> globals_;
  TypeErrors errors_;
};

// Returns the number of elements of an integer or bool tensor, or of a tuple of them, whose values inference follows;
// nothing for other types.
std::optional<size_t> value_elements(const Type& type);
// Returns the function's type from its annotations; null when one is missing.
Type annotated_type(const Function& function);
// Returns the module's data type of that name; null when there is none.
TypeData find_type_data(const IRModule& module, const GlobalTypeVar& var);
// Returns the constructor's type, fn <T...>(inputs) -> Type[T...].
Type constructor_type(const Constructor& constructor, const TypeData& data);

}  // namespace headrace::relay
