// Tokens of the text forms of relay and tir.
#pragma once

#include "ir/text_errors.h"

namespace headrace {

enum class TokenKind : uint8_t {
  end,
  word,     // fn, nn.conv2d, Tensor
  local,    // %x, %"a b"; text is what follows the %
  graph,    // %0: a shared expression of Relay's text, which no let binds
  global,   // @main
  integer,  // 12, 12i64
  real,     // 1.5, 1e-05f, 1f, nan, inff, nan(0x7fc00001)f
  string,   // "..."; text has the quotes
  sign,     // ( ) { } [ ] , ; : :: . = == != < <= > >= + - * / % && || -> => ? & #[
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // part of the source; local, graph and global names without the first character
  size_t offset = 0;      // place of the first character
  size_t end = 0;
  std::string_view suffix = {};  // ending of a number: "i64", "f", ""

  bool is(std::string_view sign_or_word) const {
    return (kind == TokenKind::sign || kind == TokenKind::word) && text == sign_or_word;
  }
};

// Splits `text` into tokens; the last one has kind end. Characters that start no token are reported and skipped.
// Comments are // to the end of the line and /* */, which nest. The tokens borrow from `text`.
std::vector<Token> lex(std::string_view text, TextErrors& errors);

// Returns the characters that a string token denotes.
std::string unquote(std::string_view quoted);

}  // namespace headrace
