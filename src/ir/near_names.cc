#include "ir/near_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace headrace {

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& one : lower) one = 'A' <= one && one <= 'Z' ? static_cast<char>(one - 'A' + 'a') : one;
  return lower;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> near_names(std::string_view name, const std::vector<std::string>& known, char separator) {
  std::vector<std::string> near;
  if (name.size() >= 100) return near;
  const std::string tail = separator + std::string(name), lower = lower_case(name);
  for (const std::string& one : known) {
    if (one.ends_with(tail) || edit_distance(one, name) <= 2 || lower_case(one) == lower) near.push_back(one);
  }
  return near;
}

std::string near_or_all(std::string_view name, const std::vector<std::string>& known, std::string_view what) {
  const std::vector<std::string> near = near_names(name, known, '.');
  return near.empty() ? fmt::format("{} {}", what, fmt::join(known, ", "))
                      : fmt::format("did you mean {}?", fmt::join(near, " or "));
}

}  // namespace headrace
