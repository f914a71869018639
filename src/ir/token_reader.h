// Base of the parsers of relay and tir: walks over tokens and reports errors with the token that was expected.
#pragma once

#include <functional>

#include "ir/lex.h"
#include "object/value.h"

namespace headrace {

// Thrown after a report, to get to the next place where reading can go on.
struct SyntaxError {};

// A map of names in nested scopes; leaving a scope restores what it hid.
template <typename T>
class ScopedNames {
 public:
  size_t mark() const { return hidden_.size(); }
  void bind(const std::string& name, T value) {
    T& slot = names_[name];
    hidden_.emplace_back(name, std::exchange(slot, std::move(value)));
  }
  void leave(size_t mark) {
    for (; hidden_.size() > mark; hidden_.pop_back()) names_[hidden_.back().first] = std::move(hidden_.back().second);
  }
  // Returns the meaning of `name`; null when there is none.
  T find(const std::string& name) const {
    auto it = names_.find(name);
    return it == names_.end() ? T() : it->second;
  }

 private:
  std::unordered_map<std::string, T> names_;
  std::vector<std::pair<std::string, T>> hidden_;
};

class TokenReader {
 protected:
  TokenReader(std::string_view text, const std::string& source_name);

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool at(std::string_view text) const { return peek().is(text); }
  Token take();
  bool accept(std::string_view text);
  // Takes a token; an error "expected '(' ..." when another comes, which `where` completes.
  Token expect(std::string_view text, std::string_view where);
  [[noreturn]] void fail(const Token& token, std::string message);
  [[noreturn]] void fail_expected(std::string_view what);
  void report(const Token& token, std::string message) {
    errors_.report(token.offset, token.end - token.offset, std::move(message));
  }
  Span span_from(const Token& first) const;
  // Reads items with commas between them up to the sign `close`, and that sign. A comma after the last item is allowed.
  // `where` is as in expect().
  template <typename Item>
  void comma_separated(std::string_view close, std::string_view where, Item&& item) {
    while (!at(close)) {
      item();
      if (!accept(",")) break;
    }
    expect(close, where);
  }
  // Read values of attributes behind their [ and {; `read` reads the content. A key in quotes is a string.
  Value list_of(const std::function<Value()>& read);
  // Reads (1, 2) from its first sign on; the value is a list, too.
  Value tuple_of(const std::function<Value()>& read);
  Value map_of(const std::function<Value()>& read);
  // Returns the name behind % or @, unquoted; "#0" for %0.
  static std::string local_name(const Token& token);

  TextErrors errors_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace headrace
