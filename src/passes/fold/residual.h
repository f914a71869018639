// The data structures of partial evaluation: partly known values, the residual program, and the contents of references.
#pragma once

#include <deque>
#include <unordered_set>

#include "interp/evaluate.h"
#include "pass/pass.h"
#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

// A value as far as it is known. The evaluator keeps all values of a run until its end, so that freeing a list of any
// length takes no recursion.
struct Known {
  enum Kind : uint8_t {
    dynamic,  // unknown; `atom` is the variable that holds it at run time
    tensor,   // `node` is its constant
    tuple,    // `items` are its items
    data,     // `node` is the constructor, `items` are its arguments
    closure,  // `node` is the function literal
    named,    // `node` is a GlobalVar, a Constructor or an Op
    cell,     // the reference number `cell_id`
  };
  using Vars = std::unordered_map<const Object*, Known*>;

  Kind kind = dynamic;
  Expr node;
  std::vector<Known*> items;
  Type type;  // for kind `data`: its type, since the constructor alone may not determine the type parameters
  Span span;
  int cell_id = -1;
  // For kind `closure`: the captured values, the type bindings where it was made, and the variable by which it calls
  // itself (null if none).
  Vars captured;
  relay::TypeBindings types;
  relay::Var self;
  // The expression for it in the residual program, valid while `block` is open. Null until reified.
  Expr atom;
  int block = 0;

  bool is_static() const { return kind == tensor || kind == data || (kind == tuple && !items.empty()); }
};

// The lets of the residual program in the open blocks. A block is the body of a function, a branch or a clause.
class Residual {
 public:
  // Opens a block inside the innermost one and returns its number.
  int open();
  // Closes the innermost block and returns its lets around `result`.
  Expr close(const Expr& result);
  int current() const { return blocks_.back().id; }
  bool is_open(int block) const { return open_.contains(block); }
  // Binds `value` to a new variable in the innermost block and returns the variable.
  Expr bind(const Expr& value, const std::string& name, const Type& annotation = {});
  // Binds `value` to an existing variable in the innermost block.
  void bind(const relay::Var& var, const Expr& value) { blocks_.back().lets.emplace_back(var, value); }

 private:
  struct Block {
    int id;
    std::vector<std::pair<relay::Var, Expr>> lets;
  };
  std::vector<Block> blocks_;
  std::unordered_set<int> open_;
  int next_ = 0;
};

// Tracks the known contents of the references that this run created. Keeps a log, so that the changes of a block can be
// undone. Making and undoing a change take constant time each.
class Store {
 public:
  // Returns the contents of a reference; null if they are unknown.
  Known* find(int cell_id) const;
  void set(int cell_id, Known* value);
  // Makes the contents of all references unknown.
  void forget();
  // Returns a position in the log for go_back().
  size_t mark() const { return changes_.size(); }
  // Undoes all changes since the mark.
  void go_back(size_t mark);

 private:
  // The contents are known if `time` is later than the last call of forget().
  struct Cell {
    Known* value = nullptr;
    int64_t time = 0;
  };
  struct Change {
    int cell_id;        // -1: a call of forget()
    Cell cell;          // the cell before the change
    int64_t forgotten;  // `forgotten_` before the change
  };
  std::vector<Cell> cells_;
  std::vector<Change> changes_;
  int64_t now_ = 0, forgotten_ = 0;
};

enum class Match : uint8_t { yes, no, unknown };
// Returns whether the pattern matches the value, and adds the values of the pattern's variables to `vars`. Entries
// added for a result other than `yes` have no meaning.
Match match_known(const relay::Pattern& pattern, Known* value, Known::Vars& vars);

// Evaluates a call whose operands are all constants; returns constants and tuples of them. Returns null if the op has
// an effect, if the result is larger than `most_bytes`, if the budget is spent (reported to `context.note`), or if the
// call is an error.
Expr evaluate_call(const relay::CallNode& call, size_t most_bytes, interp::ConstantBudget& budget,
                   const pass::PassContext& context);

}  // namespace headrace::passes
