// Expressions, blocks, functions, patterns.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "relay/device_attrs.h"
#include "relay/text/parser.h"
#include "relay/text/print_names.h"
#include "relay/visit.h"

namespace headrace::relay {

Expr Parser::variable(const Token& token) {
  take();
  if (Expr bound = vars_.find(local_name(token))) return bound;
  report(token, fmt::format("%{} is not defined here", token.text));
  return placeholder(token);
}

// Statements and the result, up to what closes the block. An expression before `;` is computed for its effects: a let
// of a variable that nothing uses.
Nested<Expr> Parser::block() {
  const size_t mark = vars_.mark();
  std::vector<Let> lets;
  Expr result;
  bool more = true;
  while (!result) {
    if (!more) {
      const Token first = peek();
      Expr value = co_await expr(0);
      more = accept(";");
      if (more) lets.push_back(make_let(make_var("_"), value, {}, span_from(first)));
      if (!more) result = value;
      continue;
    }
    bool failed = false;
    try {
      more = co_await statement(lets);
    } catch (const SyntaxError&) {
      failed = true;
    }
    if (!failed) continue;
    skip_statement();
    more = peek().kind != TokenKind::end && !at("}") && !at(")") && !at("]") && !at_item();
    if (!more) {
      vars_.leave(mark);
      co_return placeholder(peek());
    }
  }
  for (size_t i = lets.size(); i > 0; --i) {
    lets[i - 1]->body = result;
    result = lets[i - 1];
  }
  vars_.leave(mark);
  co_return result;
}

// Parses one item of a block; returns true for a let or a definition, false before the result.
Nested<bool> Parser::statement(std::vector<Let>& lets) {
  if (at("let")) {
    bool read = co_await let_statement(lets);
    co_return read;
  }
  if (peek().kind != TokenKind::graph || !peek(1).is("=")) co_return false;
  const Token name = take();
  take();
  Expr value;
  try {
    value = co_await expr(0);
  } catch (const SyntaxError&) {
    vars_.bind(local_name(name), placeholder(name));  // so that its uses are not errors, too
    throw;
  }
  vars_.bind(local_name(name), value);
  expect(";", "after a definition");
  co_return true;
}

Nested<bool> Parser::let_statement(std::vector<Let>& lets) {
  const Token first = take();
  if (peek().kind != TokenKind::local) fail_expected("a variable after let");
  const std::string name = local_name(peek());
  const Expr outer = vars_.find(name);
  std::string device;
  Var var = co_await declared_var(&device);
  expect("=", "after a let variable");
  if (outer && !at("fn")) vars_.bind(name, outer);
  Expr value = co_await expr(0);
  if (!device.empty()) value = on_device(value, device, first);
  vars_.bind(name, var);
  lets.push_back(make_let(var, value, {}, span_from(first)));
  expect(";", "after a let");
  co_return true;
}

// Returns the value of a let variable that is on a device: an on_device, unless the value is one of that device or a
// function, whose own attributes say where its parameters and its result are.
Expr Parser::on_device(const Expr& value, const std::string& device, const Token& first) {
  const Op op = find_op("on_device");
  if (!op) fail(first, "the device of a let variable needs the op on_device, which is not registered");
  const auto* call = value.as<CallNode>();
  const bool is_there = call != nullptr && call->op.get() == op.get() && call->attrs &&
                        get_field(*call->attrs, "constrain_result").as<bool>() &&
                        get_field(*call->attrs, "virtual_device").as<std::string>() == device;
  if (is_there || value.is<FunctionNode>()) return value;
  const CallAttrs attrs{.fields = {{"virtual_device", Value(device)}, {"constrain_result", Value(true)}}};
  return relay::make_call(Expr(op), {value}, call_attrs(op, attrs, first), {}, span_from(first));
}

// Parses `%x: T` and binds the variable from here on.
Nested<Var> Parser::declared_var(std::string* device) {
  const Token token = peek();
  if (token.kind != TokenKind::local) fail_expected("a variable such as %x");
  take();
  if (device != nullptr && at("{") && peek(1).is("virtual_device")) *device = declared_device();
  Type annotation;
  if (accept(":")) annotation = co_await type();
  Var var = make_var(local_name(token), annotation, span_from(token));
  vars_.bind(var->name_hint, var);
  co_return var;
}

namespace {

struct InfixOperator {
  std::string_view sign, op;
  int precedence;
};
constexpr InfixOperator kInfix[] = {{"==", "equal", 1},  {"!=", "not_equal", 1},  {"<", "less", 2},
                                    {">", "greater", 2}, {"<=", "less_equal", 2}, {">=", "greater_equal", 2},
                                    {"+", "add", 3},     {"-", "subtract", 3},    {"*", "multiply", 4},
                                    {"/", "divide", 4}};

const InfixOperator* infix_operator(const Token& token) {
  if (token.kind != TokenKind::sign) return nullptr;
  for (const InfixOperator& candidate : kInfix) {
    if (candidate.sign == token.text) return &candidate;
  }
  return nullptr;
}

// Returns whether an expression is a constructor without fields, whose calls have no parentheses.
bool is_constant_constructor(const Expr& expr) {
  const auto* constructor = expr.as<ConstructorNode>();
  return constructor != nullptr && constructor->inputs.empty();
}

}  // namespace

Expr Parser::infix(const Token& sign, std::string_view op, Expr a, Expr b) {
  const Op found = find_op(op);
  if (!found) fail(sign, fmt::format("'{}' needs the op {}, which is not registered", sign.text, op));
  Array<Expr> args{std::move(a), std::move(b)};
  return relay::make_call(Expr(found), std::move(args), call_attrs(found, {}, sign), {}, span_from(sign));
}

Nested<Expr> Parser::expr(int min_precedence) {
  const bool is_block = at("let") || (peek().kind == TokenKind::graph && peek(1).is("="));
  if (is_block) {
    Expr inner = co_await block();
    co_return inner;
  }
  Expr left = co_await postfix();
  while (const InfixOperator* op = infix_operator(peek())) {
    if (op->precedence < min_precedence) break;
    const Token sign = take();
    Expr right = co_await expr(op->precedence + 1);
    left = infix(sign, op->op, left, right);
  }
  co_return left;
}

Nested<Expr> Parser::postfix() {
  const Token first = peek();
  Expr result = co_await primary();
  while (true) {
    if (at("(") || at("[")) {
      Array<Type> types;
      if (at("[")) types = co_await type_args();
      if (!at("(") && is_constant_constructor(result)) {
        result = relay::make_call(result, {}, {}, types, span_from(first));
        continue;
      }
      Expr called = co_await call(result, types, first);
      result = called;
    } else if (at(".") && peek(1).kind == TokenKind::integer) {
      take();
      const int64_t index = small_integer(take(), "a tuple index");
      result = make_tuple_get_item(result, index, span_from(first));
    } else {
      break;
    }
  }
  if (is_constant_constructor(result) && !first.is("&"))
    result = relay::make_call(result, {}, {}, {}, span_from(first));
  co_return result;
}

// Parses the type arguments of a call: @id[int32](1).
Nested<Array<Type>> Parser::type_args() {
  take();
  Array<Type> types;
  while (!at("]")) {
    Type item = co_await type();
    types.push_back(item);
    if (!accept(",")) break;
  }
  expect("]", "after type arguments");
  co_return types;
}

Nested<Expr> Parser::call(Expr callee, Array<Type> types, Token first) {
  expect("(", "after type arguments");
  Array<Expr> args;
  CallAttrs attrs;
  while (!at(")")) {
    if (at_attribute()) {
      const Token name = peek();
      attrs.add(name, attribute());
    } else {
      if (!attrs.fields.empty()) fail(peek(), "arguments come before attributes");
      Expr arg = co_await expr(0);
      args.push_back(arg);
    }
    if (!accept(",")) break;
  }
  expect(")", "after arguments");
  if (const auto* op = callee.as<OpNode>()) {
    take_dyn_attrs(first, args, attrs);
    take_old_attrs_of(*op, first, args, attrs);
  }
  Attrs made = call_attrs(callee, std::move(attrs), first);
  co_return Expr(relay::make_call(callee, args, made, types, span_from(first)));
}

Nested<Expr> Parser::primary() {
  const Token first = peek();
  switch (first.kind) {
    case TokenKind::local:
    case TokenKind::graph:
      co_return variable(first);
    case TokenKind::global: {
      take();
      co_return global(first);
    }
    case TokenKind::integer:
    case TokenKind::real:
      take();
      co_return Expr(make_constant(scalar(first, false), span_from(first)));
    default:
      break;
  }
  if (first.is("(")) {
    Expr inner = co_await parens(first);
    co_return inner;
  }
  if (first.is("{")) {
    Expr inner = co_await braces("before a block");
    co_return inner;
  }
  if (first.is("-")) {
    Expr inner = co_await negated(first);
    co_return inner;
  }
  if (accept("&")) {
    co_return Expr(need_constructor(take()));
  }
  if (first.kind != TokenKind::word) fail_expected("an expression");
  Expr named = co_await keyword(first);
  co_return named;
}

// Parses what begins with `-`: a number's signs are its own, as in --1, which is 1.
Nested<Expr> Parser::negated(Token first) {
  size_t signs = 1;
  while (peek(signs).is("-")) ++signs;
  const Token number = peek(signs);
  if (number.kind == TokenKind::integer || number.kind == TokenKind::real) {
    for (size_t i = 0; i <= signs; ++i) take();
    co_return Expr(make_constant(scalar(number, signs % 2 == 1), span_from(first)));
  }
  // All signs at once: each of them counting the rest would take quadratic time.
  std::vector<Token> minus;
  for (size_t i = 0; i < signs; ++i) minus.push_back(take());
  Expr value = co_await postfix();
  const Op op = find_op("negative");
  if (!op) fail(first, "'-' needs the op negative, which is not registered");
  for (; !minus.empty(); minus.pop_back()) value = relay::make_call(Expr(op), {value}, {}, {}, span_from(minus.back()));
  co_return value;
}

Nested<Expr> Parser::keyword(Token first) {
  if (first.is("fn")) {
    take();
    Function made = co_await function(first);
    co_return Expr(made);
  }
  if (first.is("if")) {
    Expr branch = co_await if_expr(first);
    co_return branch;
  }
  if (first.is("match")) {
    Expr match = co_await match_expr(first);
    co_return match;
  }
  if (first.is("ref") || first.is("ref_read") || first.is("ref_write")) {
    Expr cell = co_await ref_expr(first);
    co_return cell;
  }
  if (first.is("True") || first.is("False")) {
    take();
    co_return Expr(
        make_constant(NDArray::from_vector<uint8_t>({}, DataType::bool_(), {first.is("True")}), span_from(first)));
  }
  if (first.is("meta")) co_return meta_expression(first);
  if (first.is("const")) co_return Expr(make_constant(small_tensor(first), span_from(first)));
  co_return named_callee(first);
}

// Returns the constructor that `Nil` or `List::Nil` names; null where no type has a `Nil`. The caller has taken
// `first`.
Constructor Parser::find_constructor(const Token& first) {
  const bool says_type = accept("::");
  const Token name = says_type ? take() : first;
  const auto found = constructors_.find(std::string(name.text));
  if (!says_type) {
    if (found == constructors_.end()) return {};
    if (found->second.size() == 1) return found->second.front();
    std::string types, ways;
    for (const Constructor& constructor : found->second) {
      types += (types.empty() ? "" : " and of ") + constructor->belong_to->name_hint;
      ways += fmt::format("{}{}::{}", ways.empty() ? "" : " or ", constructor->belong_to->name_hint, name.text);
    }
    fail(name, fmt::format("'{}' is a constructor of {}; write {}", name.text, types, ways));
  }
  for (size_t i = 0; found != constructors_.end() && i < found->second.size(); ++i) {
    if (found->second[i]->belong_to->name_hint == first.text) return found->second[i];
  }
  fail(name, fmt::format("the type '{}' has no constructor '{}'", first.text, name.text));
}

Constructor Parser::need_constructor(const Token& first) {
  const Constructor found = find_constructor(first);
  if (!found) fail(first, fmt::format("there is no constructor '{}'", first.text));
  return found;
}

// Parses an op or a constructor. A name of both means the op; the constructor is then written with its type.
Expr Parser::named_callee(const Token& token) {
  const std::string name(current_op_name(token.text));
  take();
  const Op op = at("::") ? Op() : find_op(name);
  if (op) return op;
  if (const Constructor constructor = find_constructor(token)) return constructor;
  // The arguments of an unknown op are read all the same, attributes without a check.
  return known_op(name, token);
}

Expr Parser::known_op(const std::string& name, const Token& token) {
  try {
    return get_op(name);
  } catch (const UserError& error) {
    report(token, why_no_op(token).value_or(error.message()));
  }
  return Expr();
}

std::optional<std::string> Parser::why_no_op(const Token& word) {
  if (vars_.find(std::string(word.text)))
    return fmt::format("there is no op '{0}'; the variable is written %{0}", word.text);
  if (word.is("true")) return "there is no op 'true'; write True";
  if (word.is("false")) return "there is no op 'false'; write False";
  return std::nullopt;
}

Expr Parser::global(const Token& token) {
  const std::string name = local_name(token);
  GlobalVar& var = globals_[name];
  if (!var) {
    if (!open_globals_) report(token, fmt::format("the module has no function '@{}'", name));
    var = make_global_var(name);
  }
  return var;
}

Nested<Expr> Parser::braces(std::string_view where) {
  expect("{", where);
  Expr inner = co_await block();
  expect("}", "after a block");
  co_return inner;
}

Nested<Expr> Parser::parens(Token first) {
  take();
  Array<Expr> items;
  bool is_tuple = at(")");
  while (!at(")")) {
    Expr item = co_await expr(0);
    items.push_back(item);
    if (!accept(",")) break;
    is_tuple = true;
  }
  expect(")", "after a tuple or an expression in parentheses");
  if (!is_tuple) co_return items[0];
  co_return Expr(make_tuple(items, span_from(first)));
}

Nested<Expr> Parser::if_expr(Token first) {
  take();
  expect("(", "before a condition");
  Expr cond = co_await expr(0);
  expect(")", "after a condition");
  Expr true_branch = co_await braces("before the true branch");
  expect("else", "after the true branch");
  Expr false_branch;
  if (at("if")) {
    false_branch = co_await expr(0);
  } else {
    false_branch = co_await braces("before the false branch");
  }
  co_return Expr(make_if(cond, true_branch, false_branch, span_from(first)));
}

Nested<Expr> Parser::ref_expr(Token first) {
  take();
  expect("(", fmt::format("after {}", first.text));
  Expr value = co_await expr(0);
  if (first.is("ref_write")) {
    expect(",", "between the cell and the value of ref_write");
    Expr stored = co_await expr(0);
    expect(")", "after the value of ref_write");
    co_return make_ref_write(value, stored, span_from(first));
  }
  expect(")", fmt::format("after the argument of {}", first.text));
  co_return first.is("ref") ? make_ref_create(value, span_from(first)) : make_ref_read(value, span_from(first));
}

void Parser::check_names(const Token& begin, const Pattern& pattern) {
  std::set<std::string> names;
  for (const Var& var : pattern_vars(pattern)) {
    if (!names.insert(var->name_hint).second) report(begin, fmt::format("the pattern binds %{} twice", var->name_hint));
  }
}

Nested<Expr> Parser::match_expr(Token first) {
  take();
  const bool complete = !accept("?");
  expect("(", "before what is matched");
  Expr data = co_await expr(0);
  expect(")", "after what is matched");
  expect("{", "before the clauses of a match");
  Array<Clause> clauses;
  while (!at("}")) {
    const size_t mark = vars_.mark();
    const Token begin = peek();
    Pattern lhs = pattern(0);
    check_names(begin, lhs);
    expect("=>", "after a pattern");
    Expr rhs = co_await expr(0);
    clauses.push_back(make_clause(lhs, rhs));
    vars_.leave(mark);
    if (!accept(",")) break;
  }
  expect("}", "after the clauses of a match");
  co_return make_match(data, clauses, complete, span_from(first));
}

Array<Pattern> Parser::patterns(size_t depth) {
  Array<Pattern> items;
  expect("(", "before patterns");
  comma_separated(")", "after patterns", [&] { items.push_back(pattern(depth + 1)); });
  return items;
}

Pattern Parser::pattern(size_t depth) {
  check_depth(depth);
  const Token first = peek();
  Pattern made;
  if (first.is("(")) {
    made = make_pattern_tuple(patterns(depth));
  } else if (first.kind == TokenKind::local) {
    made = make_pattern_var(declared_var().run());
  } else if (accept("_")) {
    made = make_pattern_wildcard();
  } else {
    if (first.kind != TokenKind::word) fail_expected("a pattern");
    const Constructor constructor = need_constructor(take());
    made = make_pattern_constructor(constructor, at("(") ? patterns(depth) : Array<Pattern>());
  }
  made->span = span_from(first);
  return made;
}

// Parses `[T](params, attrs) -> T { body }`, the rest of a function behind `fn` or `def @name`.
Nested<Function> Parser::function(Token first) {
  const size_t mark = vars_.mark();
  const size_t type_mark = type_vars_.mark();
  const Array<TypeVar> type_vars = type_params();
  Array<Var> vars;
  DictAttrs attrs;
  bool read = co_await params(vars, attrs);
  HEADRACE_CHECK(read, "parameters were not read");
  Type result;
  if (accept("->")) result = co_await type();
  Expr body = co_await braces("before a function's body");
  vars_.leave(mark);
  type_vars_.leave(type_mark);
  co_return make_function(vars, body, result, type_vars, attrs, span_from(first));
}

Nested<bool> Parser::params(Array<Var>& out, DictAttrs& attrs) {
  std::unordered_set<std::string> names;
  std::vector<std::string> devices;
  const Token open = expect("(", "before parameters");
  while (!at(")")) {
    const Token token = peek();
    if (at_attribute()) {
      set_function_attr(attrs, token, attribute(out));
    } else {
      if (!attrs.empty()) fail(token, "parameters come before attributes");
      Var var = co_await declared_var(&devices.emplace_back());
      if (!names.insert(var->name_hint).second)
        report(token, fmt::format("the parameter %{} is declared twice", token.text));
      out.push_back(var);
    }
    if (!accept(",")) break;
  }
  expect(")", "after parameters");
  if (std::any_of(devices.begin(), devices.end(), [](const std::string& device) { return !device.empty(); }))
    set_function_attr(attrs, open, {kParamVirtualDevices, Value(Array<std::string>(devices))});
  co_return true;
}

}  // namespace headrace::relay
