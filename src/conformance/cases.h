// The cases of the conformance kit: small programs, one for each thing that a backend may claim to compute.
//
//   nn.conv2d/strides: def @main(%x: Tensor[(1, 4, 9, 7), float32]) { nn.conv2d(%x, %w, strides=[2, 1]) }, %w a
//   constant
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/module.h"
#include "partition/backend.h"
#include "relay/expr.h"

namespace headrace::conformance {

struct Case {
  std::string name;                           // "nn.conv2d/strides": an op or a pattern, and what is special
  std::string text;                           // a Relay program
  std::vector<std::string> constants = {};    // the parameters of main that become constants
  int native_line = 0;                        // the line of the text whose op is to be native; 0: none
  std::string reference = {};                 // an equal program of ops that the interpreter computes; empty: `text`
  std::vector<std::string_view> values = {};  // see given_tensor; empty: random ones
  bool is_brief = false;                      // only checks of what a run computes are made
  bool is_probe = false;                      // made up for an op of which there is no case
  std::string disabled_pass = {};             // a pass that would remove the op; empty: all passes run
  bool is_match = false;                      // made for a pattern: the backend need not take the calls by themselves
  bool is_marked = false;                     // the text marks a region of an op that the backend does not take
};

// Returns the program for readers: the text, and a comment that names the parameters that become constants.
std::string shown_program(const Case& one);

// Returns whether the name of a case matches one of the patterns ("nn.conv2d/*"); without patterns all do.
bool is_chosen(const std::string& name, const std::vector<std::string>& patterns);

// Returns the cases of single ops whose names match: those without attributes in several dtypes and shapes, those with
// attributes in variants of them, and the calls with which the ops themselves are tested; all of these also in other
// dtypes where the type relation takes them; and a probe of each op that is in none of them, such as a user's.
std::vector<Case> op_cases(const std::vector<std::string>& patterns = {});

// Returns the variants of ops with attributes, in one dtype each.
std::vector<Case> variant_cases();

// Returns the case in another dtype: with it in place of float32.
Case in_dtype(const Case& one, const std::string& dtype);

// Returns cases of several ops, made of ops that the backend takes in float32 at (3, 4): constants in every place,
// values used twice, several results, chains, two regions with a native op between them; and chains of layers with
// weights, whether the backend takes them or not. Either may be empty.
std::vector<Case> structure_cases(const std::vector<std::string>& unary, const std::vector<std::string>& binary);

// Returns the names of ops of one and of two tensors without attributes, sorted.
std::vector<std::string> plain_ops(int num_inputs);

// Reads the case as a typed module, its constants still parameters.
IRModule module_of(const Case& one);

// Returns whether the program of the case has types.
bool has_type(const Case& one);

// Returns the pattern of a --place that makes the op on `native_line` native.
std::string native_places(const Case& one);

// Returns cases that a pattern matches, if some can be made up: wildcards become parameters of shapes that ops take,
// constants become constants. Of those that the backend takes, the first one that fits is repeated with another value
// of each attribute that the pattern leaves open, "NAME/nn.conv2d.kernel_layout", and stands twice in one program,
// "NAME/two_matches".
std::vector<Case> pattern_cases(const std::string& name, const relay::DFPattern& pattern,
                                const std::function<bool(const Case&)>& is_taken);

// Returns the calls of ops in main, each with what the backend says to it by itself.
std::vector<std::pair<const relay::CallNode*, partition::Verdict>> verdicts_on(const partition::Backend& backend,
                                                                               const IRModule& module);

// Returns whether the backend takes each call of main by itself.
bool is_taken(const partition::Backend& backend, const IRModule& module);

// Returns the cases for a backend whose names match the patterns: those above, with the ops that it takes in the
// structures. Where a question crashes or hangs, the answer counts as no, and the check of a case reports it; `timeout`
// is that of a case, in seconds. UserError for a backend that there is not, and where no name matches, with names that
// are similar.
std::vector<Case> cases_for(const std::string& backend, const std::vector<std::string>& patterns = {},
                            double timeout = 30);

}  // namespace headrace::conformance
