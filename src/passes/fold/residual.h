// What partial evaluation knows of a value, and the program it leaves.
#pragma once

#include <deque>
#include <unordered_set>

#include "interp/evaluate.h"
#include "relay/infer/type_match.h"
#include "relay/visit.h"

namespace headrace::passes {

// A value as far as it is known. All of one run live as long as the run, so that a list of any length is freed without
// recursion.
struct Known {
  enum Kind : uint8_t {
    dynamic,  // nothing is known but what stands for it
    tensor,   // `node` is its constant
    tuple,
    data,     // of `items`; of data `node` is the constructor
    closure,  // `node` is the function literal
    named,    // `node` is a GlobalVar, a Constructor or an Op
    cell,     // the reference number `cell_id`
  };
  using Vars = std::unordered_map<const Object*, Known*>;

  Kind kind = dynamic;
  Expr node;
  std::vector<Known*> items;
  Type type;  // of data, for a constructor that does not say its type parameters
  Span span;
  int cell_id = -1;
  // Of a closure: what it captured, the types where it was made, the variable that is itself.
  Vars captured;
  relay::TypeBindings types;
  relay::Var self;
  // What stands for it in the program that is left, while that block is open; null until it is asked for.
  Expr atom;
  int block = 0;

  bool is_static() const { return kind == tensor || kind == data || (kind == tuple && !items.empty()); }
};

// The lets that are left, in the blocks that are open: the body of a function, a branch, a clause.
class Residual {
 public:
  int open();
  // The block as an expression whose value is `result`.
  Expr close(const Expr& result);
  int current() const { return blocks_.back().id; }
  bool is_open(int block) const { return open_.contains(block); }
  // A variable bound to `value` in the innermost block.
  Expr bind(const Expr& value, const std::string& name, const Type& annotation = {});
  // As above, with a variable that was made before.
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

// What the references hold that were made here, where it is known; what a block changed can be taken back. Each change
// takes constant time, and is taken back in as much.
class Store {
 public:
  // Null where it is not known.
  Known* find(int cell_id) const;
  void set(int cell_id, Known* value);
  // Nothing is known of any.
  void forget();
  size_t mark() const { return changes_.size(); }
  // As it was at the mark.
  void go_back(size_t mark);

 private:
  // Known while it is newer than what was forgotten.
  struct Cell {
    Known* value = nullptr;
    int64_t time = 0;
  };
  struct Change {
    int cell_id;  // -1: all were forgotten
    Cell cell;    // as it was
    int64_t forgotten;
  };
  std::vector<Cell> cells_;
  std::vector<Change> changes_;
  int64_t now_ = 0, forgotten_ = 0;
};

enum class Match : uint8_t { yes, no, unknown };
// Whether the pattern fits; what its variables are then is added to `vars`.
Match match_known(const relay::Pattern& pattern, Known* value, Known::Vars& vars);

// The value of a call whose operands are all constants, as an expression of constants and tuples of them; null where it
// cannot be computed here: the op has an effect, its result is larger than `most_bytes`, the budget is spent, or the
// call is an error.
Expr evaluate_call(const relay::CallNode& call, size_t most_bytes, interp::ConstantBudget& budget);

}  // namespace headrace::passes
