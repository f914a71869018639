// The instruments that the programs offer: they show what each pass changed, and how long it took.
#pragma once

#include "pass/pass.h"

namespace headrace::pass {

// Takes a piece of text for people; a line ends it.
using TextSink = std::function<void(std::string_view)>;

enum class Dump : uint8_t {
  diff,  // the lines that the pass changed (text_diff.h)
  all,   // the whole module
};

// Makes an instrument that gives `sink` the module, or its changes, after each pass, under a heading with the pass's
// name. Relay functions come first, then those of tir; the data of constants is left out.
std::shared_ptr<PassInstrument> make_dump_instrument(Dump dump, TextSink sink);

inline constexpr const char* kDumpedProgram = "00_program.relay";

// Makes an instrument that writes the program, and the changes of each pass, into `folder`, which is made if missing:
//   00_program.relay          before the first pass
//   03_FoldConstant.diff      the lines that the third pass changed; no file where it changed none
// Functions are ordered as above; the data of constants is left out. `write` writes a file and throws UserError, which
// names it, where it cannot. Files of an earlier run stay unless they have the same names.
using FileWriter = std::function<void(const std::string& path, std::string_view text)>;
std::shared_ptr<PassInstrument> make_dump_folder_instrument(const std::string& folder, FileWriter write);

// Checks the rules of the IR after each pass. InternalError naming the pass after which `verify` throws.
std::shared_ptr<PassInstrument> make_verify_instrument(std::function<void(const IRModule&)> verify);

// A stack of an instrument's data about the running passes, the innermost last. A pass may run others. The data of a
// pass that threw is dropped when the pass around it ends.
template <typename T>
class RunningPasses {
 public:
  void enter_run() { begins_.push_back(passes_.size()); }
  void exit_run() {
    passes_.resize(begins_.back());
    begins_.pop_back();
  }
  void push(T pass) { passes_.push_back(std::move(pass)); }
  T pop() {
    T pass = std::move(passes_.back());
    passes_.pop_back();
    return pass;
  }

 private:
  std::vector<T> passes_;
  std::vector<size_t> begins_;  // for each run, the number of passes that were running
};

// Times the passes; nested runs count to themselves and to the pass around them.
class TimingInstrument : public PassInstrument {
 public:
  struct Row {
    std::string pass;
    double seconds = 0;
    int64_t runs = 0;
  };
  std::string name() const override { return "timing"; }
  void enter_pass_ctx() override { begins_.enter_run(); }
  void exit_pass_ctx() override { begins_.exit_run(); }
  void run_before_pass(const IRModule& module, const PassInfo& info) override;
  void run_after_pass(const IRModule& module, const PassInfo& info) override;
  // Returns the rows in the order of the passes' first runs.
  const std::vector<Row>& rows() const { return rows_; }
  // Returns the times as a table for people.
  std::string report() const;

 private:
  std::vector<Row> rows_;
  RunningPasses<double> begins_;
};

}  // namespace headrace::pass
