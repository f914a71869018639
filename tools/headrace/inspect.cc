// headrace inspect: what is in an artifact, without running or mapping anything of it.
#include <iostream>
#include <map>
#include <optional>
#include <set>

#include "base/count_of.h"
#include "base/reason_name.h"
#include "artifact/artifact_file.h"
#include "driver/model.h"
#include "driver/output_file.h"
#include "tools/headrace/backend_constants.h"
#include "tools/headrace/cpu_needs.h"
#include "tools/headrace/graph_dot.h"
#include "tools/headrace/graph_report.h"
#include "tools/headrace/op_counts.h"
#include "tools/headrace/output.h"
#include "tools/headrace/session.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/timed_model.h"
#include "tools/headrace/usage.h"
#include "tools/html/page.h"
#include "runtime/cpu_features.h"
#include "base/descriptor.h"

namespace headrace::tools {

namespace {

using artifact::Program;

struct InspectState {
  std::string path;
  std::string page;   // a file for the page; empty: none
  std::string dot;    // a file for the graph in DOT; empty: none
  std::string times;  // a file of step times; empty: none
  bool steps = false;
};

// "float32 batch=1 x 3 x 224 x 224", or "float32 1x3x224x224" if no dimension has a name.
std::string describe_named(const artifact::TensorSpec& spec) {
  if (spec.dims.empty()) return describe(spec);
  std::vector<std::string> sizes;
  for (size_t i = 0; i < spec.shape.size(); ++i)
    sizes.push_back(fmt::format("{}{}{}", spec.dims[i], spec.dims[i].empty() ? "" : "=", spec.shape[i]));
  return fmt::format("{} {}", spec.dtype.to_string(), fmt::join(sizes, " x "));
}

Array<Value> specs_of(const std::vector<artifact::TensorSpec>& specs) {
  Array<Value> list;
  for (const artifact::TensorSpec& spec : specs) {
    Array<std::string> dims(spec.dims.begin(), spec.dims.end());
    while (dims.size() < spec.shape.size()) dims.push_back("");
    list.push_back(Value(Report{{"name", Value(spec.name)},
                                {"dtype", Value(spec.dtype.to_string())},
                                {"shape", Value(Shape(spec.shape.begin(), spec.shape.end()))},
                                {"location", Value(artifact::to_string(spec.location))},
                                {"dims", Value(dims)}}));
  }
  return list;
}

// The axis of output i whose size only a run tells, if it has one.
std::optional<int64_t> bounded_axis(const Program& program, size_t i) {
  for (const artifact::BoundedOutput& bounded : program.bounded_outputs) {
    if (static_cast<size_t>(bounded.output) == i) return bounded.axis;
  }
  return std::nullopt;
}

Array<Value> bounded_outputs_of(const Program& program) {
  Array<Value> list;
  for (const artifact::BoundedOutput& bounded : program.bounded_outputs) {
    const std::string& name = program.outputs[static_cast<size_t>(bounded.output)].name;
    list.push_back(Value(Report{{"output", Value(name)}, {"axis", Value(bounded.axis)}}));
  }
  return list;
}

// The functions that are not in the file's own code, sorted: external modules or the process provide them.
std::set<std::string> imports_of(const Program& program) {
  std::set<std::string> names;
  for (const artifact::Step& step : program.graph.steps) {
    if (const auto* call = std::get_if<artifact::ExternalCall>(&step.action)) names.insert(call->function);
  }
  return names;
}

Array<Value> placement_of(const Program& program) {
  Array<Value> placement;
  for (const artifact::Placement& one : program.placement) {
    placement.push_back(Value(Report{{"op", Value(one.op)},
                                     {"kind", Value(one.kind)},
                                     {"backend", Value(one.backend)},
                                     {"reason", Value(static_cast<int64_t>(one.reason))},
                                     {"reason_name", Value(std::string(reason_name(one.reason)))},
                                     {"message", Value(one.message)},
                                     {"region", one.region.empty() ? Value() : Value(one.region)}}));
  }
  return placement;
}

Array<Value> notes_of(const Program& program) {
  Array<Value> notes;
  for (const artifact::CompileNote& note : program.notes) {
    notes.push_back(Value(Report{{"pass", Value(note.pass)},
                                 {"op", Value(note.op)},
                                 {"reason", Value(static_cast<int64_t>(note.reason))},
                                 {"reason_name", Value(std::string(reason_name(note.reason)))},
                                 {"message", Value(note.message)}}));
  }
  return notes;
}

// Returns for each step the bytes of the arenas that hold values: written by this step or before, and read by this step
// or after. The others of the arenas are free.
std::vector<int64_t> alive_bytes(const Program& program) {
  const artifact::GraphProgram& graph = program.graph;
  std::map<int64_t, std::pair<size_t, size_t>> uses;  // the first and the last step, by storage
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    for (const auto arg : graph.steps[i].args) {
      const artifact::Entry& entry = graph.entries[static_cast<size_t>(arg)];
      if (entry.place == artifact::Place::kStorage) uses.emplace(entry.index, std::pair(i, i)).first->second.second = i;
    }
  }
  std::vector<int64_t> alive(graph.steps.size(), 0);
  for (const auto& [storage, range] : uses) {
    for (size_t i = range.first; i <= range.second; ++i)
      alive[i] += program.memory.storages[static_cast<size_t>(storage)].nbytes;
  }
  return alive;
}

Array<Value> steps_of(const Program& program) {
  Array<Value> steps;
  const std::vector<int64_t> alive = alive_bytes(program);
  for (const artifact::Step& step : program.graph.steps) {
    steps.push_back(Value(Report{{"kind", Value(std::string(artifact::name_of(step.action)))},
                                 {"callee", Value(artifact::callee_of(step.action))},
                                 {"op", Value(step.op)},
                                 {"operations", Value(step.operations)},
                                 {"bytes", Value(bytes_of(program.graph, step))},
                                 {"arena_bytes", Value(alive[static_cast<size_t>(steps.size())])}}));
  }
  return steps;
}

Report report_of(const Program& program, const artifact::Manifest& manifest, const MeasuredSteps& measured) {
  const std::vector<std::string> missing =
      runtime::missing_features(program.target.features, runtime::host_cpu_features());
  const std::set<std::string> imports = imports_of(program);
  return {{"name", Value(program.name)},
          {"region", program.region.empty() ? Value() : Value(program.region)},
          {"inputs", Value(specs_of(program.inputs))},
          {"outputs", Value(specs_of(program.outputs))},
          {"bounded_outputs", Value(bounded_outputs_of(program))},
          {"triple", Value(program.target.triple)},
          {"cpu", Value(program.target.cpu)},
          {"features", Value(Array<std::string>(program.target.features.begin(), program.target.features.end()))},
          {"features_missing_here", Value(Array<std::string>(missing.begin(), missing.end()))},
          {"imports", Value(Array<std::string>(imports.begin(), imports.end()))},
          {"compiler", Value(program.compiler)},
          {"kernel_abi", Value(program.kernel_abi)},
          {"arena_bytes", Value(artifact::arena_bytes(program.memory))},
          {"workspace_bytes", Value(program.memory.workspace_bytes)},
          {"placement", Value(placement_of(program))},
          {"notes", Value(notes_of(program))},
          {"steps", Value(steps_of(program))},
          {"graph", Value(graph_report(program, manifest, measured))}};
}

Value side_file_of(const artifact::Manifest& manifest) {
  if (!manifest.side_file) return {};
  return Value(Report{{"name", Value(manifest.side_file->name)},
                      {"bytes", Value(manifest.side_file->nbytes)},
                      {"xxh3_128", Value(manifest.side_file->hash)}});
}

Array<Value> regions_of(const artifact::Manifest& manifest) {
  Array<Value> list;
  for (const artifact::Region& region : manifest.regions) {
    list.push_back(Value(Report{{"name", Value(region.name)},
                                {"backend", Value(region.backend)},
                                {"fallback", region.fallback.empty() ? Value() : Value(region.fallback)}}));
  }
  return list;
}

void print_parts(const artifact::Manifest& manifest) {
  if (const std::string added = to_text(backend_constants(manifest)); !added.empty()) print_out("{}\n", added);
  if (manifest.side_file)
    print_out("weights in {}, {}, which must lie beside this file; it needs the runtime\n",
              shown(manifest.side_file->name), show_bytes(manifest.side_file->nbytes));
  for (const artifact::ExternalModule& module : manifest.modules)
    print_out("external module of kind {}, in {}\n", shown(module.loader), shown(module.section));
  for (const artifact::Region& region : manifest.regions)
    print_out("region {} by {}{}\n", shown(region.name), shown(region.backend),
              region.fallback.empty() ? ", which cannot run natively"
                                      : fmt::format(", natively as the program {}", shown(region.fallback)));
}

// Prints how many ops each backend computes, and what the compiler left undone.
void print_decisions(const Program& program) {
  for (const auto& [backend, count] : count_ops(program.placement)) {
    print_out("  {} {}\n", count_of(count, "op"),
              backend == "external" ? "by functions of the process or of modules" : "by " + shown(backend));
  }
  for (const artifact::CompileNote& note : program.notes)
    print_out("  note: {}{}: {}\n", shown(note.pass), note.op.empty() ? "" : " at " + shown(note.op),
              shown(note.message));
}

void print_steps(const Program& program) {
  std::vector<std::vector<std::string>> rows{{"step", "kind", "calls", "op", "operations", "bytes", "arena in use"}};
  const std::vector<int64_t> alive = alive_bytes(program);
  for (size_t i = 0; i < program.graph.steps.size(); ++i) {
    const artifact::Step& step = program.graph.steps[i];
    rows.push_back({std::to_string(i), std::string(artifact::name_of(step.action)), artifact::callee_of(step.action),
                    step.op, step.operations > 0 ? std::to_string(step.operations) : "-",
                    show_bytes(bytes_of(program.graph, step)), show_bytes(alive[i])});
  }
  std::cout << to_table(rows);
}

void print_program(const Program& program, bool with_steps) {
  if (!program.region.empty() && !with_steps) return;  // its region's line names it
  print_out("program {}: {}, arena {}, workspace {} a thread\n", shown(program.name),
            count_of(std::ssize(program.graph.steps), "step"), show_bytes(artifact::arena_bytes(program.memory)),
            show_bytes(program.memory.workspace_bytes));
  print_out("  made by Headrace {} for {} ({})\n", shown(program.compiler), shown(program.target.cpu),
            shown(program.target.triple));
  print_out("  needs {}\n", shown(cpu_needs(program.target, program.target.features.size())));
  print_decisions(program);
  for (const std::string& name : imports_of(program))
    print_out("  needs the function {} of an external module or of the process that runs it\n", shown(name));
  if (const std::string why_not = why_not_here(program.target); !why_not.empty())
    print_out("  cannot run here: {}\n", shown(why_not));
  for (const auto& spec : program.inputs) print_out("  input  {}: {}\n", shown(spec.name), shown(describe_named(spec)));
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const auto axis = bounded_axis(program, i);
    print_out("  output {}: {}{}\n", shown(program.outputs[i].name), shown(describe_named(program.outputs[i])),
              axis ? fmt::format(", the size of axis {} depends on the data", *axis) : "");
  }
  if (!with_steps) return;
  print_steps(program);
}

