// headrace-opt: runs passes on Relay text or on loop programs and prints the result.
#include <headrace/status.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "base/read_text.h"
#include "driver/all_passes.h"
#include "driver/model.h"
#include "driver/output_file.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "pass/config.h"
#include "pass/instruments.h"
#include "pass/round_trip.h"
#include "passes/fuse/fuse_borders.h"
#include "relay/expr.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/text/weights_file.h"
#include "relay/verify.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"
#include "tools/headrace/file_uses.h"
#include "tools/headrace/option_text.h"
#include "tools/headrace/pass_note.h"
#include "tools/headrace/report_failure.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/usage.h"

namespace headrace {

namespace {

constexpr const char* kDescription =
    "Runs passes on a program and prints the result as text: a Relay program (its text form, or an ONNX model), or a "
    "loop\n"
    "program (tir), which says so in its first line, #[tir_version = \"1\"].\n\n"
    "The program is checked, typed, and given to the passes in the order they are named; `canonical` and `native`,\n"
    "and `kernel` for a loop program, stand for the compiler's own lists. A name may be written FoldConstant or\n"
    "fold_constant. A pass that is named by itself runs at every --opt-level, one of a list up to its level. Without\n"
    "--passes the program is only read and printed again. The standard error shows what a pass left undone, and why.";

constexpr const char* kExamples =
    "examples:\n"
    "  headrace-opt model.relay --passes canonical,native --target llvm -o fused.relay\n"
    "  headrace-opt model.relay --passes fold_constant,fuse_ops --dump-diff\n"
    "  headrace-opt model.relay --passes canonical --disable-pass FoldScaleAxis --time-passes\n"
    "  headrace-opt model.relay --passes fuse_ops --config relay.FuseOps.max_depth=4\n"
    "  headrace-opt model.relay --passes fuse_ops --explain-fusion -o fused.relay\n"
    "  headrace-opt model.relay -p ConvertLayout --config \"relay.ConvertLayout.desired_layouts=nn.conv2d=NHWC,OHWI\"\n"
    "  headrace-opt model.onnx --shape x=1,3,224,224 -o model.relay --weights model.safetensors\n"
    "  headrace-opt model.relay --input-weights model.safetensors -p canonical --hide-data --show-types\n"
    "  headrace-opt kernel.lowered.tir --passes vectorize_loop,unroll_loop --verify-each\n"
    "  headrace-opt --list-passes\n\n"
    "exit codes: 0 ok, 1 a defect of ours, 2 a wrong command line, 3 a wrong input, output or name of a pass";

struct Request {
  std::string input;
  std::vector<std::string> shapes, dims;  // for an ONNX model: "x=1,3,224,224", "batch=1"
  std::string output = "-";
  std::string weights, input_weights;  // files of the constants' data
  std::string passes;
  std::string target;
  std::vector<std::string> disabled, required, config;
  int opt_level = 3;
  int64_t max_depth = 0;
  bool verify_each = false, verify_text = false, dump_diff = false, print_after_all = false, time = false, list = false,
       hide_data = false, show_types = false, explain_fusion = false;
};

void add_options(CLI::App& app, Request& r) {
  app.footer(kExamples);
  app.add_option("input", r.input,
                 "the program, a file of Relay text or a .onnx model; - is the standard input (text)");
  app.add_option("--shape", r.shapes, "shape of an ONNX model's input, as x=1,3,224,224; may be repeated")
      ->type_name("NAME=DIMS")
      ->allow_extra_args(false);
  app.add_option("--dim", r.dims, "size of a dimension that an ONNX model names, as batch=1; once a dimension")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  app.add_option("--input-weights", r.input_weights, "data of the text's constants, where it is not in the text")
      ->type_name("FILE");
  app.add_option("-o,--output", r.output, "where the result goes; - is the standard output")->capture_default_str();
  app.add_option("--weights", r.weights,
                 "where the data of large constants goes, each content once (safetensors); without it, into the text")
      ->type_name("FILE");
  app.add_option("-p,--passes", r.passes, "names with commas between, in the order they run");
  app.add_option("--target", r.target,
                 "the machine that native passes see, as `headrace compile --target` takes it: llvm is this one; "
                 "without it, vectors of 256 bits, whatever machine this is")
      ->type_name("TARGET");
  tools::takes_passes(app.add_option("--disable-pass,--disable", r.disabled, tools::kDisablePassHelp));
  tools::takes_passes(app.add_option("--require-pass,--require", r.required,
                                     "Passes of the lists that run at every level, by name, with commas between"));
  app.add_option("--config", r.config,
                 "an option of a pass (--list-passes), as relay.FuseOps.max_depth=4; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  tools::takes_opt_level(app.add_option("-O,--opt-level", r.opt_level, tools::kOptLevelHelp))->capture_default_str();
  tools::takes(app.add_option("--max-depth", r.max_depth, "op calls a group that FuseOps makes; 1: each op by itself"),
               {1, INT64_MAX, 1});
  app.add_flag("--explain-fusion", r.explain_fusion,
               "show on the standard error why FuseOps stopped where it did: op | its readers: reason");
  app.add_flag("--verify-each", r.verify_each, "check the rules of the IR after each pass");
  app.add_flag("--verify-text", r.verify_text,
               "print the program before and after each pass, read its text and JSON back, and compare");
  app.add_flag("--dump-diff", r.dump_diff, "show on the standard error what each pass changed");
  app.add_flag("--print-after-all", r.print_after_all, "show on the standard error the program after each pass");
  app.add_flag("--time-passes,--time", r.time, "show on the standard error how long each pass took");
  app.add_flag("--hide-data", r.hide_data, "leave the data of large constants out; the text cannot be read again")
      ->excludes("--weights");
  app.add_flag("--show-types", r.show_types, "write the type of each expression behind it, as a comment");
  app.add_flag("--list-passes", r.list, "print the passes, the options of each below it, and stop");
  app.set_version_flag("--version", HEADRACE_VERSION);
}

void write_all(const std::string& path, std::string_view text) {
  if (path != "-") return driver::write_text(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw_user_error("the standard output cannot be written to");
}

// How a kind of program is checked and written.
struct Language {
  driver::Ir ir;
  std::function<IRModule(const IRModule&)> infer_type;  // empty: nothing is inferred
  std::function<void(const IRModule&)> verify;
};

Language relay_language() {
  return {driver::Ir::relay, [](const IRModule& module) { return relay::infer_type(module); },
          [](const IRModule& module) { relay::verify(module); }};
}

Language tir_language() {
  return {driver::Ir::tir, {}, [](const IRModule& module) { tir::verify(module); }};
}

struct Program {
  Language language;
  IRModule module;
};

Program read_program(const Request& r) {
  if (!r.shapes.empty() || !r.dims.empty())
    throw_user_error("'{}' is text, which says its shapes; {} is for ONNX models", r.input,
                     r.shapes.empty() ? "--dim" : "--shape");
  const bool is_piped = r.input == "-";
  const std::string text = is_piped ? read_standard_input() : read_text(r.input, "program");
  const std::string source = is_piped ? "<stdin>" : r.input;
  if (tir::is_tir_text(text)) {
    if (!r.input_weights.empty() || !r.weights.empty())
      throw_user_error("'{}' is a loop program, which has no weights beside it", r.input);
    return {tir_language(), tir::parse_module(text, source)};
  }
  relay::ParseOptions options;
  if (!is_piped) options.import_paths = {std::filesystem::path(r.input).parent_path()};
  if (r.input_weights.empty()) return {relay_language(), relay::parse_module(text, source, options)};
  const std::vector<NDArray> weights = relay::read_weights(r.input_weights);
  options.weights = &weights;
  return {relay_language(), relay::parse_module(text, source, options)};
}

Program read_input(const Request& r) {
  if (!r.input.ends_with(".onnx")) return read_program(r);
  const driver::LoadOptions options{
      .shapes = tools::parse_shapes(r.shapes), .dims = tools::parse_dims(r.dims), .weights = r.input_weights};
  return {relay_language(), driver::load_model(r.input, options).module};
}

// Before the work: no output may replace an input, or another output.
void check_outputs(const Request& r) {
  if (r.weights == "-") throw UsageError("--weights: weights are not text for the standard output; name a file");
  tools::FileUses uses;
  if (r.input != "-") uses.add_inputs("the program", {r.input});
  uses.add_inputs("the data of constants", {r.input_weights});
  if (r.output != "-") uses.add_output("--output", r.output);
  uses.add_output("--weights", r.weights);
  uses.check();
}

void write_output(const Request& r, const Program& program) {
  if (program.language.ir == driver::Ir::tir) return write_all(r.output, tir::print_module(program.module));
  if (r.weights.empty())
    return write_all(r.output,
                     relay::print_module(program.module, {.show_meta_data = !r.hide_data, .show_types = r.show_types}));
  std::vector<NDArray> weights;
  const std::string text = relay::print_module(program.module, {.weights = &weights, .show_types = r.show_types});
  driver::OutputFile file(r.weights);
  relay::write_weights(file.descriptor(), r.weights, weights);
  file.commit();
  write_all(r.output, text);
}

void require(const std::string& given, const Language& language, const driver::PassList& list,
             pass::PassContext& context) {
  const pass::PassInfo& info = driver::get_pass(given, language.ir).info;
  const auto is_it = [&](const pass::Pass& pass) { return pass.info.name == info.name; };
  if (std::none_of(list.passes.begin(), list.passes.end(), is_it))
    throw_user_error("pass {} is required and not among those that --passes names", info.name);
  if (context.is_disabled(info)) throw_user_error("pass {} is both required and disabled", info.name);
  context.required_pass.push_back(info.name);
}

// Writes to the standard error where FuseOps will stop, a line each.
class FusionExplainer : public pass::PassInstrument {
 public:
  explicit FusionExplainer(const passes::FuseOptions& options) : options_(options) {}
  std::string name() const override { return "explain-fusion"; }
  void run_before_pass(const IRModule& module, const pass::PassInfo& info) override {
    if (info.name != "FuseOps") return;
    for (const passes::FuseBorder& border : passes::find_fuse_borders(module, options_)) {
      std::vector<std::string_view> users;
      for (const Expr& user : border.users) users.push_back(name_of_op(user));
      fmt::print(stderr, "{}: {}{}{}: {}: {}\n", to_string(border.producer->span), name_of_op(border.producer),
                 users.empty() ? "" : " | ", fmt::join(users, ", "), passes::name_of_fuse_reason(border.code),
                 border.message);
    }
  }

 private:
  static std::string_view name_of_op(const Expr& call) { return call.as<relay::CallNode>()->as_op()->name; }
  passes::FuseOptions options_;
};

void explain_fusion(const driver::PassList& list, pass::PassContext& context) {
  if (std::none_of(list.passes.begin(), list.passes.end(),
                   [](const auto& pass) { return pass.info.name == "FuseOps"; }))
    throw_user_error("--explain-fusion is about FuseOps, which is not among the passes that --passes names");
  context.instruments.push_back(std::make_shared<FusionExplainer>(passes::fuse_options(context)));
}

pass::PassContext make_context(const Request& r, const Language& language, const driver::PassList& list,
                               const std::shared_ptr<pass::TimingInstrument>& timing) {
  pass::PassContext context;
  context.opt_level = r.opt_level;
  for (const std::string& name : r.disabled)
    context.disabled_pass.push_back(driver::get_pass(name, language.ir).info.name);
  for (const std::string& name : list.named) {
    if (!context.is_disabled(driver::get_pass(name, language.ir).info)) context.required_pass.push_back(name);
  }
  for (const std::string& name : r.required) require(name, language, list, context);
  context.config = tools::parse_config(r.config);
  context.infer_type = language.infer_type;
  context.note = pass::each_once(
      [](const pass::PassNote& note) { fmt::print(stderr, "{}\n", tools::shown(tools::to_text(note))); });
  if (r.verify_each) context.instruments.push_back(pass::make_verify_instrument(language.verify));
  if (r.max_depth > 0) context.config.set("relay.FuseOps.max_depth", Value(r.max_depth));
  const auto sink = [](std::string_view text) { fmt::print(stderr, "{}", text); };
  if (r.explain_fusion) explain_fusion(list, context);
  if (r.verify_text) context.instruments.push_back(pass::make_round_trip_instrument());
  if (r.dump_diff) context.instruments.push_back(pass::make_dump_instrument(pass::Dump::diff, sink));
  if (r.print_after_all) context.instruments.push_back(pass::make_dump_instrument(pass::Dump::all, sink));
  if (r.time) context.instruments.push_back(timing);
  return context;
}

// Its options below it, by the keys that --config takes.
void list_pass(const pass::PassInfo& info) {
  std::cout << fmt::format("{:<24} level {}  {}\n", info.name, info.opt_level, info.summary);
  for (const pass::ConfigKey& option : info.options) {
    const std::string standard = option.default_text.empty() ? "" : "; default " + option.default_text;
    std::cout << fmt::format("    relay.{}.{} ({}): {}{}\n", info.name, option.name, option.kind, option.doc, standard);
  }
}

void list_passes() {
  for (const driver::Ir ir : {driver::Ir::relay, driver::Ir::tir}) {
    for (const pass::Pass& pass : driver::all_passes(ir)) list_pass(pass.info);
  }
}

// Returns the machine that passes see.
cost::Machine machine_for(const Request& r, const Language& language) {
  if (r.target.empty()) return {};
  if (language.ir == driver::Ir::tir)
    throw_user_error("'{}' is a loop program, whose passes see no machine; --target is for Relay", r.input);
  return driver::machine_of(driver::choose_target(codegen::NativeCompiler::load(), parse_target(r.target)));
}

int run(const Request& r) {
  driver::register_all();
  if (r.list) {
    list_passes();
    return tools::finish_output(HR_OK);
  }
  if (r.input.empty()) {
    throw UsageError("no input: name a file of Relay text or a .onnx model, or - for the standard input");
  }
  check_outputs(r);
  Program program = read_input(r);
  const Language& language = program.language;
  if (r.show_types && !language.infer_type)
    throw_user_error("'{}' is a loop program, whose text has its types; --show-types is for Relay", r.input);
  const driver::PassList list = driver::parse_pass_list(r.passes, language.ir, machine_for(r, language));
  const auto timing = std::make_shared<pass::TimingInstrument>();
  const pass::PassContext context = make_context(r, language, list, timing);
  language.verify(program.module);
  if (!list.passes.empty()) {
    if (language.infer_type) program.module = language.infer_type(program.module);
    program.module = pass::run_passes(list.passes, program.module, context);
  }
  if (r.show_types) program.module = language.infer_type(program.module);
  write_output(r, program);
  if (r.time) fmt::print(stderr, "{}", timing->report());
  return HR_OK;
}

}  // namespace

}  // namespace headrace

int main(int argc, char** argv) {
  using namespace headrace;
  CLI::App app(kDescription, "headrace-opt");
  Request request;
  add_options(app, request);
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      // Help and version are "errors" of code 0.
      if (e.get_exit_code() != 0) throw;
      return tools::finish_output(app.exit(e));
    }
    return run(request);
  } catch (const CLI::ParseError& e) {
    return tools::report_usage("headrace-opt", "headrace-opt --help", tools::usage_message(app, e));
  } catch (const UsageError& e) {
    return tools::report_usage("headrace-opt", "headrace-opt --help", e.what());
  } catch (const std::exception& e) {
    return tools::report_failure("headrace-opt", e);
  }
}
