#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "ir/text_literal.h"
#include "ir/text_names.h"
#include "ir/token_reader.h"
#include "relay/patterns/pattern_text.h"
#include "relay/text/parse.h"

namespace headrace::relay {

namespace {

constexpr int kMaxReadNesting = 200;

constexpr std::array<std::string_view, 15> kWords = {"_",  "const", "dominates", "expr", "fn",  "if",    "item", "let",
                                                     "op", "or",    "rec",       "True", "var", "tuple", "False"};

void check_text_size(std::string_view text) {
  if (text.size() > kMaxPatternText)
    throw_user_error("the text of a pattern has {} bytes; at most {} are read", text.size(), kMaxPatternText);
}

class PatternParser : private TokenReader {
 public:
  PatternParser(std::string_view text, const std::string& source_name) : TokenReader(text, source_name) {}

  DFPattern pattern() {
    return checked<DFPattern>([&] {
      find_recursions();
      DFPattern result = block();
      if (peek().kind != TokenKind::end) fail_expected("';', 'or' or the end of the pattern");
      return result;
    });
  }

  std::vector<NamedPattern> table() {
    return checked<std::vector<NamedPattern>>([&] {
      std::vector<NamedPattern> entries;
      expect("{", "before a table of patterns");
      comma_separated("}", "after a table of patterns", [&] { entries.push_back(entry()); });
      if (peek().kind != TokenKind::end) fail_expected("the end of the table");
      return entries;
    });
  }

 private:
  template <typename T>
  T checked(const std::function<T()>& read) {
    T result{};
    try {
      result = read();
    } catch (const SyntaxError&) {
    }
    // A pattern that contains itself would stay in memory.
    for (const WildcardPattern& wildcard : wildcards_) {
      if (errors_.any()) patterns::redirect(*wildcard, {});
    }
    errors_.throw_if_any();
    return result;
  }

  NamedPattern entry() {
    const Token name = take();
    if (name.kind != TokenKind::word && name.kind != TokenKind::string) fail(name, "expected the name of a pattern");
    expect(":", "after the name of a pattern");
    NamedPattern result{name.kind == TokenKind::string ? unquote(name.text) : std::string(name.text), {}};
    if (result.name.empty()) fail(name, "the name of a pattern is empty");
    names_.clear();
    recursions_.clear();
    if (accept("{")) {
      find_recursions();
      result.pattern = block();
      expect("}", "after a pattern");
    } else {
      result.pattern = choice();
    }
    return result;
  }

  // Makes the wildcards of all `rec` definitions up to the end of the pattern, which may be used before them.
  void find_recursions() {
    recursions_.clear();
    int depth = 0;
    for (size_t i = 0; peek(i).kind != TokenKind::end && depth >= 0; ++i) {
      depth += peek(i).is("{") ? 1 : peek(i).is("}") ? -1 : 0;
      const bool is_name = peek(i + 1).kind == TokenKind::local || peek(i + 1).kind == TokenKind::graph;
      if (!peek(i).is("rec") || !is_name) continue;
      wildcards_.push_back(patterns::wildcard().cast<WildcardPatternNode>());
      if (!recursions_.emplace(local_name(peek(i + 1)), wildcards_.back()).second)
        report(peek(i + 1), fmt::format("'%{}' is defined twice", peek(i + 1).text));
    }
  }

  DFPattern block() {
    while (at("rec") || is_definition()) definition();
    return choice();
  }

  bool at_name() const { return peek().kind == TokenKind::local || peek().kind == TokenKind::graph; }
  bool is_definition() const { return at_name() && peek(1).is("="); }

  void definition() {
    const bool is_rec = accept("rec");
    if (!at_name()) fail_expected("a name such as %0 after 'rec'");
    const Token token = take();
    expect("=", "after the name of a definition");
    const DFPattern made = choice();
    expect(";", "after a definition");
    const std::string name = local_name(token);
    if (!is_rec) {
      if (recursions_.contains(name) || !names_.emplace(name, made).second)
        fail(token, fmt::format("'%{}' is defined twice", token.text));
    } else if (made == recursions_.at(name)) {
      fail(token, fmt::format("'%{}' stands for nothing but itself", token.text));
    } else {
      patterns::redirect(*recursions_.at(name), made);
    }
  }

  DFPattern choice() {
    if (++depth_ > kMaxReadNesting)
      fail(peek(), fmt::format("the pattern nests deeper than {} levels", kMaxReadNesting));
    DFPattern left = sum();
    while (accept("or")) left = patterns::alt(left, sum());
    --depth_;
    return left;
  }

