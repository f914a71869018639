#include "relay/text/print.h"

#include <unordered_set>

#include "ir/type_text.h"
#include "relay/scopes.h"
#include "relay/text/print_value.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

constexpr std::string_view kVersionLine = "#[version = \"0.0.5\"]\n";
constexpr size_t kMaxIndent = 60;  // deeper nesting stays here: the text grows linearly with the program

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// Makes a comment of an answer of PrintOptions::annotate; empty for an empty answer.
std::string comment_of(std::string_view answer) {
  const auto trim = [&] {
    const size_t first = answer.find_first_not_of(" \t\r\n");
    answer =
        first == std::string_view::npos ? "" : answer.substr(first, answer.find_last_not_of(" \t\r\n") + 1 - first);
  };
  trim();
  if (answer.size() >= 4 && answer.starts_with("/*") && answer.ends_with("*/")) {
    answer = answer.substr(2, answer.size() - 4);
    trim();
  }
  std::string words(answer);
  replace_all(words, "*/", "* /");
  replace_all(words, "/*", "/ *");
  return words.empty() ? words : " /* " + words + " */";
}

// Writes one top-level expression. The pieces still to be written are on an explicit stack, so that nesting needs no
// call stack.
class ExprPrinter {
 public:
  // `shared` are the constructors' names that several types of the module have.
  ExprPrinter(std::string& out, MetaTable& constants, const PrintOptions& options = {},
              const std::unordered_set<std::string>& shared = {})
      : out_(out), values_{constants, names_}, options_(options), shared_(shared) {
    names_.print_attrs = [this](std::string& text, const TypeRelationNode& relation) {
      const Attrs attrs = relation.attrs.cast<AttrsNode>();
      if (relation.attrs && !attrs) throw_user_error("the attributes of a constraint are a {}", relation.attrs->key());
      text += attrs_text(find_op(relation.name).get(), attrs);
    };
  }
  ExprPrinter(const ExprPrinter&) = delete;
  ExprPrinter& operator=(const ExprPrinter&) = delete;

  void print_one_type(const Type& type) { print_type(out_, type, names_); }

  // Writes `@name(params) -> T { ... }` of a definition.
  void print_definition(const GlobalVar& var, const Function& function) {
    scopes_ = find_scopes(function);
    out_ += "def " + global_text(*var);
    push_function(*function, scopes_.at(function).inner);
    run();
    out_ += "\n";
  }

  void print_root(const Expr& root) {
    scopes_ = find_scopes(root);
    for (const Var& var : free_vars(root)) {
      out_ += "free_var " + var_text(*var);
      print_annotation(*var);
      out_ += ";\n";
    }
    const size_t start = out_.size();
    push_body(0, root);
    run();
    out_.erase(start, 1);  // a body starts with a line break
    out_ += "\n";
  }

  void print_type_def(const TypeData& data) {
    out_ += (data->constructors.empty() ? "extern type " : "type ") + checked_type_name(data->header->name_hint);
    print_type_params(out_, data->type_vars, names_);
    if (data->constructors.empty()) {
      out_ += "\n";
      return;
    }
    out_ += " {\n";
    for (const Constructor& constructor : data->constructors) {
      out_ += "  " + checked_type_name(constructor->name_hint);
      for (size_t i = 0; i < constructor->inputs.size(); ++i) {
        out_ += i == 0 ? "(" : ", ";
        print_type(out_, constructor->inputs[i], names_);
      }
      out_ += constructor->inputs.empty() ? ",\n" : "),\n";
    }
    out_ += "}\n";
  }

 private:
  // One thing to write; `body` and `form` expand to more.
  struct Task {
    enum Kind { text, line, indent, dedent, form, body } kind;
    std::string words;
    Expr expr;
    int scope = -1;
  };

  void text(std::string words) { tasks_.push_back({Task::text, std::move(words), {}}); }
  void line() { tasks_.push_back({Task::line, {}, {}}); }
  void form(const Expr& expr) {
    tasks_.push_back({Task::form, {}, expr});
    if (expr.is<LetNode>()) return;
    if (options_.show_types && expr->has_checked_type()) text(type_comment(expr->checked_type()));
    if (options_.annotate) text(comment_of(options_.annotate(expr)));
  }
  void push_body(int scope, const Expr& result) { tasks_.push_back({Task::body, {}, result, scope}); }
  void block(int scope, const Expr& result) {
    text("{");
    tasks_.push_back({Task::indent, {}, {}});
    push_body(scope, result);
    tasks_.push_back({Task::dedent, {}, {}});
    line();
    text("}");
  }

