#include "tools/headrace/op_counts.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/placing.h"
#include "partition/place.h"

namespace headrace::tools {

OpCounts count_ops(const std::vector<artifact::Placement>& placement, const std::vector<std::string>& named) {
  OpCounts counts;
  for (const std::string& name : named) counts.emplace_back(name, 0);
  for (const artifact::Placement& one : placement) {
    auto at = std::find_if(counts.begin(), counts.end(), [&](const auto& row) { return row.first == one.backend; });
    if (at == counts.end()) at = counts.insert(at, {one.backend, 0});
    ++at->second;
  }
  return counts;
}

OpCounts count_ops(const artifact::Manifest& manifest, const driver::CompileOptions& options) {
  std::vector<std::string> named{partition::kNative};
  for (const auto& backend : driver::possible_backends(options)) named.emplace_back(backend->name());
  return count_ops(manifest.programs.front().placement, named);
}

Map<std::string, int64_t> counts_report(const OpCounts& counts) {
  Map<std::string, int64_t> report;
  for (const auto& [backend, count] : counts) report.set(backend, count);
  return report;
}

std::string to_text(const OpCounts& counts) {
  std::string text;
  for (const auto& [backend, count] : counts) {
    const char* unit = count == 1 ? " op" : " ops";
    text += fmt::format("{}{}{} by {}", text.empty() ? "" : ", ", count, text.empty() ? unit : "",
                        backend == partition::kExternal ? "functions of the process or of modules" : backend);
  }
  return text;
}

}  // namespace headrace::tools
