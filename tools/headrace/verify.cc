// headrace verify: compares a compiled model with the reference interpreter in float64, and with another runtime.
#include <algorithm>
#include <iostream>

#include "driver/placing.h"
#include "tools/headrace/comparison.h"
#include "tools/headrace/fallback_option.h"
#include "tools/headrace/index_limits.h"
#include "tools/headrace/input_options.h"
#include "tools/headrace/layers.h"
#include "tools/headrace/op_counts.h"
#include "tools/headrace/output.h"
#include "tools/headrace/peer_options.h"
#include "tools/headrace/region_check.h"
#include "tools/headrace/session.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tolerance_options.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/tensors.h"
#include "interp/interp.h"
#include "ops/qnn/quantize.h"
#include "ops/qnn/requantize.h"
#include "relay/visit.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

struct VerifyState {
  ModelOptions model;
  PeerOptions peer;
  InputOptions inputs;
  std::string artifact;  // empty: the model is compiled
  int threads = 1;
  ToleranceOptions tolerance;
  FallbackOption fallback;
  bool no_bisection = false;
  bool layers = false;
};

using Tensors = std::map<std::string, NDArray>;

// The result of comparing all outputs and all regions, the peer that was compared with ("onnxruntime 1.31.1"; empty if
// none), and which op of a backend is to blame, where that was looked for.
struct Verdict {
  std::vector<OutputComparison> outputs;
  std::string peer;
  std::optional<Bisection> bisection = {};
  RegionCheck regions = {};
  OpCounts ops = {};            // numbers of ops by backend; empty where none is named
  Array<Value> fallbacks = {};  // regions that fell back to native code
  std::string fallback_text = {};
  bool is_quantized = false;                                 // the program rounds floats to integers by a scale
  interp::Precision precision = interp::Precision::float64;  // in which the interpreter computed

  bool outputs_are_ok() const {
    return std::all_of(outputs.begin(), outputs.end(), [](const auto& one) { return one.ok(); });
  }
  bool ok() const { return outputs_are_ok() && regions.ok(); }
};

// Fixes the shapes that an ONNX model leaves open to those of the artifact's inputs.
void add_shapes(const VerifyState& state, const std::vector<artifact::TensorSpec>& inputs, driver::LoadOptions& load) {
  if (!is_onnx(state.model.path) || !load.dims.empty()) return;
  for (const driver::ModelPort& port : driver::read_ports(state.model.path).inputs) {
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const auto& one) { return one.name == port.name; });
    if (input == inputs.end() || load.bound.contains(port.name) || port.is_fixed()) continue;
    load.shapes.emplace(port.name, Shape(input->shape.begin(), input->shape.end()));
  }
}

// "x (float32 1x8x8), y (int64 3)": inputs with these names, dtypes and shapes.
std::string inputs_text(const std::vector<artifact::TensorSpec>& inputs) {
  std::vector<std::string> texts;
  for (const artifact::TensorSpec& input : inputs) texts.push_back(fmt::format("{} ({})", input.name, describe(input)));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

// Throws UserError unless the artifact's inputs and outputs are those of the model, whose shapes are fixed.
void check_made_from(const VerifyState& state, const executors::Executor& executor, const driver::Model& model) {
  const auto main = model.module->lookup("main").cast<relay::FunctionNode>();
  std::vector<artifact::TensorSpec> inputs;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const auto* type = main->params[i]->checked_type().as<TensorTypeNode>();
    const std::optional<Shape> shape = type == nullptr ? std::nullopt : as_shape(type->shape);
    if (!shape)
      throw_user_error("--artifact: input '{}' of the model must be a tensor of a fixed shape", model.inputs[i]);
    inputs.push_back({.name = model.inputs[i], .dtype = type->dtype, .shape = {shape->begin(), shape->end()}});
  }
  if (const std::string made = inputs_text(executor.inputs()), wanted = inputs_text(inputs); made != wanted)
    throw_user_error("'{}' is not made from this model: it has the inputs {}, and the model has {}", state.artifact,
                     made, wanted);
  std::vector<std::string> outputs;
  for (const artifact::TensorSpec& output : executor.outputs()) outputs.push_back(output.name);
  if (outputs != model.outputs)
    throw_user_error("'{}' is not made from this model: it has the outputs {}, and the model has {}", state.artifact,
                     fmt::join(outputs, ", "), fmt::join(model.outputs, ", "));
}

// Throws UsageError for options of a compile, because there is none.
void check_artifact_options(const VerifyState& state) {
  if (state.artifact.empty()) return;
  if (state.layers) throw UsageError("--layers: needs a compile of its own; leave --artifact out");
  std::vector<std::string> names = state.model.given();
  std::erase_if(names, [](const std::string& name) {
    return name == "--shape" || name == "--dim" || name == "--bind" || name == "--input-weights" ||
           name == "--backends";
  });
  if (!names.empty()) throw UsageError(fmt::format("{}: is for a compile; --artifact is compiled already", names[0]));
}

