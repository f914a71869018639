#include "ir/lex.h"

#include "ir/text_names.h"

namespace headrace {

namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Lexer {
 public:
  Lexer(std::string_view text, TextErrors& errors) : text_(text), errors_(errors) {}

  std::vector<Token> run() {
    while (skip_blank()) next();
    tokens_.push_back({TokenKind::end, {}, text_.size(), text_.size()});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void add(TokenKind kind, size_t begin, size_t skip = 0) {
    tokens_.push_back({kind, text_.substr(begin + skip, at_ - begin - skip), begin, at_});
  }

  // Skips blanks and comments; returns false at the end of the text.
  bool skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && peek(1) == '*') {
        skip_comment();
      } else {
        return true;
      }
    }
    return false;
  }

  // Skips a comment, which may contain others.
  void skip_comment() {
    const size_t begin = at_;
    size_t open = 1;
    for (at_ += 2; open > 0 && at_ < text_.size(); ++at_) {
      const bool opens = peek() == '/' && peek(1) == '*', closes = peek() == '*' && peek(1) == '/';
      open += opens ? 1 : 0;
      open -= closes ? 1 : 0;
      at_ += opens || closes ? 1 : 0;
    }
    if (open > 0) errors_.report(begin, 2, "this comment does not end; close it with */, and each one within it");
  }

  void next() {
    const char c = peek();
    if (is_letter(c)) return word();
    if (is_digit(c)) return number();
    if (c == '"') return string();
    if (c == '%' || c == '@') {
      if (prefixed(c)) return;
    }
    sign();
  }

  // Skips a word, with dots between its parts: nn.conv2d. The dot of a projection is followed by a digit.
  void skip_words() {
    while (is_letter(peek()) || is_digit(peek()) || (peek() == '.' && is_letter(peek(1)))) ++at_;
  }

  void word() {
    const size_t begin = at_;
    if (special_real()) return;
    skip_words();
    add(TokenKind::word, begin);
  }

  // Reads nan or inf with bits and suffix; returns false for a word that only begins so.
  bool special_real() {
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with("nan") && !rest.starts_with("inf")) return false;
    size_t length = 3;
    if (rest.starts_with("nan(0x")) {
      size_t digits = 6;
      while (digits < rest.size() && is_hex(rest[digits])) ++digits;
      if (digits < rest.size() && rest[digits] == ')') length = digits + 1;
    }
    size_t suffix = length;
    while (suffix < rest.size() && (is_letter(rest[suffix]) || is_digit(rest[suffix]))) ++suffix;
    const std::string_view tail = rest.substr(length, suffix - length);
    if (!tail.empty() && tail != "f" && tail != "f16" && tail != "f32" && tail != "f64" && tail != "bf16") return false;
    const size_t begin = at_;
    at_ += suffix;
    tokens_.push_back({TokenKind::real, rest.substr(0, length), begin, at_, tail});
    return true;
  }

  void number() {
    const size_t begin = at_;
    while (is_digit(peek())) ++at_;
    bool is_real = false;
    // After a dot it is the index of a projection: %0.1.2 has no fraction.
    const bool is_index = !tokens_.empty() && tokens_.back().is(".");
    if (!is_index && peek() == '.' && !is_letter(peek(1))) {
      is_real = true;
      do ++at_;
      while (is_digit(peek()));
    }
    const size_t sign_width = peek(1) == '-' || peek(1) == '+' ? 1 : 0;
    if (!is_index && (peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign_width))) {
      is_real = true;
      at_ += 1 + sign_width;
      while (is_digit(peek())) ++at_;
    }
    const size_t digits_end = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view suffix = text_.substr(digits_end, at_ - digits_end);
    is_real |= suffix.starts_with("f") || suffix.starts_with("bf");
    tokens_.push_back(
        {is_real ? TokenKind::real : TokenKind::integer, text_.substr(begin, digits_end - begin), begin, at_, suffix});
  }

  // Moves past a string; reports one that does not end on its line.
  void skip_string() {
    const size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    if (peek() == '"') {
      ++at_;
    } else {
      errors_.report(begin, 1, "this string does not end on its line; close it with \"");
    }
  }

  void string() {
    const size_t begin = at_;
    skip_string();
    add(TokenKind::string, begin);
  }

  bool prefixed(char prefix) {
    const size_t begin = at_;
    const TokenKind kind = prefix == '%' ? TokenKind::local : TokenKind::global;
    if (is_letter(peek(1))) {
      ++at_;
      skip_words();
      add(kind, begin, 1);
    } else if (peek(1) == '"') {
      ++at_;
      skip_string();
      add(kind, begin, 1);
    } else if (prefix == '%' && is_digit(peek(1))) {
      ++at_;
      while (is_digit(peek())) ++at_;
      add(TokenKind::graph, begin, 1);
    } else {
      return false;
    }
    return true;
  }

  void sign() {
    static constexpr std::string_view kSigns[] = {
        "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "#[", "::", "(", ")", "{", "}", "[",
        "]",  ",",  ";",  ":",  ".",  "=",  "<",  ">",  "+",  "-",  "*", "/", "%", "?", "&"};
    for (const std::string_view candidate : kSigns) {
      if (!text_.substr(at_).starts_with(candidate)) continue;
      const size_t begin = at_;
      at_ += candidate.size();
      add(TokenKind::sign, begin);
      return;
    }
    const size_t begin = at_;
    // The bytes of one character of UTF-8 are one error.
    do ++at_;
    while ((static_cast<unsigned char>(peek()) & 0xc0) == 0x80);
    const bool is_mark = text_.substr(begin).starts_with("\xef\xbb\xbf");
    errors_.report(begin, at_ - begin,
                   is_mark ? "a byte order mark; save the text as UTF-8 without it" : "unexpected character");
  }

  std::string_view text_;
  TextErrors& errors_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  return (c | 0x20) - 'a' + 10;
}

}  // namespace

std::vector<Token> lex(std::string_view text, TextErrors& errors) { return Lexer(text, errors).run(); }

std::string unquote(std::string_view quoted) {
  std::string out;
  if (!quoted.empty()) quoted.remove_prefix(1);
  if (quoted.ends_with('"')) quoted.remove_suffix(1);
  out.reserve(quoted.size());
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] != '\\' || i + 1 == quoted.size()) {
      out += quoted[i];
      continue;
    }
    const char c = quoted[++i];
    if (c == 'x' && i + 2 < quoted.size() && is_hex(quoted[i + 1]) && is_hex(quoted[i + 2])) {
      out += static_cast<char>(hex_value(quoted[i + 1]) * 16 + hex_value(quoted[i + 2]));
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

}  // namespace headrace
