// headrace profile: measures the ops of a model natively and by backends, for placement by cost.
#include "driver/profile.h"

#include <unistd.h>

#include <cstdio>

#include "driver/output_file.h"
#include "runtime/thread_pool.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

struct ProfileState {
  ModelOptions model;
  std::string output;
  int rounds = 30;
  int threads = 1;
};

int profile(const ProfileState& state, const Common& common) {
  driver::CompileOptions options = state.model.compile_options(common);
  options.threads = state.threads;
  driver::Model model = driver::load_model(state.model.path, state.model.load_options(options));
  for (std::string& file : files_of("--bind", state.model.bound)) model.files.push_back(std::move(file));
  driver::check_no_input(state.output, model.files, "the model");
  driver::ProfileOptions profiling{.rounds = state.rounds};
  if (options.progress) {
    profiling.progress = [](size_t index, size_t count) {
      fmt::print(stderr, "\r\033[K[{}/{}]{}", index + 1, count, index + 1 == count ? "\r\033[K" : "");
      std::fflush(stderr);
    };
  }
  const partition::CostTable table = driver::profile(model, options, profiling);
  driver::write_text(state.output, partition::to_json(table));
  if (common.json) {
    std::cout << to_json({{"output", Value(state.output)},
                          {"cpu", Value(table.cpu)},
                          {"threads", Value(table.threads)},
                          {"costs", Value(static_cast<int64_t>(table.costs.size()))}});
  } else {
    print_out("{}: {} costs of calls on {}, {} thread(s)\n", shown(state.output), table.costs.size(), table.cpu,
              table.threads);
  }
  return HR_OK;
}

}  // namespace

Verb add_profile(CLI::App& app, const Common& common) {
  auto state = std::make_shared<ProfileState>();
  CLI::App* verb = app.add_subcommand("profile", "Measure each op of a model natively and by backends, for --costs");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  takes_path(
      verb->add_option("-o,--output", state->output, "The table of costs to write, such as costs.json")->required(),
      "FILE");
  takes(verb->add_option("--rounds", state->rounds, "Runs of each op, of which the best counts")->capture_default_str(),
        {1, 100'000, 30});
  takes(verb->add_option("--threads", state->threads, "Threads that run the ops")->capture_default_str(),
        {1, runtime::kMaxWorkers, 2});
  verb->footer("Example: headrace profile resnet50.onnx --backends ccompiler -o costs.json");
  return [state, &common] { return profile(*state, common); };
}

}  // namespace headrace::tools