bool all_near_float64(const std::vector<OutputComparison>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const auto& one) { return one.is_near_float64(); });
}

// Compares the regions of a model that was compiled with these options. An error of the outputs that no region explains
// is looked for by compiles of the whole model.
void look_into_regions(const VerifyState& state, const driver::CompileOptions& options, const driver::Model& model,
                       const std::vector<NDArray>& inputs, const load::Artifact& artifact, const OutputSets& sets,
                       Verdict& verdict) {
  if (artifact.manifest().regions.empty()) return;
  verdict.regions = check_regions(model, inputs,
                                  {.compile = options,
                                   .regions = artifact.manifest().regions,
                                   .tolerance = state.tolerance.read(),
                                   .threads = state.threads,
                                   .bisects = !state.no_bisection});
  verdict.bisection = verdict.regions.bisection;
  if (all_near_float64(verdict.outputs) || !verdict.regions.ok() || state.no_bisection) return;
  verdict.bisection = find_guilty_op({.model = model,
                                      .options = options,
                                      .inputs = inputs,
                                      .sets = sets,
                                      .tolerance = state.tolerance.read(),
                                      .threads = state.threads,
                                      .is_right = &all_near_float64});
}

// Returns whether the program rounds floats to integers by a scale.
bool is_quantized(const IRModule& module) {
  bool found = false;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(Expr(function), [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      found |= call != nullptr && (call->attrs.is<ops::QuantizeAttrs>() || call->attrs.is<ops::RequantizeAttrs>());
    });
  }
  return found;
}

// A quantized value that lies in the middle between two integers in float32 may not do so in float64, and is another
// integer then. So such a program is also right where it computes what the interpreter does in the model's own dtypes.
void compare_in_own_dtypes(const VerifyState& state, const IRModule& module, const std::vector<NDArray>& inputs,
                           OutputSets sets, Verdict& verdict) {
  sets.reference = interp::run_main(module, inputs);
  std::vector<OutputComparison> outputs = compare_outputs(sets, state.tolerance.read());
  if (!all_near_float64(outputs)) return;
  verdict.outputs = std::move(outputs);
  verdict.precision = interp::Precision::declared;
}

Verdict compare(const VerifyState& state, const Common& common) {
  driver::CompileOptions options = state.model.compile_options(common);
  options.threads = state.threads;
  driver::LoadOptions load = state.model.load_options(options);
  add_shapes_of_files(state.model.path, state.inputs.files(), load);
  std::shared_ptr<executors::Executor> executor;
  if (!state.artifact.empty()) {
    executor = load::make_executor(open_artifact(state.artifact), artifact::kDefaultProgram,
                                   {.threads = state.threads, .fallback = state.fallback.read()});
    add_shapes(state, executor->inputs(), load);
  }
  driver::Model model = driver::load_model(state.model.path, load);
  if (state.layers) model = with_all_values(model);
  std::shared_ptr<const load::Artifact> compiled;
  if (executor == nullptr) {
    compiled = driver::open_compiled(driver::compile_to_memory(model, options), state.model.path);
    executor = load::make_executor(compiled, artifact::kDefaultProgram,
                                   {.threads = state.threads, .fallback = state.fallback.read()});
  } else {
    check_made_from(state, *executor, model);
  }
  const std::vector<NDArray> inputs = state.inputs.read(executor->inputs(), index_limits(model.module));
  OutputSets sets;
  for (const artifact::TensorSpec& output : executor->outputs()) sets.names.push_back(output.name);
  sets.ours = load::run(*executor, inputs);
  sets.reference = interp::run_main(model.module, inputs, {.precision = interp::Precision::float64});
  Verdict verdict;
  if (state.peer.is_given()) {
    Tensors all = load.bound;  // our constants are inputs to the peer
    for (size_t i = 0; i < inputs.size(); ++i) all.emplace(model.inputs[i], inputs[i]);
    const auto peer = state.peer.start(state.model.path, all, state.threads);
    sets.peer = peer->run();
    verdict.peer = fmt::format("{} {}", state.peer.name, peer->version());
  }
  verdict.outputs = compare_outputs(sets, state.tolerance.read());
  verdict.is_quantized = is_quantized(model.module);
  if (verdict.is_quantized && !all_near_float64(verdict.outputs))
    compare_in_own_dtypes(state, model.module, inputs, sets, verdict);
  verdict.fallbacks = fallbacks_report(*executor);
  verdict.fallback_text = fallbacks_text(*executor);
  if (compiled != nullptr && !driver::possible_backends(options).empty())
    verdict.ops = count_ops(compiled->manifest(), options);
  if (compiled != nullptr) look_into_regions(state, options, model, inputs, *compiled, sets, verdict);
  return verdict;
}

