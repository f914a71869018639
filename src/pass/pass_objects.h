// Passes, instruments and contexts as objects, for other languages and for scopes. pass.h has the runner.
#pragma once

#include "object/function.h"
#include "pass/pass.h"

namespace headrace::pass {

struct PassInfoObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "transform.PassInfo";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<PassInfoObj>& f);
  int64_t opt_level = 0;
  std::string name;
  Array<std::string> required;
  bool traceable = true;
  std::string summary;
  Array<std::string> aliases;  // other names of the pass
  Array<std::string> options;  // the names of its options, in the order in which a call may give them
  Array<std::string> runs_after, undoes;
};
Ref<PassInfoObj> make_pass_info(const PassInfo& info);
PassInfo to_info(const PassInfoObj& info);

// A pass as an object. Its code is not a field: a pass that was loaded from JSON refuses to run.
struct PassObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "transform.Pass";
  static void fields(FieldList<PassObj>& f);
  Ref<PassInfoObj> info;
  std::function<IRModule(const IRModule&, const PassContext&)> run;
};
using PassRef = Ref<PassObj>;

// The kinds of passes by what they run over: a module, the Relay functions in a module, or its loop functions; or a
// sequence of passes.
struct ModulePassObj : PassObj {
  using Parent = PassObj;
  static constexpr std::string_view type_key = "transform.ModulePass";
  static constexpr bool is_final = true;
  static void fields(FieldList<ModulePassObj>& f);
};
struct FunctionPassObj : PassObj {
  using Parent = PassObj;
  static constexpr std::string_view type_key = "transform.FunctionPass";
  static constexpr bool is_final = true;
  static void fields(FieldList<FunctionPassObj>& f);
};
struct PrimFuncPassObj : PassObj {
  using Parent = PassObj;
  static constexpr std::string_view type_key = "transform.PrimFuncPass";
  static constexpr bool is_final = true;
  static void fields(FieldList<PrimFuncPassObj>& f);
};
struct SequentialObj : PassObj {
  using Parent = PassObj;
  static constexpr std::string_view type_key = "transform.Sequential";
  static constexpr bool is_final = true;
  static void fields(FieldList<SequentialObj>& f);
  Array<PassRef> passes;
};

// Wraps a pass of the project.
PassRef make_pass(const Pass& pass);
// Makes a pass that runs the passes in order by the one runner, each after its requirements; UserError when a required
// pass does not exist.
PassRef make_sequential(Array<PassRef> passes, Ref<PassInfoObj> info);
// Makes a pass of a function: `body(module, context)` returns the new module. Its binders are made unique
// (relay/unique_binders.h), because it may come from outside of this code; the function passes below do the same.
PassRef make_module_pass(PackedFunc body, Ref<PassInfoObj> info);
// Makes a pass of a function: `body(function, module, context)` returns the new function, for each relay function
// except those marked SkipOptimization, Primitive or Compiler; or, with `is_prim`, for each loop function.
PassRef make_function_pass(PackedFunc body, Ref<PassInfoObj> info, bool is_prim = false);

// Observes passes through functions, any of which may be null; or wraps an instrument written in C++.
struct PassInstrumentObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "instrument.PassInstrument";
  static constexpr bool is_final = true;
  static void fields(FieldList<PassInstrumentObj>& f);
  std::string name;
  PackedFunc enter_pass_ctx, exit_pass_ctx;    // ()
  PackedFunc should_run;                       // (module, info) -> bool
  PackedFunc run_before_pass, run_after_pass;  // (module, info)
  std::shared_ptr<PassInstrument> native;
};
using PassInstrumentRef = Ref<PassInstrumentObj>;
PassInstrumentRef make_instrument(std::shared_ptr<PassInstrument> native);

struct PassContextObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "transform.PassContext";
  static constexpr bool is_final = true;
  static void fields(FieldList<PassContextObj>& f);
  int64_t opt_level = 2;
  Array<std::string> required_pass, disabled_pass;
  Map<std::string, Value> config;  // keys as config.h declares them
  Array<PassInstrumentRef> instruments;
  PackedFunc trace;  // (module, info, is_before), or null
};
using PassContextRef = Ref<PassContextObj>;

// Checks a context. UserError for an invalid level (check_opt_level), and as check_config.
void check_context(const PassContextObj& context);
// Returns the context of the innermost scope of this thread; outside of any, the thread's own context with the
// defaults.
PassContextRef current_context();
bool is_in_context();
// Checks the context, enters its instruments and makes it the current one. When an instrument throws, those entered
// before it leave, and the current context does not change.
void enter_context(const PassContextRef& context);
// Ends the innermost scope of that context, whatever was entered since and is still open (by a generator that holds
// one), then leaves its instruments; the first error of one is thrown when all have left. UserError when this thread is
// in no scope of it.
void exit_context(const PassContextRef& context);
// Replaces the instruments for the rest of the innermost scope, or, outside of any, for this thread: the old ones
// leave, the new ones enter. When one throws, the scope goes on without any. UserError when `context` is not the
// current one.
void override_instruments(const PassContextRef& context, const Array<PassInstrumentRef>& instruments);

// The scope in C++:  { With scope(context); ... }
class With {
 public:
  explicit With(const PassContextRef& context) : context_(context) { enter_context(context); }
  ~With() noexcept(false);
  With(const With&) = delete;

 private:
  PassContextRef context_;
  int exceptions_ = std::uncaught_exceptions();
};

// Converts a context for other languages, with its instruments.
PassContextRef to_object(const PassContext& context);
// Converts a context for the runner. Its instruments are not entered again by each run, because their scope entered
// them.
PassContext to_context(const PassContextRef& context);

// Runs one pass in `context`, at any level and even when it is disabled.
IRModule run_pass(const PassRef& pass, const IRModule& module, const PassContextRef& context);

}  // namespace headrace::pass