  DFPattern infix(std::string_view op, const DFPattern& left, const DFPattern& right) {
    return patterns::call(patterns::is_op(op), Array<DFPattern>{left, right});
  }

  DFPattern sum() {
    DFPattern left = product();
    while (at("+") || at("-")) {
      const Token sign = take();
      left = infix(sign.is("+") ? "add" : "subtract", left, product());
    }
    return left;
  }

  DFPattern product() {
    DFPattern left = postfix();
    while (at("*") || at("/")) {
      const Token sign = take();
      left = infix(sign.is("*") ? "multiply" : "divide", left, postfix());
    }
    return left;
  }

  DFPattern postfix() {
    DFPattern made = primary();
    while (true) {
      if (accept("(")) {
        made = patterns::call(made, list());
      } else if (accept("[")) {
        made = constraint(made);
        expect("]", "after a constraint");
      } else {
        return made;
      }
    }
  }

  // Reads the items behind a parenthesis; nothing for any number of them.
  std::optional<Array<DFPattern>> list() {
    if (at("*") && peek(1).is(")")) return take(), take(), std::nullopt;
    Array<DFPattern> items;
    comma_separated(")", "after a list of patterns", [&] { items.push_back(choice()); });
    return items;
  }

  // Reads the three patterns behind a word.
  std::array<DFPattern, 3> three(std::string_view word) {
    const Token first = expect("(", fmt::format("after '{}'", word));
    const std::optional<Array<DFPattern>> items = list();
    if (!items || items->size() != 3) fail(first, fmt::format("'{}' takes three patterns", word));
    return {(*items)[0], (*items)[1], (*items)[2]};
  }

  std::string string_behind(std::string_view word) {
    expect("(", fmt::format("after '{}'", word));
    if (peek().kind != TokenKind::string) fail_expected(fmt::format("a text in quotes for '{}'", word));
    std::string text = unquote(take().text);
    expect(")", fmt::format("after the text of '{}'", word));
    return text;
  }

  DFPattern primary() {
    const Token first = peek();
    if (accept("(")) {
      DFPattern inner = choice();
      expect(")", "after a pattern");
      return inner;
    }
    if (at_name()) return named(take());
    if (first.kind != TokenKind::word) fail_expected("a pattern");
    take();
    if (first.is("_")) return patterns::wildcard();
    if (first.is("const")) return patterns::is_constant();
    if (first.is("var")) {
      const bool has_name = at("(") && peek(1).kind == TokenKind::string;
      return patterns::is_var(has_name ? string_behind("var") : "");
    }
    if (first.is("op")) return op(first, string_behind("op"));
    if (first.is("expr")) return expression(first, string_behind("expr"));
    return is_pattern_word(first.text) ? structure(first) : op(first, std::string(first.text));
  }

  DFPattern structure(const Token& first) {
    if (first.is("tuple")) {
      expect("(", "after 'tuple'");
      return patterns::is_tuple(list());
    }
    if (first.is("item")) return item();
    if (first.is("fn")) {
      expect("(", "after 'fn'");
      const std::optional<Array<DFPattern>> params = list();
      expect("{", "before the body of a function");
      DFPattern body = choice();
      expect("}", "after the body of a function");
      return patterns::function(params, std::move(body));
    }
    if (first.is("if")) {
      const auto [cond, yes, no] = three("if");
      return patterns::is_if(cond, yes, no);
    }
    if (first.is("let")) {
      const auto [var, value, body] = three("let");
      return patterns::is_let(var, value, body);
    }
    if (!first.is("dominates")) fail(first, fmt::format("'{}' does not begin a pattern", first.text));
    const auto [parent, path, child] = three("dominates");
    return patterns::dominates(parent, path, child);
  }

  DFPattern item() {
    expect("(", "after 'item'");
    const DFPattern tuple = choice();
    int64_t index = -1;
    if (accept(",")) {
      const Token token = peek();
      index = integer(false);
      if (index > std::numeric_limits<int32_t>::max()) fail(token, "the index of an item is too large");
    }
    expect(")", "after the index of an item");
    return patterns::is_tuple_get_item(tuple, index);
  }

  DFPattern named(const Token& token) {
    const std::string name = local_name(token);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    if (const auto found = recursions_.find(name); found != recursions_.end()) return found->second;
    fail(token, fmt::format("'%{}' is not defined before", token.text));
  }

