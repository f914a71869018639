// Pass: a named step from module to module; PassContext: how passes run; run_passes: the one runner.
//
// A pass of the project is a plain function behind a small header (passes/fold/fold_constant.h); its row in the list it
// belongs to (passes/pipeline.cc, tir_passes/pipeline.cc) gives it a name, a level, a line that says what it does.
#pragma once

#include "ir/module.h"
#include "tensor/ndarray.h"

namespace headrace::pass {

struct PassContext;

struct PassInfo {
  std::string name;                   // "FoldConstant"
  int32_t opt_level = 0;              // runs when the context's level is at least this
  std::vector<std::string> required;  // passes that must have run before it in the same list
  std::string summary = {};           // one line: what it does
};

struct Pass {
  PassInfo info;
  std::function<IRModule(const IRModule&, const PassContext&)> run;
};

// Observes and steers passes. A hook that throws ends the run; the context is left as it was.
struct PassInstrument {
  virtual ~PassInstrument() = default;
  virtual std::string name() const = 0;
  virtual void enter_pass_ctx() {}
  virtual void exit_pass_ctx() {}
  // False skips the pass (not one that is required).
  virtual bool should_run(const IRModule&, const PassInfo&) { return true; }
  virtual void run_before_pass(const IRModule&, const PassInfo&) {}
  virtual void run_after_pass(const IRModule&, const PassInfo&) {}
};

// Computes big constants: compiles and runs the closed expression. Installed by the driver; see FoldConstant.
struct ConstantEvaluator {
  virtual ~ConstantEvaluator() = default;
  virtual NDArray evaluate(const Expr& closed) = 0;
};

struct PassContext {
  int32_t opt_level = 2;
  std::vector<std::string> required_pass;
  std::vector<std::string> disabled_pass;
  Map<std::string, Value> config;
  std::vector<std::shared_ptr<PassInstrument>> instruments;
  std::shared_ptr<ConstantEvaluator> evaluator;
  // Checks the rules of the IR after each pass and names the pass that broke them. Null: not checked.
  std::function<void(const IRModule&)> verify;
  // Gives every node its type; run before a pass that finds untyped nodes. Null: types are the passes' own business.
  std::function<IRModule(const IRModule&)> infer_type;

  bool is_disabled(std::string_view name) const;
  bool is_required(std::string_view name) const;
};

// "fold_constant", "FoldConstant" and "foldconstant" are one name; PartialEval is PartialEvaluate.
bool same_pass_name(std::string_view a, std::string_view b);

// Runs `passes` in order. A pass is skipped when it is disabled, above the level (unless required), or refused by an
// instrument. InternalError naming the pass when its requirement has not run or `verify` fails after it.
IRModule run_passes(const std::vector<Pass>& passes, const IRModule& module, const PassContext& context);

}  // namespace headrace::pass
