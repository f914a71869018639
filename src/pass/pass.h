// Pass: a named step from module to module. PassContext: the settings of a run. run_passes: the one runner.
//
// A pass of the project is a plain function behind a small header (passes/fold/fold_constant.h). Its row in its list
// (passes/pipeline.cc, tir_passes/pipeline.cc) gives it a name, a level, a one-line summary, its aliases and its
// options.
#pragma once

#include <headrace/reason.h>

#include "ir/module.h"
#include "pass/config.h"
#include "tensor/ndarray.h"

namespace headrace::pass {

struct PassContext;

// When Relay infers types around its pass of the same name: never, after it, or before and after it.
enum class RelayTyping : uint8_t { none, after, around };

struct PassInfo {
  std::string name;                        // "FoldConstant"
  int32_t opt_level = 0;                   // runs when the context's level is at least this
  std::vector<std::string> required = {};  // passes that run before it each time, see Pass::prerequisites
  std::string summary = {};                // one line: what it does
  std::vector<std::string> aliases = {};   // other names that users know: "PartialEval"
  // Its options, in the order in which a call may give them, by their own names; see option_key in known_passes.h.
  std::vector<ConfigKey> options = {};
  std::vector<std::string> runs_after = {};  // in a list that has these too, it comes after them
  std::vector<std::string> undoes = {};      // the passes that this one reverts; after it, they may run again
  bool traceable = true;                     // whether the context's trace is called for it
  bool rounds = false;                       // whether results may differ by rounding (docs/numerics.md); else no bit
  // How it runs where a program calls it by the name that it has in Relay.
  RelayTyping relay_typing = RelayTyping::none;
  int32_t relay_level = 0;  // the least level at which it does all that Relay's pass does at any level

  // Returns whether `name` is the pass's name or an alias, in any spelling: "fold_constant", "FoldConstant",
  // "foldconstant".
  bool is_called(std::string_view name) const;
};

struct Pass {
  PassInfo info;
  // Gets the module as its own: a pass that takes it by value may free what it replaces before it is done.
  std::function<IRModule(IRModule, const PassContext&)> run;
  // The passes that info.required names, which make_sequential looks up. Whenever this pass runs, they run before it at
  // any level, except one that has just run.
  std::vector<Pass> prerequisites = {};
};

// Observes and steers passes. A hook that throws ends the run; the context is left as it was.
struct PassInstrument {
  virtual ~PassInstrument() = default;
  virtual std::string name() const = 0;
  virtual void enter_pass_ctx() {}
  virtual void exit_pass_ctx() {}
  // Returns false to skip a pass (not one that is required).
  virtual bool should_run(const IRModule&, const PassInfo&) { return true; }
  virtual void run_before_pass(const IRModule&, const PassInfo&) {}
  virtual void run_after_pass(const IRModule&, const PassInfo&) {}
};

// Says that a pass left something undone, and why; no error.
struct PassNote {
  hr_reason reason = HR_REASON_NONE;
  std::string pass;     // "FoldConstant"
  std::string message;  // a sentence: what was left, and which limit was in the way
  Span span = {};
};
using NoteSink = std::function<void(const PassNote&)>;

// Returns the sink that hands each note on once: those of one pass, span and message, up to the colon behind which the
// limit stands that was met, since that one differs from call to call. Null gives null.
NoteSink each_once(NoteSink note);

struct PassContext {
  int32_t opt_level = 2;
  std::vector<std::string> required_pass = {};  // they run whatever the level is
  std::vector<std::string> disabled_pass = {};
  Map<std::string, Value> config = {};  // declared keys (config.h)
  std::vector<std::shared_ptr<PassInstrument>> instruments = {};
  // Called for each traceable pass that runs: before it with true, after it with false.
  std::function<void(const IRModule&, const PassInfo&, bool is_before)> trace = {};
  NoteSink note = {};   // called for what a pass leaves undone
  int32_t threads = 1;  // threads that may evaluate constants; results are the same for any number
  // Infers the types of a module; run before each pass and after the last one. Null: passes infer types themselves.
  std::function<IRModule(const IRModule&)> infer_type = {};

  // Returns the configured value of `key`, if any. UserError when the value is of another kind.
  template <typename T>
  std::optional<T> option(const std::string& key) const {
    const auto value = config.get(key);
    if (!value) return {};
    if (!value->is<T>())
      throw_user_error("configuration '{}': {}", key, kind_mismatch(ValueTraits<T>::name(), value->raw()));
    return value->as<T>();
  }

  bool is_disabled(const PassInfo& info) const;
  bool is_required(const PassInfo& info) const;
};

// Returns whether two spellings are one name. Aliases are not considered (PassInfo::is_called).
bool same_pass_name(std::string_view a, std::string_view b);

// Runs `passes` in order, after relay/unique_binders.h. A pass is skipped when it is disabled, above the level (unless
// required), or refused by an instrument. UserError, before any has run, for a variable that nothing binds, when two of
// those that are not skipped stand against a `runs_after`, when the context disables what one of them requires. Gives
// up `module` at the first change, or at once if nothing else holds it: a caller that moves it in needs no memory for
// constants that passes replaced.
IRModule run_passes(const std::vector<Pass>& passes, IRModule module, const PassContext& context);

}  // namespace headrace::pass
