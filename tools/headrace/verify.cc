// headrace verify: the compiled model against the reference interpreter in float64, beside another runtime.
#include <cmath>
#include <iostream>

#include "tools/headrace/error_measure.h"
#include "tools/headrace/output.h"
#include "tools/headrace/peer.h"
#include "tools/headrace/session.h"
#include "tools/headrace/tensors.h"
#include "interp/interp.h"

namespace headrace::tools {

namespace {

struct State {
  ModelOptions model;
  std::string against;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  int threads = 1;
  double limit = 1e-5;
};

std::vector<NDArray> make_inputs(const State& state, const std::vector<artifact::TensorSpec>& specs) {
  if (!state.inputs.empty()) return read_inputs(specs, state.inputs);
  std::vector<NDArray> inputs;
  for (const artifact::TensorSpec& spec : specs) inputs.push_back(random_tensor(spec, state.seed));
  return inputs;
}

int verify(const State& state, const Common& common) {
  if (!state.against.empty()) Peer::require(state.against);  // before the work
  const driver::Model model = driver::load_model(state.model.path, state.model.load_options());
  driver::CompiledModel compiled = driver::compile_to_memory(model, state.model.compile_options(common));
  const auto artifact = load::open_artifact(std::move(compiled.descriptor), state.model.path);
  if (!artifact) throw UserError(artifact.refusal().message);
  const auto executor = make_executor(artifact.value(), artifact::kDefaultProgram, state.threads);
  const auto& specs = executor->runner().program().inputs;
  const std::vector<NDArray> inputs = make_inputs(state, specs);
  const std::vector<NDArray> ours = load::run(*executor, inputs);
  const std::vector<NDArray> reference =
      interp::run_main(model.module, inputs, {.precision = interp::Precision::float64});
  const double our_error = relative_error(reference, ours);
  double limit = state.limit;
  Report report{{"model", Value(state.model.path)}, {"error", Value(our_error)}};
  std::vector<std::vector<std::string>> rows{{"runtime", "error against float64"},
                                             {"headrace", fmt::format("{:.3g}", our_error)}};
  if (!state.against.empty()) {
    Peer peer(state.against, state.model.path, model.inputs, inputs, state.threads);
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
    std::cout << to_table(rows);
    fmt::print("{}: the error is {} the limit {:.3g}\n", ok ? "ok" : "MISMATCH", ok ? "within" : "above", limit);
  }
  return ok ? kOk : kMismatch;
}

}  // namespace

Verb add_verify(CLI::App& app, const Common& common) {
  auto state = std::make_shared<State>();
  CLI::App* verb = app.add_subcommand("verify", "Check a compiled model against the reference interpreter");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  verb->add_option("--against", state->against, "Another runtime: its error is shown, and ours may be twice as large")
      ->type_name("PEER")
      ->check(CLI::IsMember({"onnxruntime"}));
  verb->add_option("--input,-i", state->inputs, "An input from a .npy file (default: random ones)")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  verb->add_option("--seed", state->seed, "Of the random inputs")->capture_default_str();
  verb->add_option("--threads", state->threads, "Threads of both")->check(CLI::Range(1, 1024))->capture_default_str();
  verb->add_option("--limit", state->limit, "Largest error allowed, relative to the largest element of an output")
      ->check(CLI::Range(0.0, 1e30))
      ->capture_default_str();
  verb->footer(
      "The reference computes in float64. Exit code 5 when the error is above the limit, and above twice the peer's.\n"
      "Example: headrace verify model.onnx --shape x=1,3,224,224 --against onnxruntime");
  return [state, &common] { return verify(*state, common); };
}

}  // namespace headrace::tools
