// The cases of the conformance kit: small programs, one for each thing that a backend may claim to compute.
//
//   nn.conv2d/strides: def @main(%x: Tensor[(1, 4, 9, 7), float32]) { nn.conv2d(%x, %w, strides=[2, 1]) }, %w a
//   constant
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"
#include "partition/backend.h"
#include "relay/expr.h"

namespace headrace::conformance {

struct Case {
  std::string name;                         // "nn.conv2d/strides": an op or a pattern, and what is special
  std::string text;                         // a Relay program
  std::vector<std::string> constants = {};  // the parameters of main that become constants
  std::string free_op = {};                 // an op that any backend may compute; empty: all are the backend's
  std::string reference = {};               // an equal program of ops that the interpreter computes; empty: `text`
};

// Returns the cases of single ops: those without attributes in several dtypes and shapes, and those with attributes in
// variants of them.
std::vector<Case> op_cases();

// Returns cases of several ops, made of ops that the backend takes in float32 at (3, 4): constants in every place,
// values used twice, several results, chains. Either may be empty.
std::vector<Case> structure_cases(const std::vector<std::string>& unary, const std::vector<std::string>& binary);

// Returns the names of ops of one and of two tensors without attributes, sorted.
std::vector<std::string> plain_ops(int num_inputs);

// Reads the case as a typed module, its constants still parameters.
IRModule module_of(const Case& one);

// Returns cases that a pattern matches, if some can be made up: wildcards become parameters of shapes that ops take,
// constants become constants.
std::vector<Case> pattern_cases(const partition::CompositePattern& pattern);

// Returns whether the backend takes each call of the case's op by itself.
bool is_taken(const partition::Backend& backend, const IRModule& module);

// Returns all cases for a backend: those above, with the ops that it takes in the structures. UserError for a backend
// that there is not.
std::vector<Case> cases_for(const std::string& backend);

}  // namespace headrace::conformance
