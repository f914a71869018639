#include "pass/text_diff.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace headrace::pass {

namespace {

struct Line {
  std::string_view text;
  std::string key;  // the text without the numbers of values
};

std::string key_of(std::string_view text) {
  std::string key;
  for (size_t i = 0; i < text.size(); ++i) {
    key.push_back(text[i]);
    if (text[i] != '%') continue;
    while (i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0) ++i;
  }
  return key;
}

std::vector<Line> split_lines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    lines.push_back({line, key_of(line)});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

struct Edit {
  char mark;  // ' ', '-' or '+'
  std::string_view text;
};

// The middle parts of two texts, after equal heads and before equal tails.
struct Range {
  const std::vector<Line>& lines;
  size_t begin, end;
  size_t size() const { return end - begin; }
  const Line& operator[](size_t i) const { return lines[begin + i]; }
};

void replace_all(const Range& a, const Range& b, std::vector<Edit>& edits) {
  for (size_t i = 0; i < a.size(); ++i) edits.push_back({'-', a[i].text});
  for (size_t i = 0; i < b.size(); ++i) edits.push_back({'+', b[i].text});
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
      while (x > start) reversed.push_back({' ', a_[static_cast<size_t>(--x)].text}), --y;
      if (d == 0) break;
      const bool down = is_down(trace_[static_cast<size_t>(d) - 1], k, d);
      if (down) {
        reversed.push_back({'+', b_[static_cast<size_t>(--y)].text});
      } else {
        reversed.push_back({'-', a_[static_cast<size_t>(--x)].text});
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

std::string show(const std::vector<Edit>& edits, size_t context) {
  std::vector<bool> is_shown(edits.size(), false);
  for (size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].mark == ' ') continue;
    const size_t end = std::min(edits.size(), i + context + 1);
    for (size_t k = i - std::min(i, context); k < end; ++k) is_shown[k] = true;
  }
  std::string text;
  for (size_t i = 0; i < edits.size(); ++i) {
    if (!is_shown[i]) continue;
    if (i > 0 && !is_shown[i - 1] && !text.empty()) text += "...\n";
    text += edits[i].mark;
    text += edits[i].text;
    text += '\n';
  }
  return text;
}

}  // namespace

std::string diff_texts(std::string_view before, std::string_view after, size_t context) {
  const std::vector<Line> a = split_lines(before), b = split_lines(after);
  const size_t shorter = std::min(a.size(), b.size());
  size_t head = 0, tail = 0;
  while (head < shorter && a[head].key == b[head].key) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail].key == b[b.size() - 1 - tail].key) ++tail;
  if (head == a.size() && head == b.size()) return {};
  std::vector<Edit> edits;
  for (size_t i = head - std::min(head, context); i < head; ++i) edits.push_back({' ', a[i].text});
  const Range old_lines{a, head, a.size() - tail}, new_lines{b, head, b.size() - tail};
  Myers myers(old_lines, new_lines);
  if (myers.find()) {
    myers.append_to(edits);
  } else {
    replace_all(old_lines, new_lines, edits);
  }
  for (size_t i = 0; i < std::min(tail, context); ++i) edits.push_back({' ', a[a.size() - tail + i].text});
  return show(edits, context);
}

}  // namespace headrace::pass
