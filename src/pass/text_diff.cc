#include "pass/text_diff.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <vector>

namespace headrace::pass {

namespace {

// A number of a value in a line: %7.
struct Number {
  size_t begin, end;  // the place of its digits in the line
  int value;
  int definition;  // the line that defines the value; -1 if none above does
};

struct Line {
  std::string_view text;
  std::string key;  // the text without the numbers of values
  std::vector<Number> numbers;
};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

Line parse_line(std::string_view text) {
  Line line{.text = text, .key = {}, .numbers = {}};
  for (size_t i = 0; i < text.size(); ++i) {
    line.key.push_back(text[i]);
    if (text[i] != '%') continue;
    const size_t begin = i + 1;
    while (i + 1 < text.size() && is_digit(text[i + 1])) ++i;
    int value = 0;
    const auto [end, error] = std::from_chars(text.data() + begin, text.data() + i + 1, value);
    if (error == std::errc()) line.numbers.push_back({begin, i + 1, value, -1});
  }
  return line;
}

// Returns whether the line is of the form "  %7 = ...".
bool is_definition(const Line& line) {
  if (line.numbers.empty()) return false;
  const Number& first = line.numbers.front();
  return line.text.find_first_not_of(' ') + 1 == first.begin && line.text.substr(first.end).starts_with(" = ");
}

// Functions number their values anew, so a number means the value that the last line above defines with it.
std::vector<Line> split_lines(std::string_view text) {
  std::vector<Line> lines;
  std::map<int, int> definitions;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    Line line = parse_line(text.substr(0, end));
    if (is_definition(line)) definitions[line.numbers.front().value] = static_cast<int>(lines.size());
    for (Number& number : line.numbers) {
      const auto found = definitions.find(number.value);
      if (found != definitions.end()) number.definition = found->second;
    }
    lines.push_back(std::move(line));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Lines of the two texts: both where their keys are equal, otherwise one is null.
struct Edit {
  const Line* before;
  const Line* after;
};

// The middle parts of two texts, after equal heads and before equal tails.
struct Range {
  const std::vector<Line>& lines;
  size_t begin, end;
  size_t size() const { return end - begin; }
  const Line& operator[](size_t i) const { return lines[begin + i]; }
};

void replace_all(const Range& a, const Range& b, std::vector<Edit>& edits) {
  for (size_t i = 0; i < a.size(); ++i) edits.push_back({&a[i], nullptr});
  for (size_t i = 0; i < b.size(); ++i) edits.push_back({nullptr, &b[i]});
}

// Myers: after d edits, furthest[k] is how far along `a` the diagonal k = x - y can be followed. `trace` keeps each d's
// so that the way back can be read off.
class Myers {
 public:
  static constexpr int kMaxEdits = 1000;

  Myers(const Range& a, const Range& b)
      : a_(a), b_(b), n_(static_cast<int>(a.size())), m_(static_cast<int>(b.size())) {}

  bool find() {
    std::vector<int> furthest(2 * kMaxEdits + 3, 0);
    for (int d = 0; d <= kMaxEdits; ++d) {
      for (int k = -d; k <= d; k += 2) {
        const int x = follow(start_of(furthest, k, d), k);
        at(furthest, k) = x;
        if (x < n_ || x - k < m_) continue;
        trace_.push_back(furthest);
        return true;
      }
      trace_.push_back(furthest);
    }
    return false;
  }

  void append_to(std::vector<Edit>& edits) const {
    std::vector<Edit> reversed;
    int x = n_, y = m_;
    for (int d = static_cast<int>(trace_.size()) - 1; d >= 0; --d) {
      const int k = x - y;
      const int start = d == 0 ? 0 : start_of(trace_[static_cast<size_t>(d) - 1], k, d);
      while (x > start) reversed.push_back({&a_[static_cast<size_t>(--x)], &b_[static_cast<size_t>(--y)]});
      if (d == 0) break;
      const bool down = is_down(trace_[static_cast<size_t>(d) - 1], k, d);
      if (down) {
        reversed.push_back({nullptr, &b_[static_cast<size_t>(--y)]});
      } else {
        reversed.push_back({&a_[static_cast<size_t>(--x)], nullptr});
      }
    }
    edits.insert(edits.end(), reversed.rbegin(), reversed.rend());
  }

 private:
  static int& at(std::vector<int>& furthest, int k) { return furthest[static_cast<size_t>(k + kMaxEdits + 1)]; }
  static int at(const std::vector<int>& furthest, int k) { return furthest[static_cast<size_t>(k + kMaxEdits + 1)]; }
  // Returns whether diagonal k is reached from k + 1, by a line of `b`, rather than from k - 1, by one of `a`.
  static bool is_down(const std::vector<int>& furthest, int k, int d) {
    return k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
  }
  static int start_of(const std::vector<int>& furthest, int k, int d) {
    if (d == 0) return 0;
    return is_down(furthest, k, d) ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
  }
  int follow(int x, int k) const {
    while (x < n_ && x - k < m_ && a_[static_cast<size_t>(x)].key == b_[static_cast<size_t>(x - k)].key) ++x;
    return x;
  }

  const Range &a_, &b_;
  int n_, m_;
  std::vector<std::vector<int>> trace_;
};

// Returns the edits of whole texts: equal lines at both ends, and a shortest list between them.
std::vector<Edit> edits_of(const std::vector<Line>& a, const std::vector<Line>& b) {
  const size_t shorter = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < shorter && a[head].key == b[head].key) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail].key == b[b.size() - 1 - tail].key) ++tail;
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({&a[i], &b[i]});
  const Range old_lines{a, head, a.size() - tail}, new_lines{b, head, b.size() - tail};
  Myers myers(old_lines, new_lines);
  if (myers.find()) {
    myers.append_to(edits);
  } else {
    replace_all(old_lines, new_lines, edits);
  }
  for (size_t i = tail; i > 0; --i) edits.push_back({&a[a.size() - i], &b[b.size() - i]});
  return edits;
}

