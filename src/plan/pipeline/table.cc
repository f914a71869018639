#include "plan/pipeline/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::plan {

std::string format_table(const std::vector<std::vector<std::string>>& rows, size_t num_left) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += i < num_left ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string format_time(int64_t time_ns) {
  if (time_ns < 1000) return fmt::format("{} ns", time_ns);
  double value = static_cast<double>(time_ns) / 1e3;
  for (const char* unit : {"us", "ms"}) {
    if (value < 999.9995) return fmt::format("{:.3f} {}", value, unit);
    value /= 1e3;
  }
  return fmt::format("{:.3f} s", value);
}

std::string format_bytes(int64_t size_bytes) {
  if (size_bytes < 1024) return fmt::format("{} B", size_bytes);
  double value = static_cast<double>(size_bytes) / 1024;
  for (const char* unit : {"kB", "MB", "GB"}) {
    if (value < 1023.95) return fmt::format("{:.1f} {}", value, unit);
    value /= 1024;
  }
  return fmt::format("{:.1f} TB", value);
}

}  // namespace headrace::plan
