// headrace verify: the compiled model against the reference interpreter in float64, beside another runtime.
#include <cmath>
#include <iostream>

#include "tools/headrace/error_measure.h"
#include "tools/headrace/index_limits.h"
#include "tools/headrace/output.h"
#include "tools/headrace/peer.h"
#include "tools/headrace/session.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/tensors.h"
#include "interp/interp.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

struct VerifyState {
  ModelOptions model;
  std::string against;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  int threads = 1;
  std::optional<double> limit;
};

// What rounding alone may do to a network: a few units in the last place of the coarsest output.
double default_limit(const std::vector<NDArray>& outputs) {
  double limit = 1e-5;
  for (const NDArray& output : outputs) {
    if (output.dtype().is_bfloat16()) limit = std::max(limit, 4 * 0x1p-8);
    if (output.dtype() == DataType::float_(16)) limit = std::max(limit, 4 * 0x1p-11);
  }
  return limit;
}

using Tensors = std::map<std::string, NDArray>;

// What a model leaves open is as in the file of the input.
void add_shapes(const VerifyState& state, const Tensors& given, driver::LoadOptions& load) {
  if (given.empty() || !state.model.path.ends_with(".onnx")) return;
  for (const driver::ModelPort& port : driver::read_ports(state.model.path).inputs) {
    const auto file = given.find(port.name);
    if (file == given.end() || load.bound.contains(port.name)) continue;
    if (!port.is_fixed()) load.shapes.emplace(port.name, file->second.shape());
  }
}

std::vector<NDArray> make_inputs(const VerifyState& state, const IRModule& module,
                                 const std::vector<artifact::TensorSpec>& specs, const Tensors& given) {
  if (!given.empty()) return in_order(specs, given);
  const std::vector<int64_t> limits = index_limits(module);
  std::vector<NDArray> inputs;
  for (size_t i = 0; i < specs.size(); ++i) inputs.push_back(random_tensor(specs[i], state.seed, limits.at(i)));
  return inputs;
}

void print_verdict(const std::vector<std::vector<std::string>>& rows, bool ok, double limit) {
  std::cout << to_table(rows);
  fmt::print("{}: the error is {} the limit {:.3g}\n", ok ? "ok" : "MISMATCH", ok ? "within" : "above", limit);
}

int verify(const VerifyState& state, const Common& common) {
  if (!state.against.empty()) Peer::require(state.against, state.model.path);  // before the work
  const Tensors given = read_named(state.inputs);
  driver::LoadOptions load = state.model.load_options();
  add_shapes(state, given, load);
  const driver::Model model = driver::load_model(state.model.path, load);
  const auto artifact =
      driver::open_compiled(driver::compile_to_memory(model, state.model.compile_options(common)), state.model.path);
  const auto executor = load::make_executor(artifact, artifact::kDefaultProgram, state.threads);
  const auto& specs = executor->runner().program().inputs;
  const std::vector<NDArray> inputs = make_inputs(state, model.module, specs, given);
  const std::vector<NDArray> ours = load::run(*executor, inputs);
  const std::vector<NDArray> reference =
      interp::run_main(model.module, inputs, {.precision = interp::Precision::float64});
  const double our_error = relative_error(reference, ours);
  double limit = state.limit.value_or(default_limit(ours));
  Report report{{"model", Value(state.model.path)}, {"error", Value(our_error)}};
  std::vector<std::vector<std::string>> rows{{"runtime", "error against float64"},
                                             {"headrace", fmt::format("{:.3g}", our_error)}};
  if (!state.against.empty()) {
    std::map<std::string, NDArray> all = load.bound;  // what is a constant to us is an input to the peer
    for (size_t i = 0; i < inputs.size(); ++i) all.emplace(model.inputs[i], inputs[i]);
    Peer peer(state.against, state.model.path, all, state.threads);
    const double peer_error = relative_error(reference, peer.run());
    // A peer that is wrong altogether gives no leave to be.
    if (std::isfinite(peer_error)) limit = std::max(limit, 2 * peer_error);
    report.set("peer", Value(state.against + " " + peer.version()));
    report.set("peer_error", Value(peer_error));
    rows.push_back({state.against + " " + peer.version(), fmt::format("{:.3g}", peer_error)});
  }
  const bool ok = our_error <= limit;
  report.set("limit", Value(limit));
  report.set("ok", Value(ok));
  if (common.json) {
    std::cout << to_json(report);
  } else {
    print_verdict(rows, ok, limit);
  }
  return ok ? HR_OK : HR_MISMATCH;
}

}  // namespace

Verb add_verify(CLI::App& app, const Common& common) {
  auto state = std::make_shared<VerifyState>();
  CLI::App* verb = app.add_subcommand("verify", "Check a compiled model against the reference interpreter");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  takes_word(verb->add_option("--against", state->against,
                              "Another runtime: its error is shown, and ours may be twice as large"),
             "peer", {"onnxruntime"});
  verb->add_option(
          "--input,-i", state->inputs,
          "An input from a .npy file, which also says the shape that the model leaves open (default: random ones)")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  takes(verb->add_option("--seed", state->seed, "Of the random inputs"), {0, INT64_MAX, 1})->capture_default_str();
  takes(verb->add_option("--threads", state->threads, "Threads of both"), {1, runtime::kMaxWorkers, 2})
      ->capture_default_str();
  takes_size(verb->add_option("--limit", state->limit,
                              "Largest error allowed, relative to the largest element of an output (default: 1e-5; "
                              "0.002 for float16 outputs, 0.016 for bfloat16)"),
             "1e-4");
  verb->footer(
      "The reference computes in float64. Exit code 5 when the error is above the limit, and above twice the peer's.\n"
      "Example: headrace verify model.onnx --shape x=1,3,224,224 --against onnxruntime");
  return [state, &common] { return verify(*state, common); };
}

}  // namespace headrace::tools
