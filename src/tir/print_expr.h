// Expressions as text. Inner header of tir.
#pragma once

#include <unordered_map>

#include "ir/text_names.h"
#include "tir/stmt.h"

namespace headrace::tir {

// Writes the expressions of one function.
class ExprPrinter {
 public:
  // Makes a printer; below `most_depth` levels a summary shows "..."; 0 writes everything.
  explicit ExprPrinter(int most_depth = 0) : most_depth_(most_depth) {}

  std::string text(const PrimExpr& e) const;
  // Returns a name as it is written: x, %"conv 1".
  std::string name(const PrimVarNode& var) const { return written(names_.name_of(&var, var.name_hint, "v")); }
  std::string name(const BufferNode& buffer) const { return written(names_.name_of(&buffer, buffer.name, "b")); }
  // Returns a buffer's declaration: "x: Buffer[(n, 4), float32]", with the dtypes of symbols.
  std::string declaration(const Buffer& buffer);
  // Returns an access: "x[i, 0]".
  std::string indexed(const Buffer& buffer, const Array<PrimExpr>& indices) const;

  // Names the parts of `roots` that are to be written once: "%0 = ...;", one each. They stay named until forgotten.
  std::vector<std::string> define_parts(const std::vector<PrimExpr>& roots);
  void forget_parts() { parts_.clear(); }
  bool has_parts(const std::vector<PrimExpr>& roots) const { return !parts_of(roots).empty(); }

 private:
  static std::string written(const std::string& name);
  static std::vector<PrimExpr> parts_of(const std::vector<PrimExpr>& roots);
  void write(std::string& out, const PrimExpr& e, int depth) const;
  void write_node(std::string& out, const PrimExpr& e, int depth) const;
  void write_list(std::string& out, std::string_view open, const std::vector<PrimExpr>& items, std::string_view close,
                  int depth) const;
  void write_binary(std::string& out, const BinaryNode& e, int depth) const;
  void write_operand(std::string& out, const PrimExpr& e, int least_precedence, int depth) const;
  void write_intrinsic(std::string& out, const IntrinsicCallNode& e, int depth) const;

  int most_depth_;
  bool in_declaration_ = false;
  mutable NameTable names_;
  std::unordered_map<const PrimExprNode*, std::string> parts_;
  int64_t next_part_ = 0;
};

}  // namespace headrace::tir
