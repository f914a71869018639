// Runs the cases of libonnx-testdata, or with --folder those that make_node_cases.py wrote there:
// onnx_data_runner [--bless] [--folder FOLDER] [NAME...], where NAME picks cases whose name contains it. Prints totals
// and failures; fails when a case fails, when fewer pass than did, when an operator that is registered as one Relay op
// becomes several, or when docs/onnx-support.md (onnx-new-opsets.md) is out of date.
#include <cstdio>

#include "base/error.h"
#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/golden.h"
#include "kit/options.h"
#include "load/run.h"
#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "report.h"

using namespace headrace;

namespace {

// Below this something that worked no longer does.
constexpr size_t kFewestPassed = 976, kFewestPassedNew = 1095;

std::vector<NDArray> interpret(const IRModule& module, const std::vector<NDArray>& args) {
  return interp::run_main(module, args, {.precision = interp::Precision::declared});
}

// Interprets the module that its text describes, after checking that both are equal.
std::vector<NDArray> interpret_text(const IRModule& module, const std::vector<NDArray>& args) {
  std::vector<NDArray> weights;
  const std::string text = relay::print_module(module, {.show_meta_data = true, .weights = &weights});
  const IRModule parsed = relay::parse_module(text, "printed", {.weights = &weights});
  if (!structural_equal(module, parsed)) throw_user_error("the printed module reads back as another one:\n{}", text);
  return interpret(parsed, args);
}

// Compiled for this machine; the artifact runs on two threads.
std::vector<NDArray> run_native(const IRModule& module, const std::vector<NDArray>& args) {
  driver::CompiledModel compiled = driver::compile_to_memory(driver::make_model(module));
  const auto artifact = driver::open_compiled(std::move(compiled), "the compiled case");
  return load::run(*load::make_executor(artifact, artifact::kDefaultProgram, {.threads = 2}), args);
}

// The executors that every case runs with.
std::vector<onnx_test::Executor> executors() {
  return {{"interp", interpret}, {"text", interpret_text}, {"native", run_native}};
}

bool is_asked_for(const kit::OnnxCase& one, const std::vector<std::string>& names) {
  bool asked = false;
  for (const std::string& name : names) asked = asked || one.name.find(name) != std::string::npos;
  return asked;
}

// The cases to run, and the options of the run.
struct Plan {
  std::vector<kit::OnnxCase> cases;
  size_t fewest_passed;
  const char* page_file;
  std::string (*page)(const std::vector<onnx_test::CaseResult>&);
};

Plan make_plan(const std::string& folder) {
  if (folder.empty()) {
    return {kit::find_onnx_cases(), kFewestPassed, HEADRACE_SOURCE_DIR "/docs/onnx-support.md",
            onnx_test::support_page};
  }
  return {kit::find_suite_cases("opsets 18 to 25", folder), kFewestPassedNew,
          HEADRACE_SOURCE_DIR "/docs/onnx-new-opsets.md", onnx_test::new_opsets_page};
}

void print_refusals(const std::vector<onnx_test::CaseResult>& results) {
  for (const onnx_test::CaseResult& result : results) {
    for (const onnx::NodeRefusal& refusal : result.refusals)
      std::printf("%s: %s: %s\n", result.one->name.c_str(), refusal.op.c_str(), refusal.message.c_str());
  }
}

int run(const Plan& plan, const std::vector<std::string>& names) {
  std::vector<onnx_test::CaseResult> results;
  for (size_t i = 0; i < plan.cases.size(); ++i) {
    const kit::OnnxCase& one = plan.cases[i];
    if (names.empty() ? kit::is_chosen(i) : is_asked_for(one, names))
      results.push_back(onnx_test::run_case(one, executors()));
  }
  std::fputs(onnx_test::summary(results).c_str(), stdout);
  const onnx_test::Totals totals = onnx_test::count(results);
  if (totals.failed > 0) return 1;
  if (!names.empty()) {
    print_refusals(results);
    return 0;
  }
  if (results.size() < plan.cases.size()) return 0;  // test size few: the page is about all cases
  if (totals.passed() < plan.fewest_passed) {
    std::printf("only %zu cases passed, at least %zu are expected\n", totals.passed(), plan.fewest_passed);
    return 1;
  }
  const std::vector<std::string> mistakes = onnx_test::form_mistakes(results);
  for (const std::string& mistake : mistakes) std::printf("%s\n", mistake.c_str());
  if (!mistakes.empty()) return 1;
  const auto page = kit::matches_golden(plan.page_file, plan.page(results));
  if (!page) std::printf("%s\n", page.message());
  return page ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    kit::read_options(argc, argv);
    ops::register_all_ops();
    std::vector<std::string> args(argv + 1, argv + argc);
    std::string folder;
    if (args.size() >= 2 && args[0] == "--folder") {
      folder = args[1];
      args.erase(args.begin(), args.begin() + 2);
    }
    return run(make_plan(folder), args);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