Report report_of(const InspectState& state, const artifact::ArtifactFile& opened, int64_t weight_bytes) {
  const artifact::Manifest& manifest = opened.manifest;
  const Program* timed = artifact::find_program(manifest, artifact::kDefaultProgram);
  if (timed == nullptr && !state.times.empty())
    throw_user_error("--times: '{}' has no program '{}'", state.path, artifact::kDefaultProgram);
  Array<Value> programs, modules;
  for (const Program& program : manifest.programs) {
    const bool is_timed = !state.times.empty() && &program == timed;
    const MeasuredSteps measured = is_timed ? read_step_times(state.times, program) : MeasuredSteps();
    programs.push_back(Value(report_of(program, manifest, measured)));
  }
  for (const auto& module : manifest.modules) modules.push_back(Value(module.loader));
  return {{"file", Value(state.path)},
          {"bytes", Value(opened.nbytes)},
          {"weights", Value(static_cast<int64_t>(manifest.weights.size()))},
          {"weight_bytes", Value(weight_bytes)},
          {"backend_constants", to_value(backend_constants(manifest))},
          {"side_file", side_file_of(manifest)},
          {"external_modules", Value(modules)},
          {"regions", Value(regions_of(manifest))},
          {"default_threads", Value(int64_t{manifest.default_threads})},
          {"pipeline_stages", Value(manifest.pipeline ? std::ssize(manifest.pipeline->stages) : 0)},
          {"programs", Value(programs)}};
}

