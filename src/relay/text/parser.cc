#include "relay/text/parser.h"

namespace headrace::relay {

Parser::Parser(std::string_view text, const std::string& source_name, const ParseOptions& options)
    : TokenReader(text, source_name), text_(text), source_name_(source_name), options_(options) {}

Parser::Parser(const ImportedText& found, const ParseOptions& options, Imports& imports)
    : Parser(found.text, found.source_name, options) {
  folder_ = found.folder;
  imports_ = &imports;
}

void Parser::check_depth(size_t depth) {
  if (depth > 500) fail(peek(), "attributes and patterns nest at most 500 levels");
}

int nesting_step(const Token& token) {
  if (token.kind != TokenKind::sign) return 0;
  if (token.text == "(" || token.text == "[" || token.text == "{" || token.text == "#[") return 1;
  return token.text == ")" || token.text == "]" || token.text == "}" ? -1 : 0;
}

// Skips to the statement after the next `;`, or to the bracket that closes the block.
void Parser::skip_statement() {
  int depth = 0;
  for (; peek().kind != TokenKind::end; take()) {
    if (at_item()) return;
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
  const auto begins_type = [&] {
    const size_t name = at("extern") && peek(1).is("type") ? 2 : at("type") ? 1 : 0;
    return name != 0 && peek(name).kind == TokenKind::word;
  };
  while (peek().kind != TokenKind::end && !at("def") && !at("#[") && !begins_type()) take();
}

}  // namespace headrace::relay