// Numbers the values of `after` as those of `before`: the value of a line that is in both has the number that it had,
// and a new value has a number that `before` does not use.
class Renumbering {
 public:
  Renumbering(const std::vector<Line>& before, const std::vector<Line>& after, const std::vector<Edit>& edits)
      : numbers_(after.size(), -1) {
    int unused = 0;
    for (const Line& line : before) {
      for (const Number& number : line.numbers) unused = std::max(unused, number.value + 1);
    }
    for (const Edit& edit : edits) {
      if (edit.after == nullptr || !is_definition(*edit.after)) continue;
      int& number = numbers_[static_cast<size_t>(edit.after - after.data())];
      number = edit.before != nullptr ? edit.before->numbers.front().value : unused++;
    }
  }

  // Returns the text of a line of `after` with the new numbers.
  std::string apply(const Line& line) const {
    std::string text;
    size_t done = 0;
    for (const Number& number : line.numbers) {
      if (number.definition < 0) continue;
      text += line.text.substr(done, number.begin - done);
      text += std::to_string(numbers_[static_cast<size_t>(number.definition)]);
      done = number.end;
    }
    return text.append(line.text.substr(done));
  }

 private:
  std::vector<int> numbers_;  // by the line of `after` that defines a value
};

struct MarkedLine {
  char mark;  // ' ', '-' or '+'
  std::string text;
};

// Lines with equal keys differ where they read other values.
std::vector<MarkedLine> mark(const std::vector<Edit>& edits, const Renumbering& renumbering) {
  std::vector<MarkedLine> lines;
  for (const Edit& edit : edits) {
    const std::string after = edit.after == nullptr ? "" : renumbering.apply(*edit.after);
    const bool is_equal = edit.before != nullptr && edit.after != nullptr && edit.before->text == after;
    if (edit.before != nullptr) lines.push_back({is_equal ? ' ' : '-', std::string(edit.before->text)});
    if (edit.after != nullptr && !is_equal) lines.push_back({'+', after});
  }
  return lines;
}

std::string show(const std::vector<MarkedLine>& lines, size_t context) {
  std::vector<bool> is_shown(lines.size(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].mark == ' ') continue;
    const size_t end = std::min(lines.size(), i + context + 1);
    for (size_t k = i - std::min(i, context); k < end; ++k) is_shown[k] = true;
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_shown[i]) continue;
    if (i > 0 && !is_shown[i - 1] && !text.empty()) text += "...\n";
    text += lines[i].mark;
    text += lines[i].text;
    text += '\n';
  }
  return text;
}

}  // namespace

std::string diff_texts(std::string_view before, std::string_view after, size_t context) {
  const std::vector<Line> a = split_lines(before), b = split_lines(after);
  const std::vector<Edit> edits = edits_of(a, b);
  return show(mark(edits, Renumbering(a, b, edits)), context);
}

}  // namespace headrace::pass
