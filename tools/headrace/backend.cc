// headrace backend: the backends of this build, what they compute, and whether they keep their promises.
#include <fnmatch.h>
#include <unistd.h>

#include <iostream>
#include <set>

#include "conformance/check.h"
#include "driver/all_backends.h"
#include "driver/plugins.h"
#include "driver/register_all.h"
#include "partition/rules.h"
#include "tools/headrace/isolated_checks.h"
#include "tools/headrace/output.h"
#include "tools/headrace/session.h"
#include "tools/headrace/shown_text.h"

namespace headrace::tools {

namespace {

using conformance::Case;
using conformance::CaseReport;

struct ListState {
  bool ops = false;
};

struct CheckState {
  std::string backend;  // a name, or the path of a shared library
  std::vector<std::string> cases;
  double timeout = 60;
  int64_t child = -1;  // the case to begin with, in a child of ours
};

std::string op_of(const Case& one) { return one.name.substr(0, one.name.find('/')); }

// What a backend says to the cases of one op.
struct Claims {
  int64_t taken = 0, all = 0;
};

std::string to_text(const Claims& claims) {
  if (claims.taken == 0) return "-";
  return claims.taken == claims.all ? "yes" : fmt::format("{} of {}", claims.taken, claims.all);
}

// Returns, for each op that one of the backends takes in some case, what each says to all of its cases.
std::map<std::string, std::vector<Claims>> claims_of(const partition::Backends& backends) {
  std::map<std::string, std::vector<Claims>> claims;
  for (const Case& one : conformance::op_cases()) {
    const IRModule module = conformance::module_of(one);
    std::vector<Claims>& row = claims[op_of(one)];
    row.resize(backends.size());
    for (size_t i = 0; i < backends.size(); ++i) {
      ++row[i].all;
      row[i].taken += conformance::is_taken(*backends[i], module) ? 1 : 0;
    }
  }
  std::erase_if(claims, [](const auto& row) {
    return std::all_of(row.second.begin(), row.second.end(), [](const Claims& one) { return one.taken == 0; });
  });
  return claims;
}

// The backends that can be asked; those that cannot are rows with the reason.
partition::Backends usable_backends(std::vector<std::vector<std::string>>& rows) {
  partition::Backends usable;
  for (const std::string& name : partition::backend_names()) {
    const auto backend = partition::find_backend(name);
    try {
      rows.push_back({name, backend->version(), fmt::format("{}", backend->patterns().size()), ""});
      usable.push_back(backend);
    } catch (const UserError& error) {
      rows.push_back({name, "-", "-", error.message()});
    }
  }
  for (const auto& [name, option] : driver::left_out_backends())
    rows.push_back({name, "-", "-", fmt::format("left out of this build; configure it with -D{}=ON", option)});
  return usable;
}

int list(const ListState& state, const Common& common) {
  driver::register_all();
  std::vector<std::vector<std::string>> rows;
  const partition::Backends usable = usable_backends(rows);
  std::map<std::string, std::vector<Claims>> claims;
  if (state.ops) claims = claims_of(usable);
  if (common.json) {
    Array<Value> backends, ops;
    for (const auto& row : rows)
      backends.push_back(
          Value(Report{{"name", Value(row[0])}, {"version", Value(row[1])}, {"missing", Value(row[3])}}));
    for (const auto& [op, row] : claims) {
      Report taken;
      for (size_t i = 0; i < usable.size(); ++i)
        taken.set(std::string(usable[i]->name()),
                  Value(Report{{"taken", Value(row[i].taken)}, {"cases", Value(row[i].all)}}));
      ops.push_back(Value(Report{{"op", Value(op)}, {"backends", Value(taken)}}));
    }
    std::cout << to_json({{"backends", Value(backends)}, {"ops", Value(ops)}});
    return HR_OK;
  }
  rows.insert(rows.begin(), {"backend", "version", "patterns", "why it cannot be used"});
  std::cout << to_table(rows);
  if (!state.ops) return HR_OK;
  std::vector<std::vector<std::string>> table{{"op"}};
  for (const auto& backend : usable) table[0].emplace_back(backend->name());
  for (const auto& [op, row] : claims) {
    table.push_back({op});
    for (const Claims& one : row) table.back().push_back(to_text(one));
  }
  std::cout << '\n' << to_table(table);
  return HR_OK;
}

// Cases whose names match one of the patterns; all without patterns.
std::vector<Case> chosen(const std::vector<Case>& all, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return all;
  std::vector<Case> some;
  for (const Case& one : all) {
    const bool is_asked = std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), one.name.c_str(), 0) == 0;
    });
    if (is_asked) some.push_back(one);
  }
  if (some.empty()) throw_user_error("no case has a name like '{}'", fmt::join(patterns, "', '"));
  return some;
}

Report report_of(const std::string& backend, const std::vector<CaseReport>& reports) {
  Array<Value> rows;
  int64_t num_failed = 0;
  for (const CaseReport& one : reports) {
    Array<Value> findings;
    for (const conformance::Finding& finding : one.findings)
      findings.push_back(Value(Report{{"check", Value(finding.check)}, {"message", Value(finding.message)}}));
    num_failed += one.findings.empty() ? 0 : 1;
    rows.push_back(Value(Report{{"case", Value(one.name)},
                                {"claimed", Value(one.is_claimed)},
                                {"checks", Value(one.num_checks)},
                                {"findings", Value(findings)}}));
  }
  return {{"backend", Value(backend)}, {"cases", Value(rows)}, {"failed", Value(num_failed)}};
}

