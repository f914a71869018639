// The parser, one class over several files: parser.cc (tokens and names), parse_type.cc, parse_expr.cc, parse_attrs.cc,
// parse_literal.cc (constants and metadata), parse_imports.cc, parse.cc (modules). Inner header of relay.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "ir/text_literal.h"
#include "ir/token_reader.h"
#include "relay/descent.h"
#include "relay/text/imports.h"
#include "relay/text/parse.h"

namespace headrace::relay {

using NamedValue = std::pair<std::string, Value>;

// The attributes that a call is written with; `attrs=None` says that it has none.
struct CallAttrs {
  std::vector<NamedValue> fields;
  bool none = false;
  void add(const Token& name, NamedValue field) {
    if (!name.is("attrs")) return fields.push_back(std::move(field));
    none |= field.second.is_none();
  }
};

// Returns 1 at an opening bracket, -1 at a closing one, and 0 otherwise.
int nesting_step(const Token& token);

class Parser : private TokenReader {
 public:
  Parser(std::string_view text, const std::string& source_name, const ParseOptions& options);
  // Parses an imported text, which must outlive the parser.
  Parser(const ImportedText& found, const ParseOptions& options, Imports& imports);
  IRModule module();
  Expr expression();

 private:
  void check_depth(size_t depth);
  bool at_item() const { return at("def") || at("type") || at("extern"); }
  void skip_statement();
  void skip_to_item();

  // Types and dimensions.
  Nested<Type> type();
  Nested<Type> tensor_type(Token first);
  Nested<Type> function_type(Token first);
  Nested<Array<Type>> constraints();
  Nested<Type> constraint(Token first);
  Nested<Type> tuple_type(Token first);
  Nested<Type> named_type(Token first);
  Array<TypeVar> type_params();
  DataType dtype_word();
  Nested<PrimExpr> dim(int min_precedence);
  Nested<PrimExpr> dim_primary();
  Nested<PrimExpr> dim_function(Token name);
  PrimExpr dim_binary(const Token& sign, BinaryOp op, PrimExpr a, PrimExpr b);
  PrimExpr dim_integer(bool negative);
  PrimExpr symbol(const Token& token);

  // Expressions.
  Nested<Expr> block();
  Nested<bool> statement(std::vector<Let>& lets);
  Nested<bool> let_statement(std::vector<Let>& lets);
  Nested<Expr> expr(int min_precedence);
  Nested<Expr> postfix();
  Nested<Expr> call(Expr callee, Array<Type> types, Token first);
  Nested<Array<Type>> type_args();
  Nested<Expr> primary();
  Nested<Expr> keyword(Token first);
  Nested<Expr> braces(std::string_view where);
  Nested<Expr> parens(Token first);
  Nested<Expr> if_expr(Token first);
  Nested<Expr> ref_expr(Token first);
  Nested<Expr> match_expr(Token first);
  Nested<Expr> negated(Token first);
  Nested<Function> function(Token first);
  Nested<bool> params(Array<Var>& out, DictAttrs& attrs);
  // Parses a variable. `device` receives the virtual device that TVM writes behind its name, as text.
  Nested<Var> declared_var(std::string* device = nullptr);
  std::string declared_device();
  Expr on_device(const Expr& value, const std::string& device, const Token& first);
  Pattern pattern(size_t depth);
  void check_names(const Token& begin, const Pattern& pattern);
  Array<Pattern> patterns(size_t depth);
  Expr variable(const Token& token);
  Expr named_callee(const Token& token);
  Constructor find_constructor(const Token& first);
  Constructor need_constructor(const Token& first);
  // Returns the op; reports an error and returns null when there is none.
  Expr known_op(const std::string& name, const Token& token);
  // Returns an error for a word that is no op but the name of a variable here, or a bool as other languages write it.
  std::optional<std::string> why_no_op(const Token& word);
  Expr global(const Token& token);
  Expr infix(const Token& sign, std::string_view op, Expr a, Expr b);
  // Returns a stand-in for text that could not be read, so that reading goes on.
  Expr placeholder(const Token& token) { return make_tuple({}, span_from(token)); }