// Returns the first value of the model that is wrong, where all were compared; null if none is.
const OutputComparison* first_wrong(const VerifyState& state, const Verdict& verdict) {
  const auto wrong = std::find_if(verdict.outputs.begin(), verdict.outputs.end(),
                                  [](const OutputComparison& one) { return !one.is_near_float64(); });
  return !state.layers || wrong == verdict.outputs.end() ? nullptr : &*wrong;
}

void add_errors(Report& report, const OutputComparison& output) {
  report.set("error", Value(output.error));
  report.set("limit", Value(output.limit));
  if (output.peer_error) {
    report.set("peer_error", Value(*output.peer_error));
    report.set("difference", Value(output.difference));
    report.set("difference_limit", Value(output.difference_limit));
  }
}

Report bisection_report(const Verdict& verdict) {
  const std::string& region = verdict.regions.guilty_region;
  Report report{{"region", region.empty() ? Value() : Value(region)}};
  for (const auto& [key, value] : report_of(*verdict.bisection)) report.set(key, value);
  return report;
}

Report report_of(const VerifyState& state, const Verdict& verdict) {
  Report report{{"model", Value(state.model.path)}};
  if (!verdict.peer.empty()) report.set("peer", Value(verdict.peer));
  add_errors(report, worst_of(verdict.outputs));
  report.set("ok", Value(verdict.ok()));
  report.set("reference", Value(std::string(verdict.precision == interp::Precision::float64 ? "float64" : "declared")));
  Array<Value> outputs;
  for (const OutputComparison& output : verdict.outputs) {
    Report one{{"name", Value(output.name)}, {"dtype", Value(output.dtype.to_string())}};
    add_errors(one, output);
    one.set("ok", Value(output.ok()));
    outputs.push_back(Value(one));
  }
  report.set("outputs", Value(outputs));
  const OutputComparison* first = first_wrong(state, verdict);
  report.set("first_wrong", first == nullptr ? Value() : Value(first->name));
  report.set("ops", Value(counts_report(verdict.ops)));
  report.set("regions", Value(regions_report(verdict.regions)));
  report.set("fallbacks", Value(verdict.fallbacks));
  report.set("bisection", verdict.bisection ? Value(bisection_report(verdict)) : Value());
  return report;
}

void print_regions(const RegionCheck& check) {
  if (check.regions.empty()) return;
  std::vector<std::vector<std::string>> rows{{"region", "backend", "error on its inputs", "limit", "result"}};
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  for (const ComparedRegion& one : check.regions)
    rows.push_back({one.name, one.backend, one.worst ? number(one.worst->error) : "-",
                    one.worst ? number(one.worst->limit) : "-",
                    !one.is_right && one.worst ? "MISMATCH"
                    : !one.is_right            ? "FAILED: " + one.note
                    : !one.note.empty()        ? "not compared: " + one.note
                                               : "ok"});
  std::cout << to_table(rows);
  if (!check.ok()) print_out("MISMATCH: {}\n", explain(check));
}

void print_verdict(const VerifyState& state, const Verdict& verdict) {
  const bool has_peer = !verdict.peer.empty();
  const std::string unit = state.tolerance.read().elementwise ? ", in tolerances" : "";
  const char* reference = verdict.precision == interp::Precision::float64 ? "float64" : "the model's own dtypes";
  std::vector<std::vector<std::string>> rows{
      {"output", "dtype", fmt::format("error against {}{}", reference, unit), "limit"}};
  if (has_peer)
    rows[0].insert(rows[0].end(), {"error of " + verdict.peer, "difference from " + state.peer.name, "limit"});
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  for (const OutputComparison& one : verdict.outputs) {
    rows.push_back({one.name, one.dtype.to_string(), number(one.error), number(one.limit)});
    if (has_peer)
      rows.back().insert(rows.back().end(),
                         {number(*one.peer_error), number(one.difference), number(one.difference_limit)});
  }
  std::cout << to_table(rows);
  const OutputComparison& worst = worst_of(verdict.outputs);
  print_out("{}: the error is {} the limit {:.3g}", verdict.outputs_are_ok() ? "ok" : "MISMATCH",
            worst.is_near_float64() ? "within" : "above", worst.limit);
  if (has_peer)
    print_out(", the difference from {} is {} the limit {:.3g}", state.peer.name,
              worst.is_near_peer() ? "within" : "above", worst.difference_limit);
  print_out("{}\n", verdict.outputs.size() > 1 ? fmt::format(" (output {})", shown(worst.name)) : "");
  if (!verdict.outputs_are_ok()) print_out("{}\n", explain_mismatch(worst, state.peer.name));
  if (has_peer && worst.is_near_float64() && !worst.is_near_peer() && state.peer.has_levels() &&
      state.peer.level.empty())
    print_out(
        "{} may also have rounded in other places, because it fuses operators; --against-level none makes it run the "
        "model as it is written.\n",
        state.peer.name);
  if (!verdict.outputs_are_ok() && verdict.is_quantized)
    print_out(
        "The program is quantized: a value near the middle between two integers may be rounded to either, and "
        "runtimes that fuse quantized ops round less often. Limits of a step of the scale (--rtol, --atol) tell.\n");
  if (const OutputComparison* first = first_wrong(state, verdict))
    print_out("The first value that is too far from float64: {}\n", shown(first->name));
  if (!verdict.ops.empty()) print_out("{}\n", to_text(verdict.ops));
  print_regions(verdict.regions);
  if (verdict.regions.regions.empty()) std::cout << verdict.fallback_text;
  if (verdict.bisection) print_out("{}\n", explain(*verdict.bisection));
}

