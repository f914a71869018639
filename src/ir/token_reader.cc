#include "ir/token_reader.h"

#include "object/array.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace {

TokenReader::TokenReader(std::string_view text, const std::string& source_name)
    : errors_(text, source_name), tokens_(lex(text, errors_)) {}

Token TokenReader::take() {
  const Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::accept(std::string_view text) {
  if (!at(text)) return false;
  take();
  return true;
}

static std::string found(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  const std::string_view prefix = token.kind == TokenKind::global                                    ? "@"
                                  : token.kind == TokenKind::local || token.kind == TokenKind::graph ? "%"
                                                                                                     : "";
  return fmt::format("'{}{}{}'", prefix, token.text.substr(0, 60), token.suffix);
}

Token TokenReader::expect(std::string_view text, std::string_view where) {
  if (!at(text)) fail(peek(), fmt::format("expected '{}' {}, found {}", text, where, found(peek())));
  return take();
}

void TokenReader::fail(const Token& token, std::string message) {
  report(token, std::move(message));
  throw SyntaxError();
}

void TokenReader::fail_expected(std::string_view what) {
  fail(peek(), fmt::format("expected {}, found {}", what, found(peek())));
}

Value TokenReader::list_of(const std::function<Value()>& read) {
  Array<Value> list;
  comma_separated("]", "after a list", [&] { list.push_back(read()); });
  return Value(list);
}

Value TokenReader::tuple_of(const std::function<Value()>& read) {
  expect("(", "before a tuple");
  Array<Value> items;
  comma_separated(")", "after a tuple", [&] { items.push_back(read()); });
  return Value(items);
}

Value TokenReader::map_of(const std::function<Value()>& read) {
  Map<Value, Value> map;
  comma_separated("}", "after a map", [&] {
    const Value key = peek().kind == TokenKind::string ? Value(unquote(take().text)) : read();
    expect(":", "after a key");
    map.set(key, read());
  });
  return Value(map);
}

Span TokenReader::span_from(const Token& first) const {
  const size_t last = at_ == 0 ? first.end : std::max(tokens_[at_ - 1].end, first.end);
  return errors_.span(first.offset, last);
}

std::string TokenReader::local_name(const Token& token) {
  if (token.kind == TokenKind::graph) return "#" + std::string(token.text);
  return token.text.starts_with('"') ? unquote(token.text) : std::string(token.text);
}

}  // namespace headrace
