#include "bench/kernels.h"

#include <algorithm>
#include <chrono>

#include "cost/limits.h"
#include "cost/probes.h"
#include "driver/compile.h"
#include "driver/target.h"
#include "load/run.h"
#include "object/array.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::bench {

namespace {

using tools::Report;

// A case that is ready to run, its inputs set.
struct Kernel {
  KernelCase what;
  std::shared_ptr<executors::Executor> executor;
  std::vector<NDArray> inputs;
  double best_seconds = 0;
};

NDArray filled(const Shape& shape) {
  NDArray array = NDArray::empty(shape, DataType::float_(32));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] = static_cast<float>(i % 17) / 17.0f - 0.5f;
  return array;
}

Kernel make_kernel(const KernelCase& what, int threads) {
  driver::CompiledModel compiled = driver::compile_to_memory(driver::make_model(relay::parse_module(what.program)));
  const auto opened = driver::open_compiled(std::move(compiled), what.name);
  Kernel kernel{.what = what,
                .executor = load::make_executor(opened, artifact::kDefaultProgram, {.threads = threads}),
                .inputs = {}};
  for (const artifact::TensorSpec& spec : kernel.executor->inputs()) {
    kernel.inputs.push_back(filled(Shape(spec.shape.begin(), spec.shape.end())));
    executors::throw_if_failed(kernel.executor->bind_input(kernel.inputs.size() - 1, kernel.inputs.back().tensor()));
  }
  return kernel;
}

// At least two runs, so that the last one finds its data in the cache, and some 2 ms.
void run_round(Kernel& kernel) {
  constexpr double kSeconds = 0.002;
  double spent = 0;
  for (int i = 0; i < 2 || spent < kSeconds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const executors::Status status = kernel.executor->run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    executors::throw_if_failed(status);
    if (kernel.best_seconds == 0 || seconds < kernel.best_seconds) kernel.best_seconds = seconds;
    spent += seconds;
  }
}

Report report_of(const Kernel& kernel, const cost::Limits& limits) {
  const cost::LeastTime least =
      cost::least_time(limits, kernel.what.operations, static_cast<double>(kernel.what.bytes));
  return {{"name", Value(kernel.what.name)},
          {"best_seconds", Value(kernel.best_seconds)},
          {"gflops", Value(kernel.what.operations / kernel.best_seconds * 1e-9)},
          {"bound", Value(std::string(least.bound))},
          {"share", Value(least.seconds / kernel.best_seconds)}};
}

}  // namespace

Report measure_kernels(const KernelOptions& options) {
  ops::register_all_ops();
  std::vector<Kernel> kernels;
  std::vector<std::string> names;
  const cost::Machine machine =
      driver::machine_of(driver::choose_target(codegen::NativeCompiler::load(), driver::CompileOptions().target));
  for (const KernelCase& what : kernel_cases(cost::lanes_of(machine, DataType::float_(32)))) {
    names.push_back(what.name);
    if (what.name.find(options.only) != std::string::npos) kernels.push_back(make_kernel(what, options.threads));
  }
  if (kernels.empty())
    throw_user_error("no kernel is named like '{}'; there are {}", options.only, fmt::join(names, ", "));
  const double seconds = options.probe_seconds;
  cost::Limits limits = cost::probe_limits(options.threads, seconds);
  for (int round = 0; round < options.rounds; ++round) {
    for (Kernel& kernel : kernels) run_round(kernel);
    limits.gflops = std::max(limits.gflops, cost::fma_gflops(options.threads, seconds / 10));
  }
  Array<Value> reports;
  for (const Kernel& kernel : kernels) reports.push_back(Value(report_of(kernel, limits)));
  return {{"threads", Value(int64_t{options.threads})},
          {"weights", Value(std::string("hot"))},
          {"fma_gflops", Value(limits.gflops)},
          {"l2_gigabytes", Value(limits.memory[0].gigabytes)},
          {"l3_gigabytes", Value(limits.memory[1].gigabytes)},
          {"dram_gigabytes", Value(limits.memory[2].gigabytes)},
          {"kernels", Value(reports)}};
}

}  // namespace headrace::bench
