// The quantized ops, compiled.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "kit/options.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "ops/op_facts.h"
#include "ops/tests/op_cases.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ops::testing::OpCase;

bool calls_plain_form(const OpCase& c) {
  const std::set<std::string> ops = ops::testing::ops_of(c);
  return std::any_of(ops.begin(), ops.end(),
                     [](const std::string& op) { return get_op(op)->find(ops::kPlainForm) != nullptr; });
}

// The cases of ops that become plain ops, as one program with a result for each.
struct AllCases {
  Array<relay::Var> params;
  Array<Expr> results;
  std::vector<NDArray> inputs, expected;
  std::vector<std::string> names;

  void add(const OpCase& c) {
    const auto function = relay::parse_expr(renamed(c.program)).cast<relay::FunctionNode>();
    for (const relay::Var& param : function->params) params.push_back(param);
    results.push_back(function->body);
    inputs.insert(inputs.end(), c.inputs.begin(), c.inputs.end());
    expected.push_back(c.outputs[0]);
    names.push_back(c.name);
  }

  // Gives the parameters of a case names of their own.
  std::string renamed(std::string program) const {
    const std::string own = fmt::format("%c{}_", names.size());
    for (size_t at = 0; (at = program.find("%x", at)) != std::string::npos; at += own.size())
      program.replace(at, 2, own);
    return program;
  }
};

TEST(QuantizedOps, CompiledGiveTheResultsOfTheOracle) {
  ops::register_all_ops();
  AllCases cases;
  size_t num_cases = 0;
  for (const OpCase& c : ops::testing::read_op_cases()) {
    if (!c.fails() && calls_plain_form(c) && kit::is_chosen(num_cases++)) cases.add(c);
  }
  ASSERT_GT(num_cases, 100u);
  const Model model = make_model(make_module(relay::make_function(cases.params, relay::make_tuple(cases.results))));
  for (const int level : {0, 3}) {
    const auto executor =
        load::make_executor(open_compiled(compile_to_memory(model, {.passes = {.opt_level = level}}), "test"),
                            artifact::kDefaultProgram, {.threads = 1});
    const std::vector<NDArray> got = load::run(*executor, cases.inputs);
    ASSERT_EQ(got.size(), cases.expected.size());
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_TRUE(got[k].content_equal(cases.expected[k])) << cases.names[k] << ", level " << level;
  }
}

}  // namespace
}  // namespace headrace::driver