// One row for each op or pattern: its cases that are claimed, and those that fail.
void print(const std::string& backend, const std::vector<CaseReport>& reports) {
  struct Row {
    int64_t claimed = 0, all = 0, checks = 0, failed = 0;
  };
  std::map<std::string, Row> rows;
  Row sum;
  for (const CaseReport& one : reports) {
    for (Row* row : {&rows[one.name.substr(0, one.name.find('/'))], &sum}) {
      ++row->all;
      row->claimed += one.is_claimed ? 1 : 0;
      row->checks += one.is_claimed ? one.num_checks : 0;
      row->failed += one.findings.empty() ? 0 : 1;
    }
  }
  std::vector<std::vector<std::string>> table{{"op or pattern", "claimed", "checks", "result"}};
  for (const auto& [name, row] : rows) {
    if (row.claimed == 0 && row.failed == 0) continue;
    table.push_back({name, fmt::format("{} of {}", row.claimed, row.all), fmt::format("{}", row.checks),
                     row.failed == 0 ? "pass" : fmt::format("{} cases fail", row.failed)});
  }
  std::cout << to_table(table);
  for (const CaseReport& one : reports) {
    for (const conformance::Finding& finding : one.findings)
      print_out("FAIL {} [{}]: {}\n", one.name, finding.check, shown(finding.message));
  }
  print_out("{}: {} of {} cases claimed, {} checks, {}\n", shown(backend), sum.claimed, sum.all, sum.checks,
            sum.failed == 0 ? "all passed" : fmt::format("{} cases failed", sum.failed));
}

// Names the patterns that no case matches, which the kit says nothing about.
void print_unchecked(const std::string& backend, const std::vector<CaseReport>& reports) {
  std::set<std::string> unchecked;
  for (const partition::CompositePattern& pattern : driver::require_backend(backend)->patterns())
    unchecked.insert(pattern.name);
  for (const CaseReport& one : reports) {
    if (one.is_claimed) unchecked.erase(one.name.substr(0, one.name.find('/')));
  }
  if (!unchecked.empty())
    print_out("no case matches {}; check that by models that have it (headrace verify)\n",
              shown(fmt::format("{}", fmt::join(unchecked, ", "))));
}

// Returns the name of a backend that is named, or lies at a path.
std::string resolve(const std::string& backend) {
  if (backend.find('/') == std::string::npos && !backend.ends_with(".so")) {
    driver::require_backend(backend);
    return backend;
  }
  return driver::load_plugin(backend);
}

int check(const CheckState& state, const Common& common) {
  driver::register_all();
  const std::string backend = resolve(state.backend);
  const std::vector<Case> cases = chosen(conformance::cases_for(backend), state.cases);
  if (state.child >= 0) {
    run_child(backend, cases, static_cast<size_t>(state.child), 3);
    return HR_OK;
  }
  CheckRequest request{
      .backend = backend, .arguments = {state.backend}, .cases = cases, .timeout_seconds = state.timeout};
  for (const std::string& plugin : common.plugins)
    request.arguments.insert(request.arguments.end(), {"--plugin", plugin});
  for (const std::string& one : state.cases) request.arguments.insert(request.arguments.end(), {"--case", one});
  const bool shows_progress = !common.quiet && !common.json && ::isatty(STDERR_FILENO) != 0;
  if (shows_progress)
    request.progress = [&](size_t index) {
      std::cerr << fmt::format("\r{}/{} {:60}\r", index + 1, cases.size(), cases[index].name) << std::flush;
    };
  const std::vector<CaseReport> reports = run_isolated(request);
  if (shows_progress) std::cerr << fmt::format("\r{:80}\r", "");
  if (common.json) {
    std::cout << to_json(report_of(backend, reports));
  } else {
    print(backend, reports);
    if (state.cases.empty()) print_unchecked(backend, reports);
  }
  const auto any = [&](auto&& holds) { return std::any_of(reports.begin(), reports.end(), holds); };
  if (any([](const CaseReport& one) { return !one.findings.empty(); })) return HR_MISMATCH;
  if (!any([](const CaseReport& one) { return one.is_claimed; }))
    throw_user_error("the backend '{}' claims none of the cases, so nothing was checked", backend);
  return HR_OK;
}

}  // namespace

Verb add_backend(CLI::App& app, const Common& common) {
  CLI::App* verb = app.add_subcommand("backend", "List backends and what they compute, and check one");
  verb->require_subcommand(1);
  auto list_state = std::make_shared<ListState>();
  CLI::App* list_verb = verb->add_subcommand("list", "List the backends of this build, and those of --plugin");
  list_verb->add_flag("--ops", list_state->ops, "Also which ops each takes, of the cases of the conformance kit");
  auto check_state = std::make_shared<CheckState>();
  CLI::App* check_verb = verb->add_subcommand(
      "check", "Check a backend: results, threads, memory, saved bytes, for each op and pattern that it claims");
  check_verb->add_option("backend", check_state->backend, "Its name, or the path of its shared library")->required();
  check_verb
      ->add_option("--case", check_state->cases, "Only cases whose names match, as 'nn.conv2d/*'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  check_verb->add_option("--timeout", check_state->timeout, "Seconds that one case may take")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86400.0));
  check_verb->add_option("--child", check_state->child)->group("");
  check_verb->footer(
      "Cases run in a child process, so that a crash is one finding among others. Exit code 5: a check failed.\n"
      "Example: headrace backend check ./libmine.so");
  return [list_verb, list_state, check_state, &common] {
    return list_verb->parsed() ? list(*list_state, common) : check(*check_state, common);
  };
}

}  // namespace headrace::tools