void write_dot(const InspectState& state, const artifact::Manifest& manifest) {
  const Program* program = artifact::find_program(manifest, artifact::kDefaultProgram);
  if (program == nullptr) throw_user_error("'{}' has no program that could be drawn", state.path);
  driver::write_text(state.dot, to_dot(graph_report(*program, manifest, {}), state.path));
}

void check_files(const InspectState& state, const artifact::Manifest& manifest, const Common& common) {
  FileUses uses;
  add_artifact(uses, state.path, manifest);
  uses.add_inputs("the list of times", {state.times});
  uses.add_inputs("a backend", common.plugins);
  uses.add_output("--html", state.page);
  uses.add_output("--dot", state.dot);
  uses.check();
}

Value dim_value(const driver::ModelDim& dim) {
  if (dim.value >= 0) return Value(dim.value);
  return dim.symbol.empty() ? Value() : Value(dim.symbol);
}

Array<Value> ports_of(const std::vector<driver::ModelPort>& ports) {
  Array<Value> list;
  for (const driver::ModelPort& port : ports) {
    Array<Value> shape;
    for (const driver::ModelDim& dim : port.shape) shape.push_back(dim_value(dim));
    list.push_back(Value(Report{
        {"name", Value(port.name)}, {"dtype", Value(port.dtype)}, {"shape", port.has_shape ? Value(shape) : Value()}}));
  }
  return list;
}

