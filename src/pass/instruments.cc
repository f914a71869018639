#include "pass/instruments.h"

#include <chrono>
#include <cstring>
#include <filesystem>

#include "pass/text_diff.h"
#include "relay/text/print.h"
#include "tir/print.h"

namespace headrace::pass {

namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Returns the functions of `module` that are nodes of type F, in a module of their own.
template <typename F>
IRModule only(const IRModule& module) {
  const IRModule shown = snapshot(module);
  shown->set_functions({});
  for (const auto& [var, function] : module->functions()) {
    if (function.template is<F>()) shown->add_function(var, function);
  }
  return shown;
}

// Returns the text of a module; functions of tir follow those of relay, in their own text form. `constants`: as
// relay::PrintOptions::weights.
std::string text_of(const IRModule& module, std::vector<NDArray>* constants = nullptr) {
  const IRModule loops = only<tir::PrimFuncNode>(module);
  const bool all_loops = !loops->functions().empty() && loops->functions().size() == module->functions().size();
  std::string text;
  if (!all_loops)
    text = relay::print_module(only<relay::FunctionNode>(module), {.show_meta_data = false, .weights = constants});
  if (!loops->functions().empty()) text += tir::print_module(loops);
  return text;
}

// Returns what a pass changed; empty for nothing. A constant has one number on both sides.
std::string changes_between(const IRModule& before, const IRModule& after) {
  if (before == after) return "";
  std::vector<NDArray> constants;
  const std::string text = text_of(before, &constants);
  return diff_texts(text, text_of(after, &constants));
}

class DumpInstrument : public PassInstrument {
 public:
  DumpInstrument(Dump dump, TextSink sink) : dump_(dump), sink_(std::move(sink)) {}
  std::string name() const override { return "dump"; }

  void enter_pass_ctx() override { before_.enter_run(); }
  void exit_pass_ctx() override { before_.exit_run(); }
  void run_before_pass(const IRModule& module, const PassInfo&) override { before_.push(module); }
  void run_after_pass(const IRModule& module, const PassInfo& info) override {
    const IRModule before = before_.pop();
    if (dump_ == Dump::all) return sink_(fmt::format("// ---- after {}\n{}", info.name, text_of(module)));
    const std::string diff = changes_between(before, module);
    sink_(fmt::format("// ---- {}: {}\n{}", info.name, diff.empty() ? "no change" : "changed", diff));
  }

 private:
  Dump dump_;
  TextSink sink_;
  RunningPasses<IRModule> before_;
};

class VerifyInstrument : public PassInstrument {
 public:
  explicit VerifyInstrument(std::function<void(const IRModule&)> verify) : verify_(std::move(verify)) {}
  std::string name() const override { return "verify"; }
  void run_after_pass(const IRModule& module, const PassInfo& info) override {
    try {
      verify_(module);
    } catch (const Error& error) {
      throw InternalError(fmt::format("after pass {}: {}", info.name, error.message()), error.where());
    }
  }

 private:
  std::function<void(const IRModule&)> verify_;
};

class DumpFolderInstrument : public PassInstrument {
 public:
  DumpFolderInstrument(const std::string& folder, FileWriter write) : folder_(folder), write_(std::move(write)) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder_, ignored))
      throw_user_error("'{}' cannot be made a folder to dump the program into: {}", folder,
                       error ? error.message() : "it is a file");
  }
  std::string name() const override { return "dump folder"; }
  void enter_pass_ctx() override { before_.enter_run(); }
  void exit_pass_ctx() override { before_.exit_run(); }

  void run_before_pass(const IRModule& module, const PassInfo&) override {
    if (count_ == 0) write(kDumpedProgram, text_of(module));
    ++count_;
    before_.push({module, count_});
  }

  void run_after_pass(const IRModule& module, const PassInfo& info) override {
    const Running run = before_.pop();
    // The last pass of a sequence has written the sequence's changes already.
    const bool is_written = count_ > run.number && module == last_;
    last_ = module;
    const std::string diff = is_written ? "" : changes_between(run.before, module);
    if (!diff.empty()) write(fmt::format("{:02}_{}.diff", run.number, info.name), diff);
  }

 private:
  struct Running {
    IRModule before;
    int number = 0;
  };

  void write(const std::string& name, const std::string& text) const { write_((folder_ / name).string(), text); }

  std::filesystem::path folder_;
  FileWriter write_;
  RunningPasses<Running> before_;
  IRModule last_;  // after the pass that ended last
  int count_ = 0;
};

}  // namespace

std::shared_ptr<PassInstrument> make_dump_folder_instrument(const std::string& folder, FileWriter write) {
  return std::make_shared<DumpFolderInstrument>(folder, std::move(write));
}

std::shared_ptr<PassInstrument> make_verify_instrument(std::function<void(const IRModule&)> verify) {
  return std::make_shared<VerifyInstrument>(std::move(verify));
}

std::shared_ptr<PassInstrument> make_dump_instrument(Dump dump, TextSink sink) {
  return std::make_shared<DumpInstrument>(dump, std::move(sink));
}

void TimingInstrument::run_before_pass(const IRModule&, const PassInfo&) { begins_.push(now_s()); }

void TimingInstrument::run_after_pass(const IRModule&, const PassInfo& info) {
  const double seconds = now_s() - begins_.pop();
  const auto same = [&](const Row& row) { return row.pass == info.name; };
  auto row = std::find_if(rows_.begin(), rows_.end(), same);
  if (row == rows_.end()) row = rows_.insert(rows_.end(), {info.name, 0, 0});
  row->seconds += seconds;
  ++row->runs;
}

std::string TimingInstrument::report() const {
  std::string text = fmt::format("{:<28} {:>10} {:>6}\n", "pass", "ms", "runs");
  for (const Row& row : rows_) text += fmt::format("{:<28} {:>10.2f} {:>6}\n", row.pass, row.seconds * 1e3, row.runs);
  return text;
}

}  // namespace headrace::pass
