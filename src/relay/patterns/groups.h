// Groups: the places of a program that a pattern matches and that can be replaced as a whole.
//
// Places are tried from the result of the program towards its inputs. A match becomes a group unless
// - a part of it belongs to an earlier group,
// - a part of it other than the root is used outside, by an expression whose own result does not only flow into the
//   root. (An expression that does only flow into the root may use a part: the part is then computed twice.)
// - it has an effect inside: a reference, or a stateful op, which would happen at another time,
// - the caller refuses it. Nodes of a refused match are free for smaller matches.
// Where a match does not become a group, the place is tried with the other alternatives and without the optional parts
// of the pattern, the latest first, within a bounded number of tries.
//
// The inputs of a group are what wildcards, variables and expressions of the pattern stand for, each once, in the order
// of the pattern's nodes. Constants that is_constant or is_expr matched, ops, functions and global names are parts of
// the group, as is what stands in an inner scope of it: a branch, a function, the body of a let. Variables that such
// parts use and do not bind are inputs, too.
#pragma once

#include <functional>

#include "relay/patterns/expr_index.h"
#include "relay/patterns/pattern_index.h"

namespace headrace::relay {

struct PatternGroup {
  Expr root;
  std::vector<Expr> inputs;
  // The expressions inside, operands first; `root` is the last.
  std::vector<Expr> parts;
  // The expression that each node of the pattern stands for, by the pattern index's number.
  std::vector<std::pair<int, std::vector<Expr>>> matches;
};

struct GroupOptions {
  // Whether to look for matches inside a function literal; null: in all but those with PartitionedFromPattern.
  std::function<bool(const Expr& function)> enter = {};
  // Asked for each match that can become a group; null: all may. `shown` is the match for a caller that reads it from
  // its root: the root in the program for the first match at a place, and for a further match there the group by itself
  // (piece_of), which has a variable where the first match went on.
  std::function<bool(const PatternGroup& group, const Expr& shown)> accepts = {};
  // Whether a match that computes nothing counts: a variable, a constant, an op by itself.
  bool takes_leaves = false;
};

// The attribute of functions made from groups: the ops that were matched, "nn.conv2d_add_".
inline constexpr const char* kPartitionedFromPattern = "PartitionedFromPattern";

// Returns the groups in the order in which they were found. Linear in the graph where matches are small. Whatever
// `accepts` throws passes through; UserError as Matcher::match.
std::vector<PatternGroup> find_groups(const PatternIndex& pattern, const ExprIndex& graph,
                                      const GroupOptions& options = {});

// Returns the group as a function of its inputs, with parameters FunctionVar_<number>_<i> that have the inputs' types
// where these are known, and the attribute PartitionedFromPattern. The function says the type of its result where an
// input may be a shape that determines that type.
Function function_of(const PatternGroup& group, size_t number);

// Returns the group's root with variables in place of inputs other than variables and constants. It has the types of
// the program, as far as these are known.
Expr piece_of(const PatternGroup& group);

// Returns whether an input of the group may be a shape: a tensor of integers of at most one dimension. Type inference
// follows the values of such tensors, and does not know those of parameters.
bool has_shape_input(const PatternGroup& group);

}  // namespace headrace::relay