  // Attributes and values.
  bool at_attribute() const;
  // `params` are those of the function whose attribute is read: its values may mention them. Calls have none.
  NamedValue attribute(const Array<Var>& params = {});
  Value value(size_t depth, const Array<Var>& params = {});
  Value value_number(bool negative);
  Value value_call(size_t depth);
  Value tensor_argument();
  bool at_tuple() const;
  Value meta_value();
  std::string device_text(const Token& first, const Value& value);
  void set_function_attr(DictAttrs& attrs, const Token& name, const NamedValue& field);
  Value integer_arguments(const Token& name, size_t depth);
  Value value_dim();
  Value param_value(const Array<Var>& params);
  [[noreturn]] void fail_word(const Token& word);
  void take_dyn_attrs(const Token& first, Array<Expr>& args, CallAttrs& attrs);
  void take_old_attrs_of(const OpNode& op, const Token& first, Array<Expr>& args, CallAttrs& attrs);
  Attrs call_attrs(const Expr& callee, CallAttrs attrs, const Token& first);
  Attrs user_attrs_of(const OpNode& op, const std::vector<NamedValue>& fields, const Token& first);
  Attrs attrs_of(const TypeInfo& type, std::vector<NamedValue> fields, const Token& first);

  // Literals.
  NDArray scalar(const Token& number, bool negative);
  NDArray small_tensor(const Token& first);
  NDArray meta_constant(const Token& first);
  // Parses meta[KIND][3] of a node that is not a constant.
  ObjectRef meta_node(const Token& first);
  Expr meta_expression(const Token& first);
  const std::vector<NDArray>& data_of_constants() const {
    return has_metadata_ || options_.weights == nullptr ? constants_ : *options_.weights;
  }
  Token meta_kind();
  int64_t meta_index(std::string_view what);
  const std::vector<std::string>& devices() const {
    return !devices_.empty() || options_.virtual_devices == nullptr ? devices_ : *options_.virtual_devices;
  }
  void report_constants_without_data();
  void set_literal(const NDArray& data, int64_t index, const Token& number, bool negative);
  void set_real(const NDArray& data, int64_t index, const Token& number, bool negative);
  void set_integer(const NDArray& data, int64_t index, const Token& number, bool negative);
  int64_t small_integer(const Token& number, std::string_view what);
  void metadata(size_t at);
  void own_metadata(const Token& first);
  void metadata_item(const Token& first, const Value& item);
  void metadata_devices(const Token& first, const Value& list);
  void metadata_nodes(const Token& first, const std::string& kind, const Value& list);
  bool at_tvm_metadata() const;
  void tvm_metadata(const Token& first);
  void refuse_weights(const Token& first);

  // Modules.
  void version(bool required);
  void declare_items();
  void declare_type(const Token& name);
  void type_definition();
  void constructor(const GlobalTypeVar& type, Array<Constructor>& out);
  void skip_type_definition();
  void definition();
  void module_attributes();
  void take_init_module();
  void take_names_of(const IRModuleNode& module);
  void import_texts();
  void import_text(const Token& name);
  std::optional<ImportedText> find_import_of(const Token& name);
  IRModule read_import(const ImportedText& found, const Token& name);
  TypeData present_type(const TypeData& data) const;
  void item();

  std::string_view text_;
  size_t metadata_begin_ = std::string_view::npos;  // in the text
  std::string source_name_;
  std::string folder_;  // folder of an imported file
  const ParseOptions& options_;
  bool open_globals_ = false;  // unknown globals are made
  IRModule module_ = make_module();
  Imports own_imports_;
  Imports* imports_ = &own_imports_;  // or the importing text's
  std::unordered_map<std::string, GlobalVar> globals_;
  std::unordered_map<std::string, GlobalTypeVar> global_types_;
  std::unordered_map<std::string, std::vector<Constructor>> constructors_;  // constructors of all types, by name
  std::unordered_map<std::string, PrimVar> symbols_;                        // in the top-level function being read
  ScopedNames<TypeVar> type_vars_;
  ScopedNames<Expr> vars_;  // "x" for %x, "#0" for %0
  std::vector<NDArray> constants_;
  std::vector<std::string> devices_;                     // texts of the metadata
  std::map<std::string, std::vector<ObjectRef>> nodes_;  // nodes of the metadata, by kind
  bool has_metadata_ = false;
  bool is_metadata_damaged_ = false;
  std::vector<std::pair<Token, int64_t>> without_data_;  // the constants, by number, that there is no data for
};

}  // namespace headrace::relay
