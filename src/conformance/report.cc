#include "conformance/report.h"

#include <algorithm>
#include <set>

#include "base/count_of.h"
#include "driver/all_backends.h"

namespace headrace::conformance {

namespace {

// An op is what stands before the slash in the names of its cases.
std::string subject_of(const std::string& case_name) { return case_name.substr(0, case_name.find('/')); }

struct Sum {
  int64_t claimed = 0, all = 0, checks = 0, failed = 0, warnings = 0;

  void add(const CaseReport& one) {
    ++all;
    claimed += one.is_claimed ? 1 : 0;
    checks += one.is_claimed ? one.num_checks : 0;
    failed += one.findings.empty() ? 0 : 1;
    warnings += static_cast<int64_t>(one.warnings.size());
  }
};

// Returns the refusal that most cases have: "; most often (12 cases) it says: the chip does not compute this op".
std::string usual_refusal(const std::vector<CaseReport>& reports) {
  std::map<std::string, int64_t> counts;
  for (const CaseReport& one : reports) {
    if (!one.refusal.empty()) ++counts[one.refusal];
  }
  const auto is_rarer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto most = std::max_element(counts.begin(), counts.end(), is_rarer);
  return most == counts.end() ? "" : fmt::format("; most often ({} cases) it says: {}", most->second, most->first);
}

}  // namespace

Rows matrix_of(const std::vector<CaseReport>& reports) {
  std::map<std::string, Sum> sums;
  for (const CaseReport& one : reports) sums[subject_of(one.name)].add(one);
  Rows rows{{"op or pattern", "claimed", "checks", "result"}};
  for (const auto& [name, sum] : sums) {
    if (sum.claimed == 0 && sum.failed == 0) continue;
    rows.push_back({name, fmt::format("{} of {}", sum.claimed, sum.all), fmt::format("{}", sum.checks),
                    sum.failed == 0   ? "pass"
                    : sum.failed == 1 ? "1 case fails"
                                      : fmt::format("{} cases fail", sum.failed)});
  }
  return rows;
}

std::vector<std::string> failures_of(const std::vector<CaseReport>& reports) {
  std::vector<std::string> lines;
  for (const CaseReport& one : reports) {
    for (const Finding& finding : one.findings)
      lines.push_back(fmt::format("FAIL {} [{}]: {}", one.name, finding.check, finding.message));
    for (const Finding& warning : one.warnings)
      lines.push_back(fmt::format("WARN {} [{}]: {}", one.name, warning.check, warning.message));
    std::string_view program = one.findings.empty() ? std::string_view() : one.program;
    while (!program.empty()) {
      const size_t end = std::min(program.find('\n'), program.size());
      lines.push_back(fmt::format("    {}", program.substr(0, end)));
      program.remove_prefix(std::min(end + 1, program.size()));
    }
  }
  return lines;
}

std::string summary_of(const std::string& backend, const std::vector<CaseReport>& reports) {
  Sum sum;
  for (const CaseReport& one : reports) sum.add(one);
  return fmt::format("{}: {} of {} cases claimed, {} checks, {}{}", backend, sum.claimed, sum.all, sum.checks,
                     sum.failed > 0     ? count_of(sum.failed, "case") + " failed"
                     : sum.claimed == 0 ? "nothing was checked" + usual_refusal(reports)
                                        : "all passed",
                     sum.warnings == 0 ? "" : ", " + count_of(sum.warnings, "warning"));
}

std::vector<std::string> unchecked_patterns(const std::string& backend, const std::vector<CaseReport>& reports) {
  std::set<std::string> unchecked;
  for (const partition::CompositePattern& pattern : driver::require_backend(backend)->patterns())
    unchecked.insert(pattern.name);
  for (const CaseReport& one : reports) {
    if (one.is_claimed) unchecked.erase(subject_of(one.name));
  }
  return {unchecked.begin(), unchecked.end()};
}

std::string to_text(const Claims& claims) {
  if (claims.taken == 0) return "-";
  return claims.taken == claims.all ? "yes" : fmt::format("{} of {}", claims.taken, claims.all);
}

std::map<std::string, std::vector<Claims>> claims_of(const partition::Backends& backends) {
  std::map<std::string, std::vector<Claims>> claims;
  for (const Case& one : op_cases()) {
    const IRModule module = module_of(one);
    std::vector<Claims>& row = claims[subject_of(one.name)];
    row.resize(backends.size());
    for (size_t i = 0; i < backends.size(); ++i) {
      ++row[i].all;
      row[i].taken += is_taken(*backends[i], module) ? 1 : 0;
    }
  }
  std::erase_if(claims, [](const auto& row) {
    return std::all_of(row.second.begin(), row.second.end(), [](const Claims& one) { return one.taken == 0; });
  });
  return claims;
}

}  // namespace headrace::conformance
