// headrace: compiles models to native artifacts, runs them, looks into them, times and checks them.
#include <cstdio>
#include <iostream>

#include "base/error.h"
#include "headrace/session.h"
#include "headrace/verbs.h"

namespace {

using namespace headrace;
using namespace headrace::tools;

constexpr const char* kFooter =
    "Exit codes: 0 fine, 1 a defect of Headrace, 2 wrong usage, 3 a bad model, file or shape,\n"
    "            4 something needed is missing, 5 results differ.\n"
    "Start with:  headrace compile model.onnx -o model.so --shape x=1,3,224,224\n"
    "             headrace run model.so --input x=image.npy --output-dir out/";

int report_error(const Error& error, int code) {
  std::cerr << "headrace: " << error.what() << "\n";
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Compiles neural networks to native code and runs them.", "headrace"};
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("headrace ") + HEADRACE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  Common common;
  app.add_flag("--json", common.json, "Print one JSON object instead of text (docs/cli-json.md)");
  app.add_flag("--quiet,-q", common.quiet, "No progress");
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  for (auto* add : {add_compile, add_run, add_inspect, add_bench, add_verify}) {
    Verb verb = add(app, common);
    verbs.emplace_back(app.get_subcommands({}).back(), std::move(verb));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  try {
    for (const auto& [sub, verb] : verbs) {
      if (sub->parsed()) return verb();
    }
    return kUsage;
  } catch (const MissingError& error) {
    return report_error(error, kMissing);
  } catch (const UserError& error) {
    return report_error(error, kUser);
  } catch (const Error& error) {
    return report_error(error, kInternal);
  } catch (const std::exception& error) {
    std::cerr << "headrace: a defect: " << error.what() << "\n";
    return kInternal;
  }
}
