// Writes one kernel as functions of C. Split over c_stmt.cc (statements), c_function.cc (the frame of functions),
// c_expr.cc and c_intrinsic.cc (expressions), c_memory.cc (loads and stores).
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/bounds.h"
#include "codegen/c_helpers.h"
#include "codegen/c_lanes.h"
#include "codegen/c_syntax.h"
#include "tir/workspace.h"

namespace headrace::codegen {

// The binding strength, in C, of an expression's text.
enum class CLevel : uint8_t {
  ternary,
  logical_or,
  logical_and,
  bitwise,
  equality,
  relation,
  shift,
  sum,
  product,
  unary,
  primary
};

struct CCode {
  std::string text;
  CLevel level = CLevel::primary;
  bool has_width = true;  // false: made of literals alone, which are int whatever the dtype
  // The unsigned operand, for a number of 32 or 64 bits that is a cast of one.
  std::string unsigned_text = {};
  CLevel unsigned_level = CLevel::primary;
};

// Returns `code`, in parentheses unless it binds at least as tightly as `level`.
std::string at_least(const CCode& code, CLevel level);
// Converts `code`, of an integer dtype of 32 or 64 bits, to the unsigned type and back.
CCode as_unsigned(const CCode& code, DataType dtype);
CCode from_unsigned(const CCode& code, DataType dtype);

class CKernel {
 public:
  struct IntrinsicTable;  // in c_intrinsic.cc

  explicit CKernel(CHelpers& helpers) : helpers_(helpers) {}

  // Writes the function, after the bodies of its parallel loops.
  std::string write(const tir::PrimFuncNode& function);
  // Writes a function `name` of one float: the value of `e` for `argument`.
  std::string write_function(const std::string& name, const PrimVar& argument, const PrimExpr& e);

 private:
  // A C variable, which stands for a parameter, a symbol, a loop variable, a let or an allocation.
  struct Variable {
    std::string name;
    std::string type;  // as a parallel loop's body takes it over: "const float*", "int64_t"
    bool is_used = false;
  };
  // A C function that is being written.
  struct Frame {
    std::unordered_map<const Object*, Variable> variables;
    std::vector<const Object*> captured;  // variables of `outer`, in the order of first use
    Frame* outer = nullptr;
    CNames names;
    bool uses_env = false;
  };

  // c_function.cc
  void bind_arguments(const tir::PrimFuncNode& function);
  std::string arguments_text(const tir::PrimFuncNode& function) const;
  std::string signature_comment(const tir::PrimFuncNode& function) const;
  void bind(const Object* key, std::string_view hint, const std::string& type);
  const std::string& use(const Object* key, std::string_view what);
  std::string pointer_to(const BufferNode& buffer) const;
  std::string declaration(const Variable& variable) const;
  void write_parallel(const tir::ForNode& loop);
  std::string parallel_part(const tir::ForNode& loop, const std::string& name, const std::string& first, Frame& frame);
  std::string parallel_body(const tir::ForNode& loop, const std::string& first, Frame& frame);
  void write_parallel_call(const std::string& name, const std::string& first, const std::string& extent,
                           const Frame& body);

  // c_stmt.cc
  void line(std::string_view text);
  // Writes `head` and, in braces, the text of `body`; names and parts from inside end there.
  void block(std::string_view head, const std::function<void()>& body);
  // Returns the text that `body` writes.
  std::string captured(const std::function<void()>& body);
  // Declares the variable of `key`, then runs `rest`; marks the variable for compilers when it is not used.
  void declared(const Object* key, const std::function<void()>& rest);
  void each_lane(int lanes, const std::function<void(const PrimExpr& lane)>& body);
  void write_statement(const tir::Stmt& stmt);
  void write_simple(const tir::Stmt& stmt);
  // Writes the statements of a block, without its braces.
  void write_block(const tir::Stmt& stmt);
  void write_for(const tir::ForNode& loop);
  void write_range(const tir::ForNode& loop, std::string_view begin, std::string_view end);
  void write_steps(const tir::ForNode& loop);
  void bind_loop(const tir::ForNode& loop);
  void write_if(const tir::IfThenElseNode& branch);
  void write_let(const PrimVar& var, const PrimExpr& value);
  void write_vector_let(const PrimVar& var, const PrimExpr& value);
  // Declares memory for `buffer`.
  void write_allocate(const tir::AllocateNode& allocation);
  // Begins a statement: decides which parts of its expressions get names.
  void open_statement(const std::vector<PrimExpr>& roots);
  void name_parts(const std::vector<PrimExpr>& roots);

