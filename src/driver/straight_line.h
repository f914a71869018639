// A program as a list of calls and the tensors between them, for splitting it into stages.
#pragma once

#include <cstdint>
#include <vector>

#include "relay/expr.h"

namespace headrace::driver {

// A tensor of a program.
struct ProgramTensor {
  enum class Kind : uint8_t { param, constant, call };
  Kind kind = Kind::param;
  size_t owner = 0;  // the number of the parameter, constant or call
  size_t index = 0;  // which tensor of a call's value
  Type type = {};

  bool operator==(const ProgramTensor& other) const {
    return kind == other.kind && owner == other.owner && index == other.index;
  }
};

struct StraightLine {
  relay::Function main;
  std::vector<relay::Constant> constants;                     // each object once
  std::vector<relay::Call> calls;                             // calls of ops, each after those that it reads
  std::vector<std::vector<std::vector<ProgramTensor>>> args;  // the tensors of each argument of each call
  std::vector<ProgramTensor> results;                         // results of the program, tuples flattened
};

// Reads the function `main` of a typed module. UserError at a node that is not a call of an op, tuple, item, parameter
// or constant: control flow, functions, references. Uses no recursion.
StraightLine read_straight_line(const IRModule& module);

// Returns the bytes of a tensor; UserError at `span` for one without known sizes.
int64_t size_bytes_of(const Type& type, const Span& span);

}  // namespace headrace::driver
