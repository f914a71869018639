#include "conformance/given_cases.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "ir/expr.h"

namespace headrace::conformance {

namespace {

// Splits off the text before the next separator.
std::string_view next(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// Returns the ops that a program calls, in the order of its text.
std::vector<std::string> calls_of(std::string_view program) {
  std::vector<std::string> ops;
  for (size_t open = program.find('('); open != std::string_view::npos; open = program.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && is_of_name(program[begin - 1])) --begin;
    std::string word(program.substr(begin, open - begin));
    if (!word.empty() && find_op(word)) ops.push_back(std::move(word));
  }
  return ops;
}

// A call of the text, as it stands there.
struct Given {
  std::string_view name, program;  // "cumsum flat", "fn (%x0: Tensor[(3), float32]) { cumsum(%x0) }"
  std::vector<std::string_view> values = {};
  std::vector<std::string> ops = {};
};

std::vector<Given> read_given() {
  std::vector<Given> all;
  for (std::string_view text = given_text(); !text.empty();) {
    std::string_view line = next(text, '\n');
    const std::string_view word = next(line, ' ');
    if (word == "case") all.push_back({.name = line, .program = {}});
    if (all.empty()) continue;
    if (word == "program") all.back().program = line;
    if (word == "in") all.back().values.push_back(line);
  }
  for (Given& one : all) one.ops = calls_of(one.program);
  return all;
}

// Names of cases are matched by patterns, and have no blanks.
Case case_of(const Given& given, const std::string& op, bool is_first) {
  std::string name(given.name);
  for (char& c : name) c = is_of_name(c) || c == '-' ? c : '_';
  return {.name = fmt::format("{}/{}", op, name),
          .text = fmt::format("def @main{}\n", given.program.substr(given.program.find('('))),
          .values = given.values,
          .is_brief = !is_first};
}

}  // namespace

std::string_view why_no_case(std::string_view op) {
  if (op == "call_dps" || op.starts_with("memory."))
    return "the compiler inserts it after placement, so no backend is asked about it";
  if (op == "annotation.compiler_begin" || op == "annotation.compiler_end")
    return "it marks a region by hand, and computes nothing";
  return "";
}

std::vector<Case> given_cases() {
  std::vector<Case> cases;
  std::set<std::string> seen;
  const std::vector<Given> all = read_given();
  for (const Given& one : all) {
    if (one.ops.size() == 1 && why_no_case(one.ops[0]).empty())
      cases.push_back(case_of(one, one.ops[0], seen.insert(one.ops[0]).second));
  }
  for (const Given& one : all) {
    const auto is_new = [&](const std::string& op) { return !seen.contains(op) && why_no_case(op).empty(); };
    const auto op = std::find_if(one.ops.begin(), one.ops.end(), is_new);
    if (op != one.ops.end()) cases.push_back(case_of(one, *op, seen.insert(*op).second));
  }
  return cases;
}

}  // namespace headrace::conformance
