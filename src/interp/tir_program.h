// A PrimFunc as a list of steps over slots of cells, so that running it needs no recursion. Inner header of interp.
#pragma once

#include "interp/tir_number.h"
#include "tir/stmt.h"

namespace headrace::interp {

enum class StepKind : uint8_t {
  binary,
  negation,
  select,
  cast,
  reinterpret,
  ramp,
  broadcast,
  intrinsic,
  reduce_add,
  copy,
  mask_and,     // dst = a & b, of lanes; `flag`: dst = a & !b
  load,         // `mask`: only these lanes read
  vector_load,  // from the place at `indices`, b elements further
  store,
  jump,         // to `target`
  jump_unless,  // a, a scalar
  loop_value,   // dst = a + b, or with `flag` (a parallel loop) what TirOptions say; c is the extent
  allocate,     // forgets what the buffer held
  check,        // a, with `message`
};

struct Step {
  StepKind kind;
  DataType dtype = {};                   // the operands'; for a load or store, the element's
  DataType to = {};                      // the result's
  int lanes = 1;                         // the result's
  int dst = -1, a = -1, b = -1, c = -1;  // slots
  int a_lanes = 1;                       // 1 where a scalar condition or index serves all lanes
  int mask = -1, mask_lanes = 1;
  bool flag = false;
  BinaryOp op = BinaryOp::add;
  Intrinsic which = Intrinsic::exp;
  int buffer = -1;
  std::vector<std::pair<int, int>> indices = {};  // slot and lanes of each
  size_t target = 0;
  int statement = -1;
  std::string_view message = {};
};

struct ProgramBuffer {
  Buffer buffer;
  std::vector<int> dims, strides;  // slots; no strides: dense
  enum class Role : uint8_t { input, output, local } role = Role::local;
};

struct Program {
  std::vector<Step> steps;  // the first `begin` of them compute dimensions
  size_t begin = 0;
  std::vector<Cell> cells;                              // at the start: constants are there already
  std::vector<ProgramBuffer> buffers;                   // parameters first
  std::unordered_map<const PrimVarNode*, int> symbols;  // their slots
  std::vector<tir::Stmt> statements;                    // indexed by Step::statement, for messages
};

Program compile_program(const tir::PrimFunc& function);

}  // namespace headrace::interp
