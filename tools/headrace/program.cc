#include "tools/headrace/program.h"

#include <cstdio>
#include <stdexcept>

#include "base/error.h"
#include "driver/plugins.h"
#include "functions/register_functions.h"
#include "tools/headrace/options.h"
#include "tools/headrace/report_failure.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/version.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

namespace {

constexpr const char* kProgramFooter =
    "Exit codes: 0 fine, 1 a defect of Headrace, 2 wrong usage,\n"
    "            3 a bad model, file, shape or input, or an unknown name (of a pass, a processor),\n"
    "            4 a requirement is missing: a peer, a CPU feature, a backend, the code generator,\n"
    "            5 results or plans differ.\n"
    "Start with:  headrace compile model.onnx -o model.so --shape x=1,3,224,224\n"
    "             headrace run model.so --input x=image.npy --output-dir out/";

std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unexpected = app.remaining(true);
  const bool is_option = !unexpected.empty() && unexpected[0].starts_with("-");
  if (!app.get_subcommands().empty() || is_option) return usage_message(app, error);
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  return unexpected.empty() ? fmt::format("name a verb: {}", fmt::join(verbs, ", "))
                            : fmt::format("there is no verb '{}'{}", unexpected[0],
                                          suggest_or_list(unexpected[0], verbs, "the verbs are"));
}

int report_command_line(const CLI::App& app, const std::string& message) {
  std::string verb;
  for (const CLI::App* named = &app; !named->get_subcommands().empty();) {
    named = named->get_subcommands().front();
    verb += named->get_name() + " ";
  }
  return report_usage("headrace", fmt::format("headrace {}--help", verb), message);
}

int run_line(CLI::App& app, const std::vector<std::pair<CLI::App*, Verb>>& verbs, const Common& common, int argc,
             char** argv) {
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      // Help and version are "errors" of code 0.
      return error.get_exit_code() == 0 ? finish_output(app.exit(error))
                                        : report_command_line(app, message_of(app, error));
    }
    if (!common.plugins.empty()) functions::register_functions();  // code generators in C++ call them by name
    for (const std::string& plugin : common.plugins) driver::load_plugin(plugin);
    for (const auto& [sub, verb] : verbs) {
      if (!sub->parsed()) continue;
      return finish_output(verb());
    }
    return HR_USAGE;
  } catch (const UsageError& error) {
    return report_command_line(app, error.what());
  }
}

int run_program(int argc, char** argv, std::vector<std::string> words) {
  CLI::App app{"Compiles neural networks to native code and runs them.", "headrace"};
  app.footer(kProgramFooter);
  app.set_version_flag("--version", &describe_version);
  app.require_subcommand(1);
  app.fallthrough();
  Common common;
  common.program = std::move(words);
  app.add_flag("--json", common.json, "Print one JSON object instead of text (docs/cli-json.md)");
  app.add_flag("--quiet,-q", common.quiet, "Show no progress");
  app.add_option(
         "--plugin", common.plugins,
         "Load a backend from a shared library, or by `python -m headrace` from FILE.py; may be given several times")
      ->allow_extra_args(false)
      ->type_name("FILE");
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  for (auto* add : {add_compile, add_explain, add_plan, add_profile, add_run, add_inspect, add_bench, add_verify,
                    add_pipeline, add_backend, add_cache, add_targets, add_help, add_completion}) {
    Verb verb = add(app, common);
    CLI::App* sub = app.get_subcommands({}).back();
    sub->footer(sub->get_footer() +
                "\nEvery verb also takes --json (one JSON object instead of text), --quiet (no progress) and\n"
                "--plugin FILE (a backend from a shared library, or from FILE.py by `python -m headrace`).");
    verbs.emplace_back(sub, std::move(verb));
  }
  return run_line(app, verbs, common, argc, argv);
}

}  // namespace

}  // namespace headrace::tools

int headrace_run_program(int argc, char** argv, int num_words, char** words) {
  try {
    return headrace::tools::run_program(argc, argv, std::vector<std::string>(words, words + num_words));
  } catch (const std::exception& error) {
    return headrace::tools::report_failure("headrace", error);
  } catch (...) {
    return headrace::tools::report_failure("headrace", std::runtime_error("an exception that says nothing"));
  }
}
