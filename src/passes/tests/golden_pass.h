// Golden files of passes: src/passes/tests/NAME.relay holds a program and what a pass makes of it.
//
//   // pass: ConvertLayout
//   // config: relay.ConvertLayout.desired_layouts=nn.conv2d=NHWC      any number of these, as headrace-opt takes them
//   // tolerance: 1e-5          of results, relative to the larger of 1 and the value; without it: to the last bit
//   // checked by: Suite.Test   for a pass that needs more than its name; without it every file is checked alike
//   #[version = "0.0.5"]
//   def @main(%x: Tensor[(2), float32]) { ... }
//
//   // becomes
//   #[version = "0.0.5"]
//   ...
//
// --bless writes what comes after "becomes".
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>

#include "pass/config.h"
#include "pass/known_passes.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

struct GoldenPass {
  std::filesystem::path file;
  std::string pass;
  std::string checked_by;  // empty: by GoldenPasses, as all
  pass::PassContext context = typed_context();
  double tolerance = 0;
  std::string head;    // up to and with the line "becomes"
  std::string before;  // the program in it
};

inline constexpr std::string_view kBecomes = "// becomes\n";

inline void read_golden_line(GoldenPass& golden, const std::string& line) {
  const size_t colon = line.find(": ");
  const std::string key = line.substr(0, colon), value = colon == std::string::npos ? "" : line.substr(colon + 2);
  if (key == "// pass") {
    golden.pass = value;
    for (const auto& list : {by_name(), canonical(), native({})}) {
      for (const pass::Pass& pass : list) {
        if (pass.info.name == value) pass::declare_options(pass.info);
      }
    }
  } else if (key == "// tolerance") {
    golden.tolerance = std::stod(value);
  } else if (key == "// checked by") {
    golden.checked_by = value;
  } else if (key == "// config") {
    const size_t equals = value.find('=');
    const std::string name = value.substr(0, equals);
    golden.context.config.set(name, pass::parse_config_value(name, std::string_view(value).substr(equals + 1)));
  }
}

// Reads src/passes/tests/<name>.relay.
inline GoldenPass read_golden(const std::string& name) {
  GoldenPass golden;
  golden.file = fmt::format("{}/src/passes/tests/{}.relay", HEADRACE_SOURCE_DIR, name);
  std::ifstream file(golden.file);
  std::ostringstream text;
  text << file.rdbuf();
  golden.head = text.str().substr(0, text.str().find(kBecomes)) + std::string(kBecomes);
  const size_t program = golden.head.find("#[version");
  if (!file || program == std::string::npos) throw std::runtime_error("no program in " + golden.file.string());
  std::istringstream lines(golden.head.substr(0, program));
  for (std::string line; std::getline(lines, line);) read_golden_line(golden, line);
  golden.before = golden.head.substr(program, golden.head.size() - program - kBecomes.size());
  return golden;
}

inline IRModule program_before(const GoldenPass& golden) {
  ops::register_all_ops();
  return relay::parse_module(golden.before, golden.file.filename().string());
}

inline void expect_becomes(const GoldenPass& golden, const IRModule& after) {
  EXPECT_TRUE(kit::matches_golden(golden.file, golden.head + relay::print_module(after)));
}

// Makes a ramp with the variable's shape, where symbols are 3.
inline NDArray golden_input(const relay::Var& param) {
  Shape shape;
  for (const PrimExpr& dim : param->checked_type().as<TensorTypeNode>()->shape)
    shape.push_back(as_int(dim).value_or(3));
  return ramp(shape, 0.5f);
}

// Checks the text, and that both programs compute the same of float32 inputs.
inline void check_golden(const GoldenPass& golden) {
  const IRModule before = relay::infer_type(program_before(golden));
  const IRModule after = run_pass(golden.pass, before, golden.context);
  expect_becomes(golden, after);
  std::vector<NDArray> args;
  for (const relay::Var& param : before->lookup("main").as<relay::FunctionNode>()->params)
    args.push_back(golden_input(param));
  expect_same_results(before, after, args, golden.tolerance);
}

// Returns the names of all files, sorted.
inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HEADRACE_SOURCE_DIR "/src/passes/tests")) {
    if (entry.path().extension() == ".relay") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace headrace::passes
