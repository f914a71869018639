// headrace compile: a model file to an artifact.
#include <malloc.h>

#include <filesystem>
#include <iostream>

#include "base/count_of.h"
#include "base/reason_name.h"
#include "codegen/native.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/placing.h"
#include "driver/plugins.h"
#include "tools/headrace/backend_constants.h"
#include "tools/headrace/cpu_needs.h"
#include "tools/headrace/op_counts.h"
#include "tools/headrace/options.h"
#include "tools/headrace/output.h"
#include "tools/headrace/pass_note.h"
#include "tools/headrace/program_pages.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"
#include "tools/headrace/usage.h"
#include "pass/instruments.h"
#include "runtime/thread_pool.h"

namespace headrace::tools {

namespace {

struct CompileState {
  ModelOptions model;
  std::string output;
  std::string dump_tir;
  std::string dump_folder;
  bool time_passes = false, verify_each = false;
};

Report report_of(const driver::CompileReport& compiled, const std::string& path, const OpCounts& counts) {
  const artifact::Program& program = compiled.manifest.programs.front();
  int64_t weight_bytes = 0;
  for (const artifact::Weight& weight : compiled.manifest.weights) weight_bytes += weight.nbytes;
  Map<std::string, double> seconds;
  for (const driver::StageTime& stage : compiled.stages) seconds.set(stage.stage, stage.seconds);
  return {{"output", Value(path)},
          {"bytes", Value(compiled.artifact_bytes)},
          {"steps", Value(static_cast<int64_t>(program.graph.steps.size()))},
          {"ops", Value(counts_report(counts))},
          {"cost_source", compiled.cost_source.empty() ? Value() : Value(compiled.cost_source)},
          {"weight_bytes", Value(weight_bytes)},
          {"backend_constants", to_value(backend_constants(compiled.manifest))},
          {"side_file", compiled.manifest.side_file ? Value(compiled.manifest.side_file->name) : Value()},
          {"arena_bytes", Value(artifact::arena_bytes(program.memory))},
          {"cpu", Value(program.target.cpu)},
          {"seconds", Value(seconds)}};
}

Map<std::string, double> pass_seconds(const pass::TimingInstrument& timing) {
  Map<std::string, double> seconds;
  for (const auto& row : timing.rows()) seconds.set(row.pass, row.seconds);
  return seconds;
}

// Reads the model. Its files are then all that the compile reads, because a side file of weights must replace none of
// them.
driver::Model read_model(const CompileState& state, const driver::CompileOptions& options, const Common& common) {
  if (state.output == "-")
    throw UsageError("--output: an artifact is not text for the standard output; name a file, such as model.so");
  driver::Model model = driver::load_model(state.model.path, state.model.load_options(options));
  FileUses uses = state.model.files(common);
  uses.add_inputs("the model", model.files);
  uses.add_output("--output", state.output);
  if (!state.dump_folder.empty()) uses.add_output("--dump-ir", state.dump_folder + "/" + pass::kDumpedProgram);
  uses.check();
  model.files = uses.inputs();
  return model;
}

Array<Value> list_of(const std::vector<pass::PassNote>& notes) {
  Array<Value> list;
  for (const pass::PassNote& note : notes) {
    list.push_back(Value(Report{{"reason", Value(static_cast<int64_t>(note.reason))},
                                {"reason_name", Value(std::string(reason_name(note.reason)))},
                                {"pass", Value(note.pass)},
                                {"message", Value(note.message)},
                                {"place", note.span ? Value(to_string(note.span)) : Value()}}));
  }
  return list;
}

// Prints what the file is good for, before a user copies it to a machine that cannot run it. The whole list of features
// is for inspect.
void print_use(const driver::CompileReport& compiled, const std::string& path) {
  if (driver::is_text(driver::module_format(path))) {
    print_out("it holds the kernels alone; what runs a model is a .so or .o\n");
    return;
  }
  constexpr size_t kMostNamed = 6;
  const artifact::Target& target = compiled.manifest.programs.front().target;
  print_out("it needs {}{}\n", shown(cpu_needs(target, kMostNamed)),
            why_not_here(target).empty() ? "" : ", which this machine does not have");
}

// Makes freed weights leave the process: blocks from this size on have mappings of their own. By default glibc raises
// its threshold to the size of freed blocks, and its heap keeps the memory of tensors below it: the compile of
// BERT-base then needs 714 MiB and not 591. That of Inception v3 needs 155 MiB, and 166 from 1 MiB on, because many of
// its weights are smaller.
void return_freed_weights() {
  constexpr int kLeastReturnedBytes = 128 << 10;
  mallopt(M_MMAP_THRESHOLD, kLeastReturnedBytes);
}

// Returns program pages before each stage of a large model's compile: LLVM's before the model is read, and those of the
// passes before LLVM compiles kernels beside the weights. Small models are left out, because it takes 15 ms.
void return_pages_between_stages(const std::string& path, driver::CompileOptions& options) {
  constexpr uintmax_t kLargeModelBytes = 32 << 20;
  std::error_code error;
  const uintmax_t nbytes = std::filesystem::file_size(path, error);
  if (error || nbytes < kLargeModelBytes) return;
  codegen::NativeCompiler::load();
  return_program_pages();
  options.progress = [shown = options.progress](std::string_view stage, int index, int count) {
    return_program_pages();
    if (shown) shown(stage, index, count);
  };
}

// Says which backends of --plugin were not asked, because nothing names them.
void note_unused_plugins(const driver::CompileReport& compiled, const driver::CompileOptions& options,
                         const Common& common) {
  for (const std::string& path : common.plugins) {
    const std::string name = driver::load_plugin(path);
    const std::vector<std::string>& named = options.backends;
    const auto& used = compiled.manifest.backends;
    if (name.empty() || std::find(named.begin(), named.end(), name) != named.end() ||
        std::any_of(used.begin(), used.end(), [&](const artifact::Backend& one) { return one.name == name; }))
      continue;
    const std::string remedy = options.plan.empty() ? fmt::format("--backends {} gives it ops", shown(name))
                                                    : std::string("the plan gives it none");
    fmt::print(stderr, "note: the backend '{}' of {} computes nothing here; {}\n", shown(name), shown(path), remedy);
  }
}

// Says where a backend failed when it was asked, so that native code computes what it may take.
void note_failed_questions(const artifact::Manifest& manifest) {
  int64_t count = 0;
  std::string first;
  for (const artifact::Program& program : manifest.programs) {
    for (const artifact::Placement& one : program.placement) {
      if (one.reason != HR_REASON_BACKEND_FAILED) continue;
      if (++count == 1) first = one.message;
    }
  }
  if (count == 0) return;
  fmt::print(stderr, "note: a backend failed when it was asked about {} (headrace explain lists them): {}\n",
             count_of(count, "op"), shown(first));
}

int compile(const CompileState& state, const Common& common) {
  return_freed_weights();
  driver::CompileOptions options = state.model.compile_options(common);
  options.verify_each = state.verify_each;
  if (!state.dump_folder.empty())
    options.passes.instruments.push_back(pass::make_dump_folder_instrument(state.dump_folder, driver::write_text));
  const auto timing = std::make_shared<pass::TimingInstrument>();
  if (state.time_passes) options.passes.instruments.push_back(timing);
  options.dump_tir = state.dump_tir;
  return_pages_between_stages(state.model.path, options);
  const driver::CompileReport compiled =
      driver::compile_to_file(read_model(state, options, common), state.output, options);
  const OpCounts counts = count_ops(compiled.manifest, options);
  Report report = report_of(compiled, state.output, counts);
  if (!compiled.notes.empty()) report.set("notes", Value(list_of(compiled.notes)));
  if (state.time_passes) report.set("pass_seconds", Value(pass_seconds(*timing)));
  if (common.json) {
    std::cout << to_json(report);
    return HR_OK;
  }
  for (const pass::PassNote& note : compiled.notes) fmt::print(stderr, "{}\n", shown(to_text(note)));
  note_unused_plugins(compiled, options, common);
  note_failed_questions(compiled.manifest);
  double total = 0;
  for (const driver::StageTime& stage : compiled.stages) total += stage.seconds;
  print_out("{}: {}, {} for {}, weights {}, arena {}, compiled in {}\n", shown(state.output),
            show_bytes(compiled.artifact_bytes), count_of(report.at("steps").as<int64_t>(), "step"),
            report.at("cpu").as<std::string>(), show_bytes(report.at("weight_bytes").as<int64_t>()),
            show_bytes(report.at("arena_bytes").as<int64_t>()), show_seconds(total));
  if (counts.size() > 1) print_out("{}\n", shown(tools::to_text(counts)));
  if (const std::string added = to_text(backend_constants(compiled.manifest)); !added.empty()) print_out("{}\n", added);
  if (!compiled.cost_source.empty()) print_out("costs are {}\n", shown(compiled.cost_source));
  print_use(compiled, state.output);
  if (compiled.manifest.side_file)
    print_out("its weights are in {}, which must stay beside it\n", shown(compiled.manifest.side_file->name));
  if (state.time_passes) print_out("{}", timing->report());
  return HR_OK;
}

}  // namespace

Verb add_compile(CLI::App& app, const Common& common) {
  auto state = std::make_shared<CompileState>();
  CLI::App* verb = app.add_subcommand("compile", "Compile a model to one native file");
  state->model.add_to(*verb, "The model: .onnx or relay text (.relay)");
  takes_path(
      verb->add_option("-o,--output", state->output,
                       "The artifact to write, such as model.so; model.o is an object file with the same contents, "
                       "model.ll, model.s and model.c are its kernels as LLVM text, as assembly and as C")
          ->required(),
      "FILE");
  takes(verb->add_option("--threads", state->model.threads,
                         "Threads that the artifact runs with unless told otherwise (0: one a processor)"),
        {0, runtime::kMaxWorkers, 2});
  takes_path(verb->add_option("--dump-ir", state->dump_folder,
                              "A folder for the Relay program and, for each pass, the lines that it changed"),
             "DIR");
  verb->add_flag("--time-passes", state->time_passes, "Show how long each pass took");
  verb->add_flag("--verify-each", state->verify_each, "Check the rules of the IR after each pass");
  takes_path(verb->add_option("--dump-tir", state->dump_tir,
                              "A folder for the loops of each kernel as text, before (NAME.lowered.tir) and after the "
                              "passes"),
             "DIR");
  verb->footer("Example: headrace compile resnet50.onnx -o resnet50.so --shape data=1,3,224,224");
  return [state, &common] { return compile(*state, common); };
}

}  // namespace headrace::tools