  void run() {
    std::reverse(tasks_.begin(), tasks_.end());
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.back());
      tasks_.pop_back();
      const size_t mark = tasks_.size();
      step(task);
      std::reverse(tasks_.begin() + static_cast<std::ptrdiff_t>(mark), tasks_.end());
    }
  }

  void step(const Task& task) {
    switch (task.kind) {
      case Task::text:
        out_ += task.words;
        return;
      case Task::line:
        out_ += '\n';
        out_.append(std::min(depth_ * 2, kMaxIndent), ' ');
        return;
      case Task::indent:
        ++depth_;
        return;
      case Task::dedent:
        --depth_;
        return;
      case Task::form:
        return write_form(task.expr);
      case Task::body:
        return write_body(task.scope, task.expr);
    }
  }

  void define_numbered(int scope) {
    for (const Expr& node : scopes_.scopes[static_cast<size_t>(scope)].numbered) {
      line();
      text(fmt::format("%{} = ", scopes_.at(node).number));
      form(node);
      text(";");
    }
    line();
  }

  // Writes a let in one line; its body follows in the same block.
  void write_let(const LetNode& let, int body_scope) {
    std::string head = "let " + var_text(*let.var);
    append_annotation(head, *let.var);
    text(head + " = ");
    write_tail(let.value);
    text(";");
    push_body(body_scope, let.body);
  }

  // Writes the definitions of a scope, then its result.
  void write_body(int scope, const Expr& result) {
    define_numbered(scope);
    if (is_atomic(result) || !scopes_.is_flat_let(result)) return write_tail(result);
    write_let(*result.as<LetNode>(), scopes_.at(result).inner);
  }

  void write_tail(const Expr& expr) {
    if (is_atomic(expr) || scopes_.at(expr).number >= 0) {
      text(operand(expr));
    } else {
      form(expr);
    }
  }

  std::string var_text(const VarNode& var) { return relay::var_text(names_, var); }
  static std::string global_text(const GlobalVarNode& var) {
    return "@" + (is_identifier(var.name_hint, true) ? var.name_hint : in_quotes(var.name_hint));
  }
  void append_annotation(std::string& out, const VarNode& var) {
    if (!var.type_annotation) return;
    out += ": ";
    print_type(out, var.type_annotation, names_);
  }
  void print_annotation(const VarNode& var) { append_annotation(out_, var); }

  std::string type_comment(const Type& type) {
    std::string out;
    print_type(out, type, names_);
    // A symbol's name, which is quoted then, may hold what would end the comment or begin another.
    replace_all(out, "*/", "*\\x2f");
    replace_all(out, "/*", "/\\x2a");
    return " /* ty=" + out + " */";
  }

  // Returns a name, a constant, or the number of a node that is defined above.
  std::string operand(const Expr& expr) {
    if (const auto* var = expr.as<VarNode>()) return var_text(*var);
    if (const auto* global = expr.as<GlobalVarNode>()) return global_text(*global);
    if (const auto* op = expr.as<OpNode>()) return op->name;
    if (const auto* constant = expr.as<ConstantNode>()) {
      std::string out;
      values_.print_constant(out, constant->data);
      return options_.show_types && constant->has_checked_type() ? out + type_comment(constant->checked_type()) : out;
    }
    if (const auto* constructor = expr.as<ConstructorNode>())
      return (constructor->inputs.empty() ? "&" : "") + constructor_text(*constructor);
    const int number = scopes_.at(expr).number;
    HEADRACE_CHECK(number >= 0, "{} is used before it is defined", expr->key());
    return fmt::format("%{}", number);
  }

  // Returns a constructor's text, with its type where the name alone is ambiguous.
  std::string constructor_text(const ConstructorNode& constructor) const {
    const std::string name = checked_type_name(constructor.name_hint);
    const bool is_plain = !constructor.belong_to || (!shared_.contains(name) && !find_op(name));
    return is_plain ? name : checked_type_name(constructor.belong_to->name_hint) + "::" + name;
  }

  std::string operands(const Array<Expr>& list) {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "" : ", ") + operand(list[i]);
    return out;
  }

  void write_form(const Expr& expr) {
    const int inner = scopes_.at(expr).inner;
    if (const auto* call = expr.as<CallNode>()) {
      text(call_text(*call));
    } else if (const auto* function = expr.as<FunctionNode>()) {
      text("fn ");
      push_function(*function, inner);
    } else if (expr.is<LetNode>()) {
      write_let_block(expr);
    } else if (const auto* branch = expr.as<IfNode>()) {
      text("if (" + operand(branch->cond) + ") ");
      block(inner, branch->true_branch);
      text(" else ");
      block(inner + 1, branch->false_branch);
    } else if (const auto* tuple = expr.as<TupleNode>()) {
      text("(" + operands(tuple->items) + (tuple->items.size() == 1 ? ",)" : ")"));
    } else if (const auto* item = expr.as<TupleGetItemNode>()) {
      text(fmt::format("{}.{}", projected(item->tuple), item->index));
    } else if (const auto* create = expr.as<RefCreateNode>()) {
      text("ref(" + operand(create->value) + ")");
    } else if (const auto* read = expr.as<RefReadNode>()) {
      text("ref_read(" + operand(read->ref) + ")");
    } else if (const auto* write = expr.as<RefWriteNode>()) {
      text("ref_write(" + operand(write->ref) + ", " + operand(write->value) + ")");
    } else if (const auto* match = expr.as<MatchNode>()) {
      write_match(*match, inner);
    } else {
      throw_user_error("a {} has no text form", expr->key());
    }
  }

  // Returns a tuple as text before `.0`, in parentheses where a number literal or an op's name would swallow the dot.
  std::string projected(const Expr& tuple) {
    const bool plain = tuple.is<VarNode>() || !is_atomic(tuple);
    return plain ? operand(tuple) : "(" + operand(tuple) + ")";
  }

  // Writes a let that is not a tail in parentheses, in which it is the tail, as Relay's parser wants it.
  void write_let_block(const Expr& expr) {
    const int inner = scopes_.at(expr).inner;
    text("(");
    tasks_.push_back({Task::indent, {}, {}});
    define_numbered(inner);
    write_let(*expr.as<LetNode>(), inner + 1);
    tasks_.push_back({Task::dedent, {}, {}});
    line();
    text(")");
  }

  void push_function(const FunctionNode& function, int body_scope) {
    std::string head;
    print_type_params(head, function.type_params, names_);
    head += "(";
    std::string_view comma;
    for (const Var& param : function.params) {
      head += comma;
      head += var_text(*param);
      append_annotation(head, *param);
      comma = ", ";
    }
    const ValuePrinter values{values_.constants, names_, &function.params};
    for (const auto& [key, value] : function.attrs) {
      head += comma;
      head += key_text(key) + "=";
      values.print(head, value);
      comma = ", ";
    }
    head += ")";
    if (function.ret_type) {
      head += " -> ";
      print_type(head, function.ret_type, names_);
    }
    text(head + " ");
    block(body_scope, function.body);
  }

  std::string callee_text(const CallNode& call) {
    if (const auto* constructor = call.op.as<ConstructorNode>()) return constructor_text(*constructor);
    if (call.op.is<ConstantNode>()) return "(" + operand(call.op) + ")";
    return operand(call.op);
  }

  std::string type_args_text(const Array<Type>& types) {
    std::string out;
    for (const Type& type : types) {
      out += out.empty() ? "[" : ", ";
      print_type(out, type, names_);
    }
    return out.empty() ? out : out + "]";
  }

  // Returns the attributes of a call as text, each after ", "; `op` is null for a call of something else.
  std::string attrs_text(const OpNode* op, const Attrs& attrs) {
    const std::string expected = op == nullptr ? std::string() : op->attrs_type_key;
    const AttrSchema* schema = op == nullptr ? nullptr : op->find(kAttrSchema);
    std::string out;
    if (schema != nullptr && user_attrs_fault(*op, attrs).empty()) {
      values_.print_user_attrs(out, *schema, *attrs.as<UserAttrsNode>());
    } else if (attrs) {
      if (attrs->key() != expected || schema != nullptr)
        out += fmt::format(", attrs_type_key={}", in_quotes(attrs->key()));
      values_.print_attrs(out, *attrs);
    } else if (!expected.empty()) {
      out = ", attrs=None";
    }
    return out;
  }

  std::string call_text(const CallNode& call) {
    const std::string attrs = attrs_text(call.as_op(), call.attrs);
    std::string args = operands(call.args) + attrs;
    if (call.args.empty() && !attrs.empty()) args = attrs.substr(2);
    const auto* constructor = call.op.as<ConstructorNode>();
    const std::string callee = callee_text(call) + type_args_text(call.type_args);
    if (constructor != nullptr && constructor->inputs.empty() && args.empty()) return callee;
    return callee + "(" + args + ")";
  }

  std::string pattern_list(const Array<Pattern>& patterns) {
    std::string out;
    for (size_t i = 0; i < patterns.size(); ++i) out += (i == 0 ? "" : ", ") + pattern_text(patterns[i]);
    return out;
  }

  // Patterns nest as deep as the user wrote them; the parser reads 500 levels.
  std::string pattern_text(const Pattern& pattern) {
    if (const auto* var = pattern.as<PatternVarNode>()) {
      std::string out = var_text(*var->var);
      append_annotation(out, *var->var);
      return out;
    }
    if (const auto* constructor = pattern.as<PatternConstructorNode>()) {
      const std::string name = constructor_text(*constructor->constructor);
      return constructor->patterns.empty() ? name : name + "(" + pattern_list(constructor->patterns) + ")";
    }
    if (const auto* tuple = pattern.as<PatternTupleNode>())
      return "(" + pattern_list(tuple->patterns) + (tuple->patterns.size() == 1 ? ",)" : ")");
    return "_";
  }

  void write_match(const MatchNode& match, int inner) {
    text((match.complete ? "match (" : "match? (") + operand(match.data) + ") {");
    tasks_.push_back({Task::indent, {}, {}});
    for (size_t i = 0; i < match.clauses.size(); ++i) {
      line();
      text(pattern_text(match.clauses[i]->lhs) + " => ");
      block(inner + static_cast<int>(i), match.clauses[i]->rhs);
      text(",");
    }
    tasks_.push_back({Task::dedent, {}, {}});
    line();
    text("}");
  }

  std::string& out_;
  PrintNames names_;
  ValuePrinter values_;
  Scopes scopes_;
  std::vector<Task> tasks_;
  size_t depth_ = 0;
  PrintOptions options_;
  std::unordered_set<std::string> shared_;
};

