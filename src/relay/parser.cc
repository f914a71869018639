#include "relay/parser.h"

namespace headrace::relay {

Parser::Parser(std::string_view text, const std::string& source_name, const ParseOptions& options)
    : errors_(text, source_name), tokens_(lex(text, errors_)), options_(options) {}

Token Parser::take() {
  const Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::accept(std::string_view text) {
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

Token Parser::expect(std::string_view text, std::string_view where) {
  if (!at(text)) fail(peek(), fmt::format("expected '{}' {}, found {}", text, where, found(peek())));
  return take();
}

void Parser::fail(const Token& token, std::string message) {
  report(token, std::move(message));
  throw SyntaxError();
}

void Parser::fail_expected(std::string_view what) {
  fail(peek(), fmt::format("expected {}, found {}", what, found(peek())));
}

void Parser::check_depth(size_t depth) {
  if (depth > 500) fail(peek(), "attributes and patterns nest at most 500 levels");
}

Span Parser::span_from(const Token& first) const {
  const size_t last = at_ == 0 ? first.end : std::max(tokens_[at_ - 1].end, first.end);
  return errors_.span(first.offset, last);
}

static int nesting_step(const Token& token) {
  if (token.kind != TokenKind::sign) return 0;
  if (token.text == "(" || token.text == "[" || token.text == "{" || token.text == "#[") return 1;
  return token.text == ")" || token.text == "]" || token.text == "}" ? -1 : 0;
}

// To the statement after the next `;`, or to the bracket that closes the block.
void Parser::skip_statement() {
  int depth = 0;
  for (; peek().kind != TokenKind::end; take()) {
    if (at("def") || at("type")) return;
    const int step = nesting_step(peek());
    if (depth + step < 0) return;
    depth += step;
    if (depth == 0 && at(";")) {
      take();
      return;
    }
  }
}

void Parser::skip_to_item() {
  while (peek().kind != TokenKind::end && !at("def") && !at("#[") &&
         !(at("type") && peek(1).kind == TokenKind::word && !peek(1).is("="))) {
    take();
  }
}

}  // namespace headrace::relay
