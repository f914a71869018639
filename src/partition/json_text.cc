#include "partition/json_text.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/utf8.h"
#include "ir/text_errors.h"

namespace headrace::partition {

namespace {

constexpr int kMaxDepth = 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string utf8_of(uint32_t code) {
  std::string made;
  const auto add = [&](uint32_t byte) { made += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
  return made;
}

class JsonReader {
 public:
  explicit JsonReader(const NamedText& source) : source_(source), text_(source.text) {}

  JsonText read() {
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) at_ = kByteOrderMark.size();
    JsonText value = read_value(0);
    skip_space();
    if (at_ < text_.size()) fail("something follows the end of the JSON; remove it");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { source_.fail(at_, at_ + 1, message); }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool is_next(char c) const { return at_ < text_.size() && text_[at_] == c; }

  // Skips `c`, or fails saying what was expected.
  void expect(char c, const char* where) {
    skip_space();
    if (at_ == text_.size()) fail(fmt::format("the text ends where '{}' should be {}; it is cut off", c, where));
    if (text_[at_] != c) fail(fmt::format("'{}' should be here, {}", c, where));
    ++at_;
  }

  // The depth is bounded, so the recursion is.
  JsonText read_value(int depth) {
    skip_space();
    if (at_ == text_.size()) fail("the text ends where a value should be; it is cut off");
    if (depth > kMaxDepth) fail(fmt::format("values are nested deeper than {} levels", kMaxDepth));
    JsonText value;
    value.begin = at_;
    if (is_next('{')) {
      read_object(value, depth);
    } else if (is_next('[')) {
      read_array(value, depth);
    } else if (is_next('"')) {
      value.kind = JsonKind::kString;
      value.text = read_string();
    } else {
      read_word(value);
    }
    value.end = at_;
    return value;
  }

  void read_object(JsonText& value, int depth) {
    value.kind = JsonKind::kObject;
    ++at_;
    skip_space();
    if (is_next('}')) {
      ++at_;
      return;
    }
    std::set<std::string> known;
    do {
      skip_space();
      if (at_ == text_.size()) fail("the text ends where a key should be; it is cut off");
      if (!is_next('"')) fail("a key in quotes should be here");
      JsonKey key{.text = {}, .begin = at_};
      key.text = read_string();
      key.end = at_;
      if (!known.insert(key.text).second)
        source_.fail(key.begin, key.end, fmt::format("the key \"{}\" is there twice; remove one of the two", key.text));
      expect(':', "after a key");
      value.items.push_back(read_value(depth + 1));
      value.keys.push_back(std::move(key));
    } while (skip_comma());
    expect('}', "or ',' after a value of an object");
  }

  void read_array(JsonText& value, int depth) {
    value.kind = JsonKind::kArray;
    ++at_;
    skip_space();
    if (is_next(']')) {
      ++at_;
      return;
    }
    do value.items.push_back(read_value(depth + 1));
    while (skip_comma());
    expect(']', "or ',' after a value of a list");
  }

  bool skip_comma() {
    skip_space();
    if (!is_next(',')) return false;
    ++at_;
    return true;
  }

  std::string read_string() {
    const size_t begin = at_++;
    std::string made;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) {
        if (text_[at_] == '\n') source_.fail(begin, at_, "this string has no closing quote");
        fail("a control character in a string must be written as an escape, such as \\u0009");
      }
      if (text_[at_] == '\\') {
        made += read_escape();
      } else {
        made += text_[at_++];
      }
    }
    if (at_ == text_.size()) source_.fail(begin, at_, "this string has no closing quote; the text is cut off");
    ++at_;
    return made;
  }

  std::string read_escape() {
    static constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const size_t known = kNames.find(c); c != '\0' && known != std::string_view::npos) {
      at_ += 2;
      return {kValues[known]};
    }
    if (c != 'u') source_.fail(at_, at_ + 2, "JSON has no such escape");
    uint32_t code = read_code_unit();
    if (code >= 0xdc00 && code < 0xe000) source_.fail(at_ - 6, at_, "this is the second half of a character alone");
    if (code >= 0xd800 && code < 0xdc00) {
      const size_t first = at_ - 6;
      if (text_.substr(at_, 2) != "\\u") source_.fail(first, at_, "this is the first half of a character alone");
      const uint32_t second = read_code_unit();
      if (second < 0xdc00 || second >= 0xe000) source_.fail(first, at_, "these two escapes are not a character");
      code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
    }
    return utf8_of(code);
  }

  // Reads "\u12ab".
  uint32_t read_code_unit() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(std::min(at_ + 2, text_.size()), 4);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || read.ptr != digits.data() + 4)
      source_.fail(at_, at_ + 2, "four hexadecimal digits should follow \\u");
    at_ += 6;
    return code;
  }

  // A number, true, false or null.
  void read_word(JsonText& value) {
    const size_t end = std::min(text_.find_first_of(" \t\r\n,:]}[{\"", at_), text_.size());
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "null" || word == "true" || word == "false" || is_fraction(word)) {
      at_ = end;
      return;
    }
    const std::string_view digits = word.starts_with('-') ? word.substr(1) : word;
    const bool is_integer = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos &&
                            (digits == "0" || digits[0] != '0');
    if (!is_integer) source_.fail(at_, std::max(end, at_ + 1), "this is not a value of JSON");
    value.kind = JsonKind::kInteger;
    if (std::from_chars(word.data(), word.data() + word.size(), value.integer).ec != std::errc())
      source_.fail(at_, end, "this integer has more than 64 bits");
    at_ = end;
  }

  static bool is_fraction(std::string_view word) {
    double number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    return !word.empty() && read.ec == std::errc() && read.ptr == word.data() + word.size() &&
           word.find_first_of(".eE") != std::string_view::npos && word.find_first_of("0123456789") <= 1;
  }

  const NamedText& source_;
  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

void NamedText::fail(size_t begin, size_t end, const std::string& message) const {
  TextErrors errors(text, name);
  errors.report(std::min(begin, text.size()), std::max<size_t>(1, end - std::min(begin, end)), message);
  errors.throw_if_any();
  throw_user_error("{}", message);
}

JsonText parse_json_text(const NamedText& source) { return JsonReader(source).read(); }

}  // namespace headrace::partition
