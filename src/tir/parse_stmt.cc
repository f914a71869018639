// Statements and the names they bind.
#include "object/structural_equal.h"
#include "tir/parser.h"

namespace headrace::tir {

static constexpr int kMostStatements = 600;

static bool is_name(const Token& token) { return token.kind == TokenKind::word || token.kind == TokenKind::local; }

std::string Parser::new_name(std::string_view what) {
  const Token token = peek();
  if (!is_name(token)) fail_expected(what);
  take();
  const std::string name = local_name(token);
  if (token.kind == TokenKind::word && is_reserved_word(name))
    fail(token, fmt::format("'{}' is a word of the language; as a name it is written %{}", name, name));
  check_new(token, name);
  return name;
}

void Parser::check_new(const Token& token, const std::string& name) {
  if (!!names_.find(name)) report(token, fmt::format("'{}' is bound already, and this is inside its scope", name));
}

PrimVar Parser::bind_var(const std::string& name, DataType dtype) {
  PrimVar& var = vars_[name];
  if (!var || var->dtype != dtype) var = make_prim_var(name, dtype);
  names_.bind(name, {var, {}, {}});
  return var;
}

// Parses x: Buffer[(n, 4), float32, strides=(8, 1)]
Buffer Parser::declared_buffer(bool is_param) {
  const std::string name = new_name(is_param ? "a parameter" : "a buffer's name after allocate");
  expect(":", "after a buffer's name");
  expect("Buffer", "before a buffer's dimensions");
  expect("[", "after Buffer");
  const Array<PrimExpr> shape = dims();
  expect(",", "before a buffer's dtype");
  const DataType element = dtype();
  Array<PrimExpr> strides;
  if (accept(",")) {
    expect("strides", "or ']' in a buffer's type");
    expect("=", "after strides");
    const Token token = peek();
    strides = dims();
    if (strides.size() != shape.size())
      report(token, fmt::format("{} strides for {} dimensions", strides.size(), shape.size()));
  }
  expect("]", "after a buffer's dtype");
  Buffer& known = buffers_[name];
  const Buffer made = make_buffer(name, element, shape, strides);
  const bool is_again = known && !is_param && structural_equal(Value(known), Value(made), {.map_free_vars = true});
  if (!is_again) known = made;
  names_.bind(name, {{}, known, {}});
  return known;
}

Array<PrimExpr> Parser::dims() {
  expect("(", "before dimensions");
  const Array<PrimExpr> list = expressions(")");
  return list;
}

Array<PrimExpr> Parser::expressions(std::string_view close) {
  Array<PrimExpr> list;
  comma_separated(close, "or ',' after an expression", [&] { list.push_back(expr()); });
  return list;
}

std::vector<Stmt> Parser::braced_items(std::string_view where) {
  expect("{", where);
  const size_t mark = names_.mark();
  std::vector<Stmt> items = block_items();
  names_.leave(mark);
  expect("}", "after a block");
  return items;
}

static Stmt sequence(const std::vector<Stmt>& items) {
  auto seq = make_object<SeqNode>();
  for (const Stmt& item : items) seq->items.push_back(item);
  return seq;
}

// A block of one statement is that statement.
static Stmt as_one(const std::vector<Stmt>& items) { return items.size() == 1 ? items[0] : sequence(items); }

Stmt Parser::braces(std::string_view where) { return as_one(braced_items(where)); }

// Parses up to the bracket that closes the block. After an error reading goes on with the next statement.
std::vector<Stmt> Parser::block_items() {
  std::vector<Stmt> items;
  while (!at("}") && !at("prim_func") && peek().kind != TokenKind::end) {
    const size_t before = at_, mark = names_.mark();
    try {
      if (at("let")) {
        items.push_back(let_statement());
      } else if (at("allocate")) {
        items.push_back(allocate_statement());
      } else if (peek().kind == TokenKind::graph) {
        part_definition();
      } else {
        items.push_back(statement());
      }
      continue;
    } catch (const SyntaxError&) {  // reported
    } catch (const UserError& error) {
      report(peek(), error.message());
    }
    names_.leave(mark);
    if (at_ == before) take();
    skip_statement();
  }
  return items;
}

// Parses let v: int64 = e; and the rest of the block, which is its body
Stmt Parser::let_statement() {
  const Level level(*this, statement_depth_, kMostStatements, "statements");
  const Token first = take();
  const std::string name = new_name("a variable after let");
  expect(":", "after the variable of a let");
  const DataType declared = dtype();
  expect("=", "after the dtype of a let");
  const PrimExpr bound = expr();
  if (bound->dtype != declared) fail(first, fmt::format("'{}' is {}, its value {}", name, declared, bound->dtype));
  expect(";", "after a let");
  auto made = make_object<LetStmtNode>();
  made->span = span_from(first);
  made->var = bind_var(name, declared);
  made->value = bound;
  made->body = as_one(block_items());
  return made;
}

Stmt Parser::allocate_statement() {
  const Level level(*this, statement_depth_, kMostStatements, "statements");
  const Token first = take();
  auto made = make_object<AllocateNode>();
  made->buffer = declared_buffer(false);
  expect("in", "after a buffer's type");
  if (!at("registers") && !at("workspace")) fail_expected("registers or workspace");
  made->scope = take().is("registers") ? Scope::registers : Scope::workspace;
  expect(";", "after an allocation");
  made->span = span_from(first);
  made->body = as_one(block_items());
  return made;
}

// Parses %0 = e;
void Parser::part_definition() {
  const Token token = take();
  expect("=", "after the name of a part");
  const PrimExpr part = expr();
  expect(";", "after the definition of a part");
  const std::string name = local_name(token);
  if (!!names_.find(name)) report(token, fmt::format("%{} is defined twice", token.text));
  names_.bind(name, {{}, {}, part});
}

Stmt Parser::statement() {
  const Level level(*this, statement_depth_, kMostStatements, "statements");
  const Token first = peek();
  if (at("{")) return braces("before a block");
  Stmt made = at("for")      ? for_statement()
              : at("if")     ? if_statement()
              : at("assert") ? assert_statement()
                             : simple_statement();
  if (!made->span) made->span = span_from(first);
  return made;
}

Stmt Parser::simple_statement() {
  if (accept("evaluate")) {
    const PrimExpr evaluated = expr();
    expect(";", "after a statement");
    return make_evaluate(evaluated);
  }
  if (at("seq") && peek(1).is("{")) {
    take();
    return sequence(braced_items("after seq"));
  }
  return store_statement();
}

Stmt Parser::for_statement() {
  const Token first = take();
  const std::string name = new_name("a loop's variable");
  const DataType declared = accept(":") ? dtype() : kIndexType;
  expect("in", "after a loop's variable");
  const Token kind = take();
  const auto known = for_kind_of(kind.text);
  if (!known) fail(kind, "expected serial, parallel, vectorized or unrolled");
  expect("(", "before a loop's extent");
  PrimExpr begin = make_int(0, declared);
  const bool has_begin = at("begin") && peek(1).is("=");
  if (has_begin) {
    take();
    take();
    begin = expr();
    expect(",", "after a loop's begin");
    expect("extent", "after a loop's begin");
    expect("=", "after extent");
  }
  const PrimExpr extent = expr();
  expect(")", "after a loop's extent");
  if (begin->dtype != declared || extent->dtype != declared)
    fail(kind, fmt::format("'{}' is {}, its loop begins at {} and has an extent of {}", name, declared, begin->dtype,
                           extent->dtype));
  auto made = make_object<ForNode>();
  made->span = span_from(first);
  made->begin = begin;
  made->extent = extent;
  made->kind = *known;
  const size_t mark = names_.mark();
  made->var = bind_var(name, declared);
  made->body = braces("before a loop's body");
  names_.leave(mark);
  return made;
}

Stmt Parser::if_statement() {
  auto first = make_object<IfThenElseNode>();
  Ref<IfThenElseNode> last = first;
  for (int count = 0;; ++count) {
    if (count == kMostStatements) fail(peek(), fmt::format("at most {} conditions follow each other", kMostStatements));
    const Token token = expect("if", "after else");
    expect("(", "after if");
    last->condition = expr();
    if (last->condition->dtype != DataType::bool_())
      report(token, fmt::format("the condition of if is {}, not bool", last->condition->dtype));
    expect(")", "after a condition");
    last->span = span_from(token);
    last->then_case = braces("after a condition");
    if (!accept("else")) return first;
    if (!at("if")) break;
    auto next = make_object<IfThenElseNode>();
    last->else_case = next;
    last = next;
  }
  last->else_case = braces("after else");
  return first;
}

Stmt Parser::assert_statement() {
  const Token first = take();
  const PrimExpr condition = expr();
  if (condition->dtype != DataType::bool_())
    report(first, fmt::format("the condition of assert is {}, not bool", condition->dtype));
  expect(",", "after the condition of assert");
  if (peek().kind != TokenKind::string) fail_expected("a message in quotes");
  const std::string message = unquote(take().text);
  expect(";", "after a statement");
  return make_assert(condition, message);
}

// Parses y[i, 0] = e;
Stmt Parser::store_statement() {
  const Token name = peek();
  if (!is_name(name)) fail_expected("a statement");
  take();
  const Buffer buffer = names_.find(local_name(name)).buffer;
  if (!buffer) fail(name, fmt::format("there is no buffer '{}' here to store to", local_name(name)));
  expect("[", "after a buffer that is stored to");
  auto made = make_object<BufferStoreNode>();
  made->buffer = buffer;
  made->indices = expressions("]");
  const DataType wanted = access_dtype(name, buffer, made->indices);
  expect("=", "after the place that is stored to");
  made->value = expr();
  if (made->value->dtype != wanted)
    report(name, fmt::format("a store of {} to a place of {}", made->value->dtype, wanted));
  expect(";", "after a statement");
  return made;
}

// Skips behind the next `;`, or to the bracket that closes the block.
void Parser::skip_statement() {
  int depth = 0;
  for (; peek().kind != TokenKind::end && !at("prim_func"); take()) {
    if (at("(") || at("[") || at("{")) ++depth;
    if (at(")") || at("]") || at("}")) --depth;
    if (depth < 0) return;
    if (depth == 0 && (at(";") || at("}"))) {
      take();
      return;
    }
  }
}

}  // namespace headrace::tir
