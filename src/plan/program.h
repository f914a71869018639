// plan::Program: a compiled program as a list of steps over memory, in destination passing form: each step is given the
// views that it reads and those that it writes.
//
// The passes of this room work on it, in this order; driver/compile.cc calls them:
//
//   read_program   a main of fused groups                     -> a program
//   join_views     the parts of a concatenation              -> they are written into its result
//   plan_memory    storages                                   -> offsets in one arena for each location
//   find_breaches  (verify_program.h) checks the rules
//   emit_graph_program                                        -> the manifest's program, which the runtime reads
//   static_main_tables of the manifest's program              -> what clients without the runtime read
//
// static_main_tables reads the manifest's program and not this one, because its entries hold offsets of weights, which
// are known only when all programs of a file have been emitted.
//
// program_text.h has its text form, which is a Relay module that the interpreter runs.
#pragma once

#include "artifact/location.h"
#include "relay/expr.h"

namespace headrace::plan {

// A piece of memory that views are parts of.
struct Base {
  enum class Kind : uint8_t { input, output, constant, storage };
  Kind kind = Kind::storage;
  std::string name = {};          // name of an input or output in texts
  TensorType type = {};           // type of an input, output or constant
  relay::Constant constant = {};  // null for other kinds
  int64_t nbytes = 0;
  artifact::Location location = {};
  std::optional<int64_t> offset = {};  // place of a storage in the arena of its location, once memory is planned
  Span span = {};
};

// A tensor in a part of a base.
struct View {
  size_t base = 0;
  int64_t byte_offset = 0;
  TensorType type = {};
  Shape shape = {};    // shape of `type`, as numbers
  Shape strides = {};  // in elements, not negative; empty: dense
};

// Calls a function of the program, or copies inputs[0] to outputs[0] where there is none.
struct Step {
  std::optional<size_t> function = {};            // an index of Program::functions
  std::vector<size_t> inputs = {}, outputs = {};  // views; those of a function are in the order of its parameters
  Span span = {};
};

// An output whose size only a run tells (passes/forms/bound_outputs.h).
struct BoundedOutput {
  size_t output = 0, axis = 0;
  size_t extent = 0;  // the view, int64[1], that says how many indices of the axis are valid
};

struct Program {
  std::vector<Base> bases;
  std::vector<View> views;
  std::vector<Step> steps;              // in an order that respects the data
  std::vector<size_t> inputs, outputs;  // views of whole bases of these kinds
  std::vector<BoundedOutput> bounded_outputs;
  std::vector<std::pair<GlobalVar, relay::Function>> functions;  // that steps call, in the order of their first use
};

// Drops the functions that no step calls.
void drop_unused_functions(Program& program);

// Returns the name of the import that computes a function: that of a region for another compiler, or of the function of
// the process that computes a user's op. Nothing when the function becomes a kernel.
std::optional<std::string> import_of(const GlobalVar& name, const relay::FunctionNode& function);

// Returns the bytes from the view's first element to the end of its last one.
int64_t span_bytes(const View& view);

// When a base is in use: from the step that touches it first to the step that touches it last.
struct Lifetime {
  size_t first = SIZE_MAX;  // SIZE_MAX: no step touches it
  size_t last = 0;          // the number of steps for what is read after all of them
};
// Returns the lifetime of each base.
std::vector<Lifetime> lifetimes_of(const Program& program);

}  // namespace headrace::plan