MetaTable table_of(const PrintOptions& options) {
  MetaTable table;
  if (options.weights == nullptr) return table;
  for (const NDArray& data : *options.weights) table.index_of(data);
  return table;
}

void finish(std::string& out, const MetaTable& constants, const PrintOptions& options) {
  if (options.weights != nullptr) *options.weights = constants.items();
  const bool has_data = !constants.nodes().empty() || (options.weights == nullptr && !constants.items().empty());
  if (!has_data || !options.show_meta_data) return;
  print_metadata(out, options.weights == nullptr ? constants.items() : std::vector<NDArray>(), constants.nodes());
}

std::unordered_set<std::string> shared_constructors(const IRModule& module) {
  std::unordered_set<std::string> names, shared;
  for (const auto& [var, data] : module->type_definitions()) {
    for (const Constructor& constructor : data->constructors) {
      if (!names.insert(constructor->name_hint).second) shared.insert(constructor->name_hint);
    }
  }
  return shared;
}

void print_module_attrs(std::string& out, const IRModule& module, MetaTable& constants) {
  if (module->attrs.empty()) return;
  PrintNames names;
  const ValuePrinter values{constants, names};
  out += "attributes {\n";
  for (const auto& [key, value] : module->attrs) {
    out += "  " + in_quotes(key) + " = ";
    values.print(out, value);
    out += ";\n";
  }
  out += "}\n\n";
}

}  // namespace

