// Statements and functions of the loop IR. Scalars and buffers are in ir/prim_expr.h.
#pragma once

#include "ir/expr.h"

namespace headrace::tir {

struct StmtNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "tir.Stmt";
  static constexpr int32_t child_slots = 16;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<StmtNode>& f);
  Span span;
};
using Stmt = Ref<StmtNode>;

// buffer[indices] = value. The last index may be a Ramp: then value is a vector.
struct BufferStoreNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.BufferStore";
  static constexpr bool is_final = true;
  static void fields(FieldList<BufferStoreNode>& f);
  Buffer buffer;
  PrimExpr value;
  Array<PrimExpr> indices;
};

enum class ForKind : uint8_t {
  serial,
  parallel,    // iterations may run in any order on any thread; none inside another
  vectorized,  // one vector operation; its extent is a constant (gone after VectorizeLoop)
  unrolled,    // copied once an iteration; its extent is a constant (gone after UnrollLoop)
};
constexpr ForKind greatest(ForKind) { return ForKind::unrolled; }
std::string_view name_of(ForKind kind);

// for var in [begin, begin + extent)
struct ForNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.For";
  static constexpr bool is_final = true;
  static void fields(FieldList<ForNode>& f);
  PrimVar var;
  PrimExpr begin, extent;
  ForKind kind = ForKind::serial;
  Stmt body;
};

struct IfThenElseNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.IfThenElse";
  static constexpr bool is_final = true;
  static void fields(FieldList<IfThenElseNode>& f);
  PrimExpr condition;
  Stmt then_case, else_case;
};

struct LetStmtNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.LetStmt";
  static constexpr bool is_final = true;
  static void fields(FieldList<LetStmtNode>& f);
  PrimVar var;
  PrimExpr value;
  Stmt body;
};

struct SeqNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.SeqStmt";
  static constexpr bool is_final = true;
  static void fields(FieldList<SeqNode>& f);
  Array<Stmt> items;
};

enum class Scope : uint8_t {
  registers,  // small, of constant shape: lives in registers or on the stack
  workspace,  // has a constant shape: lives in the calling worker's workspace, 64-byte aligned
};
constexpr Scope greatest(Scope) { return Scope::workspace; }

// Uninitialised memory for `buffer` within `body`.
struct AllocateNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.Allocate";
  static constexpr bool is_final = true;
  static void fields(FieldList<AllocateNode>& f);
  Buffer buffer;
  Scope scope = Scope::registers;
  Stmt body;
};

// Evaluates `value` for its effect: a prefetch.
struct EvaluateNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.Evaluate";
  static constexpr bool is_final = true;
  static void fields(FieldList<EvaluateNode>& f);
  PrimExpr value;
};

// The function stops with HR_KERNEL_ASSERT and `message` when `condition` is false.
struct AssertNode : StmtNode {
  using Parent = StmtNode;
  static constexpr std::string_view type_key = "tir.AssertStmt";
  static constexpr bool is_final = true;
  static void fields(FieldList<AssertNode>& f);
  PrimExpr condition;
  std::string message;
};

// A kernel: destination-passing; params are the inputs, then `num_outputs` outputs. Symbols in the params' shapes and
// strides are bound from the tensors at the call. Attribute global_symbol is its name in the artifact.
struct PrimFuncNode : BaseFuncNode {
  using Parent = BaseFuncNode;
  static constexpr std::string_view type_key = "tir.PrimFunc";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<PrimFuncNode>& f);
  Array<Buffer> params;
  int64_t num_outputs = 1;
  Stmt body;
};
using PrimFunc = Ref<PrimFuncNode>;

Stmt make_store(Buffer buffer, PrimExpr value, Array<PrimExpr> indices);
Stmt make_for(PrimVar var, PrimExpr begin, PrimExpr extent, ForKind kind, Stmt body);
Stmt make_if(PrimExpr condition, Stmt then_case, Stmt else_case = {});
Stmt make_let(PrimVar var, PrimExpr value, Stmt body);
// Makes one statement of several; nested sequences are flattened, and a sequence of one is that statement.
Stmt make_seq(const std::vector<Stmt>& items);
Stmt make_allocate(Buffer buffer, Scope scope, Stmt body);
Stmt make_evaluate(PrimExpr value);
Stmt make_assert(PrimExpr condition, std::string message);
PrimFunc make_prim_func(std::string symbol, Array<Buffer> params, int64_t num_outputs, Stmt body);
// Returns the function's global_symbol; InternalError when it has none.
std::string symbol_of(const PrimFuncNode& function);

// Makes the node types of tir known by key.
void register_types();

}  // namespace headrace::tir
