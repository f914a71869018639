#include "bench/passes.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "driver/model.h"
#include "object/array.h"
#include "ops/all_ops.h"
#include "passes/pipeline.h"
#include "relay/infer/infer_type.h"

namespace headrace::bench {

namespace {

using tools::Report;

// Elementwise ops and sums of what went before, so that there is something to fuse and nothing to fold.
IRModule make_chain(int64_t length) {
  ops::register_all_ops();
  const relay::Var x = relay::make_var("x", make_tensor_type({16, 16}, DataType::float_(32)));
  Expr before = x, at = x;
  for (int64_t i = 0; i < length; ++i) {
    static constexpr const char* kOps[] = {"nn.relu", "exp", "sigmoid", "add"};
    const char* op = kOps[i % 4];
    const Array<Expr> args = i % 4 == 3 ? Array<Expr>{at, before} : Array<Expr>{at};
    before = std::exchange(at, relay::make_call(op, args));
  }
  return make_module(relay::make_function({x}, at));
}

IRModule run_lists(const IRModule& module) {
  pass::PassContext context;
  context.opt_level = 3;
  context.infer_type = [](const IRModule& m) { return relay::infer_type(m); };
  std::vector<pass::Pass> list = passes::canonical();
  for (pass::Pass& pass : passes::native({})) list.push_back(std::move(pass));
  return pass::run_passes(list, module, context);
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Report summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {{"best_seconds", Value(seconds.front())}, {"median_seconds", Value(seconds[seconds.size() / 2])}};
}

Report measure(const std::string& name, const std::function<IRModule()>& make, int rounds) {
  std::vector<double> infer, passes;
  for (int round = 0; round < rounds; ++round) {
    const IRModule module = make();
    IRModule typed, optimised;
    infer.push_back(seconds_of([&] { typed = relay::infer_type(module); }));
    passes.push_back(seconds_of([&] { optimised = run_lists(typed); }));
  }
  return {{"name", Value(name)}, {"infer", Value(summary(infer))}, {"passes", Value(summary(passes))}};
}

}  // namespace

Report measure_passes(const PassBenchOptions& options) {
  Array<Value> programs;
  const auto add = [&](const std::string& name, const std::function<IRModule()>& make) {
    programs.push_back(Value(measure(name, make, options.rounds)));
  };
  add(fmt::format("chain of {}", options.ops), [&] { return make_chain(options.ops); });
  for (const std::string& path : options.models) {
    add(std::filesystem::path(path).stem().string(), [&] { return driver::load_model(path).module; });
  }
  return {{"rounds", Value(int64_t{options.rounds})}, {"programs", Value(programs)}};
}

}  // namespace headrace::bench
