// MergeComposite: pieces of a program that a backend knows as one thing become functions with its name.
//
//   def @main(%x, %w) { nn.relu(nn.conv2d(%x, %w)) }
//   table: "onednn.conv_relu": nn.relu(nn.conv2d(_, _))
//   ->
//   def @main(%x, %w) {
//     %1 = fn (%FunctionVar_0_0, %FunctionVar_0_1,
//              PartitionedFromPattern="nn.conv2d_nn.relu_", Composite="onednn.conv_relu") {
//       %0 = nn.conv2d(%FunctionVar_0_0, %FunctionVar_0_1);
//       nn.relu(%0)
//     };
//     %1(%x, %w)
//   }
//
// The order of the table is the priority: each pattern takes what the patterns before it left. relay/patterns/groups.h
// says which matches become functions and what their parameters are. A check that refuses a match leaves its nodes to
// smaller matches of the same pattern and to later patterns. Functions that passes leave alone and literals that are
// units already (relay/function_attrs.h) are not looked into.
//
// A match is refused when types would change: when it computes a shape that type inference follows, or needs the values
// of one that would become a parameter.
//
// Preserves results to the last bit, and the order and number of effects. Runs before AnnotateTarget, which places the
// functions by their names, and after the canonical passes, which make equal pieces look alike.
#pragma once

#include <span>

#include "partition/verdict.h"
#include "pass/pass.h"
#include "relay/patterns/groups.h"
#include "relay/patterns/pattern_text.h"

namespace headrace::partition {

struct CompositePattern {
  std::string name;  // name of the function: "onednn.conv_relu"
  relay::DFPattern pattern;
  // Asked for each match, whose parts have types; null: all are taken. `shown` is the match as checks of users see it
  // (relay::GroupOptions::accepts).
  std::function<CheckAnswer(const relay::PatternGroup& group, const Expr& shown)> accepts = {};
  bool is_read = false;  // read from text: its reader frees it (relay::release_recursions)
};

// Returns the module with its pieces as functions, typed; the module itself when nothing matched and it was typed.
// UserError as relay::infer_type and relay::Matcher::match; what a check throws passes through.
// `on_program`, unless null, gets each program in which patterns are matched, before they are.
IRModule merge_composite(const IRModule& module, std::span<const CompositePattern> table,
                         const std::function<void(const IRModule&)>& on_program = {});

// Reads a table from the value of the pass's option: the text form of a table, or a list of [name, pattern] and
// [name, pattern, check], where a pattern is a node or a text and a check is a function of an expression that gives an
// answer (partition/verdict.h). UserError that names the entry that is none of these.
std::vector<CompositePattern> read_table(const Value& value);

// A table that was read, and whose patterns are freed with it.
class PatternTable {
 public:
  // UserError as read_table.
  explicit PatternTable(const Value& value);
  PatternTable(const PatternTable&) = delete;
  PatternTable& operator=(const PatternTable&) = delete;
  ~PatternTable();
  const std::vector<CompositePattern>& entries() const { return entries_; }

 private:
  std::vector<CompositePattern> entries_;
};

// Makes the pass, whose option "pattern_table" is the table; without it the pass changes nothing.
pass::Pass merging_composites();

}  // namespace headrace::partition