  DFPattern op(const Token& token, const std::string& name) {
    try {
      return patterns::is_op(name);
    } catch (const UserError& error) {
      fail(token, error.message());
    }
  }

  DFPattern expression(const Token& token, const std::string& text) {
    try {
      return patterns::is_expr(parse_expr(text));
    } catch (const UserError& error) {
      fail(token, fmt::format("the expression is wrong: {}", error.message()));
    }
  }

  DFPattern constraint(const DFPattern& pattern) {
    const Token word = take();
    if (word.is("type")) {
      const Token text = take();
      if (text.kind != TokenKind::string) fail(text, "expected a type in quotes");
      return patterns::has_type(pattern, type(text));
    }
    if (word.is("dtype")) return patterns::has_dtype(pattern, dtype());
    if (word.is("shape")) return patterns::has_shape(pattern, shape());
    if (!word.is("attrs")) fail(word, "expected 'type', 'dtype', 'shape' or 'attrs'");
    Map<std::string, Value> attrs;
    while (!at("]")) {
      const Token key = take();
      if (key.kind != TokenKind::word && key.kind != TokenKind::string) fail(key, "expected the name of an attribute");
      expect("=", "after the name of an attribute");
      attrs.set(key.kind == TokenKind::string ? unquote(key.text) : std::string(key.text), value(0));
      if (!accept(",")) break;
    }
    return patterns::has_attr(pattern, attrs);
  }

  // Reads a type as relay's text does: as that of a variable.
  Type type(const Token& token) {
    try {
      const Expr var = parse_expr(fmt::format("free_var %x: {};\n%x", unquote(token.text)));
      if (const auto* node = var.as<VarNode>(); node != nullptr && node->type_annotation) return node->type_annotation;
    } catch (const UserError& error) {
      fail(token, fmt::format("the type is wrong: {}", error.message()));
    }
    fail(token, "expected a type");
  }

  DataType dtype() {
    const Token token = take();
    try {
      return DataType::parse(token.kind == TokenKind::string ? unquote(token.text) : std::string(token.text));
    } catch (const UserError& error) {
      fail(token, error.message());
    }
  }

  Array<PrimExpr> shape() {
    Array<PrimExpr> dims;
    expect("(", "after 'shape'");
    comma_separated(")", "after a shape",
                    [&] { dims.push_back(accept("?") ? make_any() : PrimExpr(make_int(integer(false)))); });
    return dims;
  }

  int64_t integer(bool negative) {
    const Token token = take();
    const auto bits = token.kind == TokenKind::integer && token.suffix.empty()
                          ? integer_bits(token.text, negative, DataType::int_(64))
                          : std::nullopt;
    if (!bits) fail(token, "expected an integer of 64 bits");
    return static_cast<int64_t>(*bits);
  }

  Value value(int depth) {
    if (depth > kMaxReadNesting) fail(peek(), "the value nests too deeply");
    const bool negative = accept("-");
    if (peek().kind == TokenKind::integer) return Value(integer(negative));
    const Token token = take();
    if (token.kind == TokenKind::real) {
      const auto bits = real_bits(token.text, DataType::float_(64));
      if (!bits) fail(token, "the number is too large");
      return Value(negative ? -std::bit_cast<double>(*bits) : std::bit_cast<double>(*bits));
    }
    if (negative) fail(token, "expected a number after '-'");
    if (token.kind == TokenKind::string) return Value(unquote(token.text));
    if (token.is("True") || token.is("False")) return Value(token.is("True"));
    if (!token.is("[")) fail(token, "expected a number, a text in quotes, True, False or a list");
    return list_of([&] { return value(depth + 1); });
  }

  std::unordered_map<std::string, DFPattern> names_;
  std::unordered_map<std::string, WildcardPattern> recursions_;
  std::vector<WildcardPattern> wildcards_;  // wildcards of all recursions of the text
  int depth_ = 0;
};

}  // namespace

bool is_pattern_word(std::string_view word) { return std::find(kWords.begin(), kWords.end(), word) != kWords.end(); }

DFPattern parse_pattern(std::string_view text, const std::string& source_name) {
  check_text_size(text);
  return PatternParser(text, source_name).pattern();
}

std::vector<NamedPattern> parse_pattern_table(std::string_view text, const std::string& source_name) {
  check_text_size(text);
  return PatternParser(text, source_name).table();
}

}  // namespace headrace::relay
