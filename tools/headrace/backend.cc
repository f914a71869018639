// headrace backend: the backends of this build, what they compute, and whether they keep their promises.
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "conformance/ask_in_child.h"
#include "conformance/isolated.h"
#include "conformance/report.h"
#include "driver/all_backends.h"
#include "driver/plugins.h"
#include "driver/register_all.h"
#include "partition/rules.h"
#include "tools/headrace/output.h"
#include "tools/headrace/session.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"

extern char** environ;

namespace headrace::tools {

namespace {

using conformance::Case;
using conformance::CaseReport;
using conformance::Claims;

constexpr int kReportDescriptor = 3;

struct ListState {
  bool ops = false;
};

struct CheckState {
  std::string backend;  // a name, or the path of a shared library
  std::vector<std::string> cases;
  double timeout = 60;
  int64_t child = -1;  // the case to begin with, in a child of ours
};

// The backends that can be asked; those that cannot are rows with the reason.
partition::Backends usable_backends(std::vector<std::vector<std::string>>& rows) {
  partition::Backends usable;
  for (const std::string& name : driver::known_backends()) {
    try {
      const auto backend = driver::require_backend(name);
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

using ClaimsOfOps = std::map<std::string, std::vector<Claims>>;  // in the order of the backends

// The names of a backend's patterns, in the order of their priority, where several forms of one count once.
Array<std::string> patterns_of(const partition::Backend& backend) {
  Array<std::string> names;
  for (const partition::CompositePattern& pattern : backend.patterns()) {
    if (std::find(names.begin(), names.end(), pattern.name) == names.end()) names.push_back(pattern.name);
  }
  return names;
}

Report report_of(const std::vector<std::vector<std::string>>& rows, const partition::Backends& usable,
                 const ClaimsOfOps& claims) {
  Array<Value> backends, ops;
  for (const auto& row : rows) {
    const auto found =
        std::find_if(usable.begin(), usable.end(), [&](const auto& backend) { return backend->name() == row[0]; });
    backends.push_back(
        Value(Report{{"name", Value(row[0])},
                     {"version", Value(row[1])},
                     {"patterns", Value(found == usable.end() ? Array<std::string>() : patterns_of(**found))},
                     {"missing", Value(row[3])}}));
  }
  for (const auto& [op, row] : claims) {
    Report taken;
    for (size_t i = 0; i < usable.size(); ++i)
      taken.set(std::string(usable[i]->name()),
                Value(Report{{"taken", Value(row[i].taken)}, {"cases", Value(row[i].all)}}));
    ops.push_back(Value(Report{{"op", Value(op)}, {"backends", Value(taken)}}));
  }
  return {{"backends", Value(backends)}, {"ops", Value(ops)}};
}

// Prints how often each backend takes each op, and the chains of ops that each takes as one.
void print_ops(const partition::Backends& usable, const ClaimsOfOps& claims) {
  std::vector<std::vector<std::string>> table{{"op"}};
  for (const auto& backend : usable) table[0].emplace_back(backend->name());
  for (const auto& [op, row] : claims) {
    table.push_back({op});
    for (const Claims& one : row) table.back().push_back(conformance::to_text(one));
  }
  std::cout << '\n' << to_table(table);
  for (const auto& backend : usable) {
    const Array<std::string> names = patterns_of(*backend);
    if (!names.empty())
      print_out("\npatterns of {}: {}\n", backend->name(), shown(fmt::format("{}", fmt::join(names, ", "))));
  }
}

int list(const ListState& state, const Common& common) {
  driver::register_all();
  std::vector<std::vector<std::string>> rows;
  const partition::Backends usable = usable_backends(rows);
  ClaimsOfOps claims;
  if (state.ops) claims = conformance::claims_of(usable);
  if (common.json) {
    std::cout << to_json(report_of(rows, usable, claims));
    return HR_OK;
  }
  rows.insert(rows.begin(), {"backend", "version", "patterns", "why it cannot be used"});
  std::cout << to_table(rows);
  if (state.ops) print_ops(usable, claims);
  return HR_OK;
}

Array<Value> rows_of(const std::vector<conformance::Finding>& findings) {
  Array<Value> rows;
  for (const conformance::Finding& finding : findings)
    rows.push_back(Value(Report{{"check", Value(finding.check)}, {"message", Value(finding.message)}}));
  return rows;
}

Report report_of(const std::string& backend, const std::vector<CaseReport>& reports) {
  Array<Value> rows;
  int64_t num_failed = 0;
  for (const CaseReport& one : reports) {
    num_failed += one.findings.empty() ? 0 : 1;
    rows.push_back(Value(Report{{"case", Value(one.name)},
                                {"claimed", Value(one.is_claimed)},
                                {"checks", Value(one.num_checks)},
                                {"findings", Value(rows_of(one.findings))},
                                {"warnings", Value(rows_of(one.warnings))},
                                {"refusal", Value(one.refusal)},
                                {"program", Value(one.findings.empty() ? std::string() : one.program)}}));
  }
  return {{"backend", Value(backend)}, {"cases", Value(rows)}, {"failed", Value(num_failed)}};
}

void print(const std::string& backend, const std::vector<CaseReport>& reports) {
  std::cout << to_table(conformance::matrix_of(reports));
  for (const std::string& line : conformance::failures_of(reports)) print_out("{}\n", shown(line));
  print_out("{}\n", shown(conformance::summary_of(backend, reports)));
}

// Names the patterns that no case matches, which the kit says nothing about.
void print_unchecked(const std::string& backend, const std::vector<CaseReport>& reports) {
  const std::vector<std::string> unchecked = conformance::unchecked_patterns(backend, reports);
  if (!unchecked.empty())
    print_out("no case matches {}; check that by models that have it (headrace verify)\n",
              shown(fmt::format("{}", fmt::join(unchecked, ", "))));
}

// Starts this program again as a child of the checks, with these words.
pid_t spawn_child(std::vector<std::string> words, int report, int output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, report, kReportDescriptor);
  pid_t process = -1;
  const int code = ::posix_spawn(&process, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw_user_error("a process for the checks cannot be started: {}", std::strerror(code));
  return process;
}

std::function<pid_t(size_t, int, int)> starter(const CheckState& state, const Common& common) {
  std::vector<std::string> words = common.program;
  words.insert(words.end(), {"backend", "check", state.backend});
  for (const std::string& plugin : common.plugins) words.insert(words.end(), {"--plugin", plugin});
  for (const std::string& one : state.cases) words.insert(words.end(), {"--case", one});
  words.insert(words.end(), {"--timeout", fmt::format("{}", state.timeout)});
  return [words](size_t first, int report, int output) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--child", std::to_string(first)});
    return spawn_child(std::move(all), report, output);
  };
}

// Loads a library in a child first. An error of it comes again as it is loaded here.
void check_loads(const std::string& library, double timeout) {
  const auto loads = [&] {
    try {
      driver::load_plugin(library);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  };
  const conformance::Answer answer = conformance::ask_in_child(loads, timeout);
  if (answer == conformance::Answer::crashed)
    throw_user_error("the library '{}' ends the process that loads it, in its headrace_backend_entry or a constructor",
                     library);
  if (answer == conformance::Answer::late)
    throw_user_error("loading the library '{}' did not end within {} seconds (--timeout)", library, timeout);
}

// Returns the name of a backend that is named, also by an alias, or lies at a path.
std::string resolve(const CheckState& state) {
  const std::string& backend = state.backend;
  if (backend.find('/') == std::string::npos && !backend.ends_with(".so")) {
    return std::string(driver::require_backend(backend)->name());
  }
  if (state.child < 0) check_loads(backend, state.timeout);  // a child is of a process that did
  if (std::string name = driver::load_plugin(backend); !name.empty()) return name;
  throw_user_error("'{0}' registers its backends itself; name one: headrace backend check NAME --plugin {0}", backend);
}

int check(const CheckState& state, const Common& common) {
  driver::register_all();
  const std::string backend = resolve(state);
  const std::vector<Case> cases = conformance::cases_for(backend, state.cases, state.timeout);
  if (state.child >= 0) {
    conformance::run_child(backend, cases, static_cast<size_t>(state.child), kReportDescriptor);
    return HR_OK;
  }
  conformance::CheckRequest request{.cases = cases, .start = starter(state, common), .timeout_seconds = state.timeout};
  const bool shows_progress = !common.quiet && !common.json && ::isatty(STDERR_FILENO) != 0;
  if (shows_progress)
    request.progress = [&](size_t index) {
      std::cerr << fmt::format("\r{}/{} {:60}\r", index + 1, cases.size(), cases[index].name) << std::flush;
    };
  const std::vector<CaseReport> reports = conformance::run_isolated(request);
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
  verb->footer(
      "Example: headrace backend list --ops\n"
      "         headrace backend check ccompiler");
  auto list_state = std::make_shared<ListState>();
  CLI::App* list_verb = verb->add_subcommand("list", "List the backends of this build, and those of --plugin");
  list_verb->add_flag("--ops", list_state->ops,
                      "Also list the ops that each takes among the cases of the conformance kit");
  list_verb->footer("Example: headrace backend list --ops");
  auto check_state = std::make_shared<CheckState>();
  CLI::App* check_verb = verb->add_subcommand(
      "check", "Check a backend: results, costs, threads, memory, saved bytes, for each op and pattern that it claims");
  check_verb->add_option("backend", check_state->backend, "Its name, or the path of its shared library")->required();
  check_verb
      ->add_option("--case", check_state->cases, "Only cases whose names match, as 'nn.conv2d/*'; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  takes_size(check_verb->add_option("--timeout", check_state->timeout, "Seconds that one case may take")
                 ->capture_default_str(),
             "30", {0.1, 86400});
  check_verb->add_option("--child", check_state->child)->group("");
  check_verb->footer(
      "Cases run in a child process, so that a crash is one finding among others. Exit code 5: a check failed;\n"
      "warnings (WARN), such as costs far from the time of a run, do not count.\n"
      "Example: headrace backend check ./libmine.so");
  return [list_verb, list_state, check_state, &common] {
    return list_verb->parsed() ? list(*list_state, common) : check(*check_state, common);
  };
}

}  // namespace headrace::tools