// "float32 batch x 1 x ? x 8": an open dimension is its name, or a question mark.
std::string port_text(const driver::ModelPort& port) {
  if (!port.has_shape) return port.dtype + " of any shape";
  if (port.shape.empty()) return port.dtype + " scalar";
  std::vector<std::string> dims;
  for (const driver::ModelDim& dim : port.shape)
    dims.push_back(dim.value >= 0 ? std::to_string(dim.value) : dim.symbol.empty() ? "?" : dim.symbol);
  return fmt::format("{} {}", port.dtype, fmt::join(dims, " x "));
}

// Shows the inputs and outputs that an ONNX model declares.
int inspect_model(const InspectState& state, const Common& common) {
  if (state.steps || !state.page.empty() || !state.dot.empty() || !state.times.empty())
    throw_user_error(
        "'{}' is a model, and has no steps before it is compiled: headrace compile {} -o model.so; headrace explain "
        "draws its graph",
        state.path, state.path);
  const driver::ModelPorts ports = driver::read_ports(state.path);
  if (common.json) {
    std::cout << to_json({{"file", Value(state.path)},
                          {"inputs", Value(ports_of(ports.inputs))},
                          {"outputs", Value(ports_of(ports.outputs))}});
    return HR_OK;
  }
  print_out("{}: a model; compile it first to see what is in an artifact: headrace compile {} -o model.so\n",
            shown(state.path), shown(state.path));
  for (const driver::ModelPort& port : ports.inputs)
    print_out("  input  {}: {}\n", shown(port.name), shown(port_text(port)));
  for (const driver::ModelPort& port : ports.outputs)
    print_out("  output {}: {}\n", shown(port.name), shown(port_text(port)));
  return HR_OK;
}

int inspect(const InspectState& state, const Common& common) {
  if (driver::find_model_format(state.path) == driver::ModelFormat::onnx) return inspect_model(state, common);
  refuse_model(state.path);
  if (!state.times.empty() && state.page.empty() && !common.json)
    throw UsageError("--times: only --html and --json show times; add one of them");
  const Descriptor file = Descriptor::open(state.path).value_or_throw();
  const artifact::ArtifactFile opened = artifact::read_artifact_file(file.number(), state.path).value_or_throw();
  const artifact::Manifest& manifest = opened.manifest;
  check_files(state, manifest, common);
  if (manifest.pipeline && !state.page.empty())
    throw_user_error("'{0}' is a pipeline, whose stages are drawn by: headrace pipeline inspect {0} --html {1}",
                     state.path, state.page);
  int64_t weight_bytes = 0;
  for (const artifact::Weight& weight : manifest.weights) weight_bytes += weight.nbytes;
  if (!state.page.empty()) {
    driver::write_text(state.page, html::make_page(html::inspect_page(), shown(state.path),
                                                   to_compact_json(report_of(state, opened, weight_bytes))));
  }
  if (!state.dot.empty()) write_dot(state, manifest);
  if (common.json) {
    std::cout << to_json(report_of(state, opened, weight_bytes));
    return HR_OK;
  }
  print_out("{}: {}, {} of {}, {}\n", shown(state.path), show_bytes(opened.nbytes),
            count_of(std::ssize(manifest.weights), "weight"), show_bytes(weight_bytes),
            count_of(std::ssize(manifest.modules), "external module"));
  print_parts(manifest);
  if (manifest.pipeline)
    print_out("a pipeline of {}, which headrace pipeline inspect shows\n",
              count_of(std::ssize(manifest.pipeline->stages), "stage"));
  for (const Program& program : manifest.programs) print_program(program, state.steps);
  return HR_OK;
}

}  // namespace

Verb add_inspect(CLI::App& app, const Common& common) {
  auto state = std::make_shared<InspectState>();
  CLI::App* verb = app.add_subcommand("inspect", "Show what is in an artifact, or the inputs and outputs of a model");
  verb->add_option("artifact", state->path, "The artifact, as headrace compile writes it, or an ONNX model")
      ->required()
      ->type_name("FILE");
  verb->add_flag(
      "--steps", state->steps,
      "List the steps: which kernel computes which op of the model, an estimate of its operations, the bytes of the "
      "tensors that it reads and writes, and the part of the arena that holds values during it");
  takes_path(
      verb->add_option("--html", state->page,
                       "A file for a page that shows the steps as a graph; it needs no other file and no network"),
      "FILE");
  takes_path(verb->add_option("--dot", state->dot, "A file for the steps as a graph in DOT, the language of Graphviz"),
             "FILE");
  takes_path(
      verb->add_option("--times", state->times,
                       "The times of the steps, as headrace bench --steps --json prints them, for --html and --json"),
      "FILE");
  verb->footer(
      "Example: headrace inspect model.so --steps\n"
      "         headrace inspect model.onnx");
  return [state, &common] { return inspect(*state, common); };
}

}  // namespace headrace::tools