std::string print_module(const IRModule& module, const PrintOptions& options) {
  std::string out(kVersionLine);
  MetaTable constants = table_of(options);
  print_module_attrs(out, module, constants);
  for (const auto& [var, data] : module->type_definitions()) {
    ExprPrinter(out, constants).print_type_def(data);
    out += "\n";
  }
  const std::unordered_set<std::string> shared = shared_constructors(module);
  std::string_view blank;
  for (const auto& [var, function] : module->functions()) {
    if (!function.is<FunctionNode>())
      throw_user_error("function @{} is a {}: only functions of relay have this text form", var->name_hint,
                       function->key());
    out += blank;
    ExprPrinter(out, constants, options, shared).print_definition(var, function.cast<FunctionNode>());
    blank = "\n";
  }
  finish(out, constants, options);
  return out;
}

std::string print_expr(const Expr& expr, const PrintOptions& options) {
  HEADRACE_CHECK(expr.defined(), "a null expression");
  std::string out;
  MetaTable constants = table_of(options);
  ExprPrinter(out, constants, options).print_root(expr);
  finish(out, constants, options);
  return std::string(kVersionLine) + out;
}

std::string type_text(const Type& type) {
  HEADRACE_CHECK(type.defined(), "a null type");
  std::string out;
  MetaTable constants;
  ExprPrinter printer(out, constants);
  if (const TypeData data = type.cast<TypeDataNode>()) {
    printer.print_type_def(data);
  } else {
    printer.print_one_type(type);
  }
  finish(out, constants, {});
  return out;
}

}  // namespace headrace::relay
