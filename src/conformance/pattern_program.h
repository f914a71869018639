// The program that a pattern describes, whose parameters have no shapes yet.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "relay/patterns/pattern.h"

namespace headrace::conformance {

// A call of an op: `%0 = nn.conv2d(%v0, %v1, groups=1)`.
struct MadeCall {
  std::string op;
  std::vector<std::string> args;           // "%v0", a parameter, or "%0", the result of call 0
  std::string attrs = {};                  // ", groups=1"
  std::set<std::string> given_attrs = {};  // their names
};

struct PatternProgram {
  std::vector<MadeCall> calls;         // call i is %i
  std::string result;                  // "%1"
  std::vector<std::string> params;     // "v0"
  std::vector<std::string> constants;  // those of `params` that the pattern wants to be constants
};

// Returns the program of a pattern: wildcards and variables are parameters, of alternatives the left one is taken.
// Nothing for a pattern that has other parts than calls of ops, constants, wildcards, variables, dtypes and attributes.
std::optional<PatternProgram> program_of(const relay::DFPattern& pattern);

// Returns a program with two copies of this one, the second with parameters of its own behind those of the first; its
// result is that of the second copy, whose parameter `joined` is the result of the first, or both results without one.
PatternProgram doubled(const PatternProgram& program, std::optional<size_t> joined);

// Returns the program as Relay text, with parameters of these shapes in float32, one for each.
std::string text_of(const PatternProgram& program, const std::vector<Shape>& shapes);

}  // namespace headrace::conformance
