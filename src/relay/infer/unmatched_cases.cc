#include "relay/infer/unmatched_cases.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "relay/infer/inferencer.h"

namespace headrace::relay {

namespace {

using Row = std::vector<Pattern>;

// A clause's patterns for the parts of a value, part by part; a value is taken apart by the head of its first part.
// Recursion is as deep as patterns are wide and deep, which kMaxWidth bounds.
class Cases {
 public:
  explicit Cases(const IRModule& module) : module_(module) {}

  // Values of `width` parts that no row covers.
  std::vector<Row> missing(const std::vector<Row>& rows, size_t width) {
    if (++steps_ > kMaxSteps || width > kMaxWidth)
      throw UserError("the match has too many patterns to tell whether they cover every value");
    for (const Row& row : rows) {
      if (std::all_of(row.begin(), row.end(), takes_all)) return {};
    }
    if (width == 0) return rows.empty() ? std::vector<Row>{{}} : std::vector<Row>();
    for (const Row& row : rows) {
      if (const auto* constructor = row.front().as<PatternConstructorNode>())
        return missing_constructors(rows, width, *constructor->constructor);
      if (const auto* tuple = row.front().as<PatternTupleNode>()) return missing_tuples(rows, width, *tuple);
    }
    std::vector<Row> rest;
    for (const Row& row : rows) rest.emplace_back(row.begin() + 1, row.end());
    return with_front(missing(rest, width - 1), 0, [](const Row&) { return make_pattern_wildcard(); });
  }

 private:
  static constexpr int kMaxSteps = 20'000;
  static constexpr size_t kMaxWidth = 400;

  static bool takes_all(const Pattern& pattern) {
    return !pattern.is<PatternConstructorNode>() && !pattern.is<PatternTupleNode>();
  }

  static Row joined(const Array<Pattern>& parts, const Row& row) {
    Row result(parts.begin(), parts.end());
    result.insert(result.end(), row.begin() + 1, row.end());
    return result;
  }

  // Joins the first `count` parts of each row by `make`, up to the number of rows that are reported.
  template <typename F>
  static std::vector<Row> with_front(const std::vector<Row>& rows, size_t count, F&& make) {
    std::vector<Row> result;
    for (const Row& row : rows) {
      if (result.size() == kMaxUnmatchedCases) break;
      const auto split = row.begin() + static_cast<std::ptrdiff_t>(count);
      Row made{make(Row(row.begin(), split))};
      made.insert(made.end(), split, row.end());
      result.push_back(std::move(made));
    }
    return result;
  }

  static Array<Pattern> wildcards(size_t count) {
    Array<Pattern> result;
    for (size_t i = 0; i < count; ++i) result.push_back(make_pattern_wildcard());
    return result;
  }

  // Which rows a constructor's values are held against, in their order: those that name it, and those that name none.
  class Heads {
   public:
    explicit Heads(const std::vector<Row>& rows) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const Pattern& first = rows[i].front();
        if (const auto* head = first.as<PatternConstructorNode>()) {
          named_[head->constructor->name_hint].push_back(i);
        } else if (!first.is<PatternTupleNode>()) {
          open_.push_back(i);
        }
      }
    }
    std::vector<size_t> rows_of(const std::string& constructor) const {
      const auto it = named_.find(constructor);
      if (it == named_.end()) return open_;
      std::vector<size_t> result;
      std::merge(it->second.begin(), it->second.end(), open_.begin(), open_.end(), std::back_inserter(result));
      return result;
    }

   private:
    std::unordered_map<std::string, std::vector<size_t>> named_;
    std::vector<size_t> open_;
  };

  std::vector<Row> missing_constructors(const std::vector<Row>& rows, size_t width, const ConstructorNode& any) {
    const TypeData data = find_type_data(module_, any.belong_to);
    if (!data) return {};
    const Heads heads(rows);
    std::vector<Row> result;
    for (const Constructor& constructor : data->constructors) {
      const size_t count = constructor->inputs.size();
      std::vector<Row> fitting;
      for (const size_t i : heads.rows_of(constructor->name_hint)) {
        const auto* head = rows[i].front().as<PatternConstructorNode>();
        if (head != nullptr && head->patterns.size() != count) return {};  // an error of its own
        fitting.push_back(joined(head != nullptr ? head->patterns : wildcards(count), rows[i]));
      }
      const auto make = [&](const Row& parts) {
        return make_pattern_constructor(constructor, Array<Pattern>(parts.begin(), parts.end()));
      };
      for (Row& row : with_front(missing(fitting, width - 1 + count), count, make)) result.push_back(std::move(row));
    }
    return result;
  }

  std::vector<Row> missing_tuples(const std::vector<Row>& rows, size_t width, const PatternTupleNode& any) {
    const size_t count = any.patterns.size();
    std::vector<Row> fitting;
    for (const Row& row : rows) {
      const auto* head = row.front().as<PatternTupleNode>();
      if (head != nullptr && head->patterns.size() != count) return {};  // an error of its own
      fitting.push_back(joined(head != nullptr ? head->patterns : wildcards(count), row));
    }
    const auto make = [](const Row& parts) { return make_pattern_tuple(Array<Pattern>(parts.begin(), parts.end())); };
    return with_front(missing(fitting, width - 1 + count), count, make);
  }

  const IRModule& module_;
  int steps_ = 0;
};

std::string list_text(const Array<Pattern>& patterns) {
  std::string text;
  for (const Pattern& item : patterns) text += (text.empty() ? "" : ", ") + case_text(item);
  return "(" + text + ")";
}

}  // namespace

std::vector<Pattern> unmatched_cases(const MatchNode& match, const IRModule& module) {
  std::vector<Row> rows;
  for (const Clause& clause : match.clauses) rows.push_back({clause->lhs});
  std::vector<Pattern> result;
  for (const Row& row : Cases(module).missing(rows, 1)) {
    if (result.size() < kMaxUnmatchedCases) result.push_back(row.front());
  }
  return result;
}

std::string case_text(const Pattern& pattern) {
  if (const auto* constructor = pattern.as<PatternConstructorNode>()) {
    const std::string& name = constructor->constructor->name_hint;
    return constructor->patterns.empty() ? name : name + list_text(constructor->patterns);
  }
  if (const auto* tuple = pattern.as<PatternTupleNode>()) return list_text(tuple->patterns);
  return "_";
}

}  // namespace headrace::relay
