// The parser, one class over three files: parse.cc (modules, attributes), parse_stmt.cc, parse_expr.cc. Inner header of
// tir.
#pragma once

#include "base/stack.h"
#include "ir/text_literal.h"
#include "ir/token_reader.h"
#include "tir/parse.h"
#include "tir/text_words.h"

namespace headrace::tir {

class Parser : private TokenReader {
 public:
  Parser(std::string_view text, const std::string& source_name) : TokenReader(text, source_name) {}
  IRModule module();

 private:
  // Thrown after the report that ends reading.
  struct TooDeep {};
  [[noreturn]] void too_deep(std::string message) {
    report(peek(), std::move(message));
    throw TooDeep();
  }
  void check_stack() {
    if (is_stack_low()) too_deep("the text nests too deeply for the stack, which `ulimit -s` limits");
  }
  // Counts the levels of a recursion; past `most`, or where the stack ends before, it is an error.
  class Level {
   public:
    Level(Parser& parser, int& depth, int most, std::string_view what) : depth_(depth) {
      if (depth_ >= most) parser.too_deep(fmt::format("{} nest at most {} levels deep", what, most));
      parser.check_stack();
      ++depth_;
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;

   private:
    int& depth_;
  };

  // Modules and attributes.
  void version();
  void function();
  void params(Array<Buffer>& out);
  DictAttrs function_attrs(const std::string& name);
  Value value(int depth);
  Value number_value();
  void skip_to_function();

  // Statements.
  Stmt braces(std::string_view where);
  std::vector<Stmt> braced_items(std::string_view where);
  std::vector<Stmt> block_items();
  Stmt let_statement();
  Stmt allocate_statement();
  Stmt statement();
  Stmt simple_statement();
  Stmt for_statement();
  Stmt if_statement();
  Stmt assert_statement();
  Stmt store_statement();
  void part_definition();
  void skip_statement();

  // Names. A name is bound to one object a function; `in scope` says where.
  std::string new_name(std::string_view what);
  void check_new(const Token& token, const std::string& name);
  PrimVar bind_var(const std::string& name, DataType dtype);
  Buffer declared_buffer(bool is_param);
  Array<PrimExpr> dims();
  Array<PrimExpr> expressions(std::string_view close);

  // Expressions.
  PrimExpr expr(int least_precedence = 0);
  PrimExpr primary();
  PrimExpr named(const Token& first);
  PrimExpr call(const Token& name);
  PrimExpr function_call(const Token& name);
  PrimExpr intrinsic_call(const Token& name, Intrinsic intrinsic);
  PrimExpr let_expr(const Token& name);
  PrimExpr const_expr();
  PrimExpr vector_expr(const Token& name);
  PrimExpr load(const Token& name, const Buffer& buffer);
  PrimExpr symbol(const Token& token);
  PrimExpr number(bool negative);
  PrimExpr binary(const Token& sign, const OperatorText& op, PrimExpr a, PrimExpr b);
  DataType dtype();
  DataType access_dtype(const Token& name, const Buffer& buffer, const Array<PrimExpr>& indices);
  int64_t integer(std::string_view what);
  double real_of(const Token& token, bool negative);
  int64_t integer_of(const Token& token, bool negative, std::optional<DataType> in_range_of);

  // The meanings of one name.
  struct Meaning {
    PrimVar var;
    Buffer buffer;
    PrimExpr part;
    bool operator!() const { return !var && !buffer && !part; }
  };
  ScopedNames<Meaning> names_;
  // The object that a name was bound to before.
  std::unordered_map<std::string, PrimVar> vars_;
  std::unordered_map<std::string, Buffer> buffers_;
  bool in_params_ = false;  // an unknown name is a new symbol
  int statement_depth_ = 0, expr_depth_ = 0;
  IRModule module_ = make_module();
};

}  // namespace headrace::tir