int verify(const VerifyState& state, const Common& common) {
  if (is_artifact(state.model.path))
    throw_user_error(
        "'{}' is a compiled artifact; give the model that it was made from, and the artifact by --artifact",
        state.model.path);
  check_artifact_options(state);
  if (state.layers && state.peer.is_given())
    throw UsageError("--layers: other runtimes do not show their values; leave --against out");
  state.peer.require(state.model.path);  // before the work
  state.inputs.require();
  const Verdict verdict = compare(state, common);
  if (common.json) {
    std::cout << to_json(report_of(state, verdict));
  } else {
    print_verdict(state, verdict);
  }
  return verdict.ok() ? HR_OK : HR_MISMATCH;
}

constexpr const char* kVerifyFooter =
    "The float64 interpreter runs the imported program, so it finds what is compiled wrongly; onnxruntime reads the\n"
    "model itself, so it also finds what is imported wrongly. The error of an output is its largest difference, "
    "relative\n"
    "to the largest element of the output in float64; with --rtol or --atol, each difference relative to the\n"
    "tolerance of its element, so that the limit is 1. Limits without these options:\n"
    "  ours to float64       2 x the error of onnxruntime, at least 1e-5 and at most 1e-3 for float32 outputs\n"
    "                        (1e-12 and 1e-3 for float64, 0.002 and 0.02 for float16, 0.016 and 0.1 for bfloat16);\n"
    "                        without --against the lower of the two; integers and bools must be equal\n"
    "  ours to the other     our error + the largest of: 4 x our error; the lower number above; and 4 units in the "
    "last\n"
    "                        place of 1, relative to the largest element, up to 10 x the lower number. At most the\n"
    "                        higher number above\n"
    "Shapes that an ONNX model leaves open are taken from the files of inputs, but not from images.\n"
    "Each region that a backend computes is also compared with the interpreter, on the inputs that it has in the\n"
    "interpreter's run: ops after a region can hide its fault from the outputs. Its limits are those of outputs, or\n"
    "twice the error of native code on these inputs. A region that its backend does not run is a failure.\n"
    "The exit code is 5 if an error is above its limit or a region failed. If a region is wrong, or the outputs are "
    "and ops run on\n"
    "backends, some ops are compiled natively in turn, until the op that causes the error is found.\n"
    "Example: headrace verify model.onnx --shape x=1,3,224,224 --against onnxruntime\n"
    "         headrace verify model.onnx --artifact model.so --rtol 1e-3 --atol 1e-5";

}  // namespace

Verb add_verify(CLI::App& app, const Common& common) {
  auto state = std::make_shared<VerifyState>();
  CLI::App* verb = app.add_subcommand("verify", "Check a compiled model against the interpreter and another runtime");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  state->peer.add_to(*verb, "Another runtime that reads the model itself; our outputs must be near its outputs, too");
  state->inputs.add_random_to(*verb);
  takes(verb->add_option("--threads", state->threads, "Threads of our model and of the other runtime"),
        {1, runtime::kMaxWorkers, 2})
      ->capture_default_str();
  takes_path(verb->add_option("--artifact", state->artifact,
                              "Check this artifact, which was compiled from the model, in place of a new compile"),
             "FILE");
  state->fallback.add_to(*verb);
  state->tolerance.add_to(*verb,
                          "Largest error allowed in both comparisons of all outputs of floats (default: depends on the "
                          "dtype, see below)");
  verb->add_flag(
      "--no-bisection", state->no_bisection,
      "Do not look for the op that a backend computes wrongly: the search compiles the model about ten times");
  verb->add_flag(
      "--layers", state->layers,
      "Compare every value that the model computes, in order, and name the first that is too far off; each value "
      "becomes an output, so fewer ops are fused");
  verb->footer(kVerifyFooter);
  return [state, &common] { return verify(*state, common); };
}

}  // namespace headrace::tools