  // c_expr.cc
  CCode emit(const PrimExpr& e);
  CCode emit_inner(const PrimExpr& e);
  CCode emit_real(const FloatImmNode& e);
  CCode emit_binary(const BinaryNode& e);
  CCode emit_comparison(const BinaryNode& e);
  static CCode emit_bool_order(BinaryOp op, CCode a, CCode b);
  CCode emit_sum(const BinaryNode& e);
  CCode emit_division(const BinaryNode& e);
  CCode emit_conditions(const BinaryNode& e);
  CCode emit_float(const BinaryNode& e);
  CCode cast(const CCode& value, DataType from, DataType to);
  CCode rounded(const CCode& value, DataType dtype);
  // Declares a new variable of that value.
  CCode named(const CCode& value, DataType dtype, std::string_view hint);

  // c_intrinsic.cc
  // Emit the row of the table for an intrinsic. `args` are the operands; they are empty for rows that emit them
  // themselves.
  using Args = std::vector<CCode>;
  CCode emit_intrinsic(const IntrinsicCallNode& e);
  CCode emit_function(const IntrinsicCallNode& e, const Args& args);
  CCode emit_abs(const IntrinsicCallNode& e, const Args& args);
  CCode emit_rsqrt(const IntrinsicCallNode& e, const Args& args);
  CCode emit_test(const IntrinsicCallNode& e, const Args& args);
  CCode emit_power(const IntrinsicCallNode& e, const Args& args);
  CCode emit_bitwise(const IntrinsicCallNode& e, const Args& args);
  CCode emit_shift(const IntrinsicCallNode& e, const Args& args);
  CCode emit_reinterpret(const IntrinsicCallNode& e, const Args& args);
  CCode emit_vector_load(const IntrinsicCallNode& e, const Args&);
  CCode emit_prefetch(const IntrinsicCallNode& e, const Args&);
  CCode emit_if_then_else(const IntrinsicCallNode& e, const Args&);
  CCode emit_reduce_add(const IntrinsicCallNode& e, const Args&);
  std::string function_of(Intrinsic intrinsic, DataType dtype);

  // c_memory.cc
  CCode index(const PrimExpr& e);
  std::string offset_of(const Buffer& buffer, const Array<PrimExpr>& indices);
  // Returns "x[i * 4 + j]": the element that a load reads, and the one `offset` elements behind it.
  std::string element_of(const Buffer& buffer, const Array<PrimExpr>& indices, const PrimExpr& offset = {});
  std::string element_of(const PrimExpr& place, const PrimExpr& offset);
  CCode from_memory(const std::string& text, DataType dtype);
  std::string to_memory(const CCode& value, DataType dtype);
  CCode reinterpreted(const CCode& value, DataType from, DataType to);
  PrimExpr in_lane(const PrimExpr& e, const PrimExpr& lane) const;
  void write_store(const tir::BufferStoreNode& store);
  void write_vector_store(const tir::BufferStoreNode& store);

  CHelpers& helpers_;
  tir::WorkspaceLayout workspace_;
  std::string symbol_;
  std::string functions_;  // bodies of parallel loops that are complete
  int parts_ = 0;
  bool no_alias_ = false;
  std::unordered_set<const Object*> stored_;  // buffers that the kernel writes to
  Frame* frame_ = nullptr;
  arith::KnownBounds known_;
  std::unordered_map<const PrimVarNode*, Buffer> vectors_;  // memory of variables that are vectors

  std::string out_;
  size_t indent_ = 0;
  // Expressions that the current statement has computed already, and those that have a variable of their own.
  std::unordered_map<const Object*, CCode> memo_;
  std::unordered_set<const Object*> named_;
  std::vector<PrimExpr> kept_;  // made here, and known by address
};

}  // namespace headrace::codegen
