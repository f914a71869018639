#include <algorithm>

#include "pass/config.h"
#include "pass/pass_objects.h"
#include "relay/infer/infer_type.h"

namespace headrace::pass {

void PassInstrumentObj::fields(FieldList<PassInstrumentObj>& f) {
  f.field<&PassInstrumentObj::name>("name")
      .field<&PassInstrumentObj::enter_pass_ctx>("enter_pass_ctx", {.optional = true, .doc = "() at a scope's start"})
      .field<&PassInstrumentObj::exit_pass_ctx>("exit_pass_ctx", {.optional = true, .doc = "() at a scope's end"})
      .field<&PassInstrumentObj::should_run>("should_run", {.optional = true, .doc = "(module, info) -> bool"})
      .field<&PassInstrumentObj::run_before_pass>("run_before_pass", {.optional = true, .doc = "(module, info)"})
      .field<&PassInstrumentObj::run_after_pass>("run_after_pass", {.optional = true, .doc = "(module, info)"});
}

void PassContextObj::fields(FieldList<PassContextObj>& f) {
  const Value none = Array<Value>();
  f.field<&PassContextObj::opt_level>("opt_level", {.default_value = 2, .has_default = true, .doc = "0 to 4"})
      .field<&PassContextObj::required_pass>(
          "required_pass", {.default_value = none, .has_default = true, .doc = "run whatever the level is"})
      .field<&PassContextObj::disabled_pass>("disabled_pass",
                                             {.default_value = none, .has_default = true, .doc = "never run"})
      .field<&PassContextObj::config>(
          "config", {.default_value = Map<std::string, Value>(), .has_default = true, .doc = "options of passes"})
      .field<&PassContextObj::instruments>("instruments", {.default_value = none, .has_default = true})
      .field<&PassContextObj::trace>("trace", {.optional = true, .doc = "(module, info, is_before)"});
}

PassInstrumentRef make_instrument(std::shared_ptr<PassInstrument> native) {
  PassInstrumentRef object = make_object<PassInstrumentObj>();
  object->name = native->name();
  object->native = std::move(native);
  return object;
}

namespace {

void enter(const PassInstrumentObj& instrument) {
  if (instrument.native) return instrument.native->enter_pass_ctx();
  if (instrument.enter_pass_ctx) instrument.enter_pass_ctx();
}

void leave(const PassInstrumentObj& instrument) {
  if (instrument.native) return instrument.native->exit_pass_ctx();
  if (instrument.exit_pass_ctx) instrument.exit_pass_ctx();
}

// Leaves the first `count` instruments in their order, as Relay, whatever they throw; gives the first error.
std::exception_ptr leave_first(const Array<PassInstrumentRef>& instruments, size_t count) {
  std::exception_ptr error;
  for (size_t i = 0; i < count; ++i) {
    try {
      leave(*instruments[i]);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  return error;
}

// A scope: the context that was entered, or through which the instruments were set last, its copy with other
// instruments, and the instruments to leave.
struct Scope {
  PassContextRef entered, context;
  Array<PassInstrumentRef> instruments;
  bool is_of(const PassContextRef& other) const { return entered == other || context == other; }
};

std::vector<Scope>& scopes() {
  thread_local std::vector<Scope> stack;
  return stack;
}

// Returns the scope of code that runs in none: the defaults, with the instruments that override_instruments set.
Scope& outermost() {
  thread_local Scope scope = [] {
    const PassContextRef context = make_object<PassContextObj>();
    return Scope{context, context, {}};
  }();
  return scope;
}

Scope& innermost() { return is_in_context() ? scopes().back() : outermost(); }

bool is_entered(const PassInstrumentRef& instrument) {
  const auto has = [&](const Scope& scope) {
    return std::find(scope.instruments.begin(), scope.instruments.end(), instrument) != scope.instruments.end();
  };
  return has(outermost()) || std::any_of(scopes().begin(), scopes().end(), has);
}

// An instrument whose scope enters and leaves it. One that another instrument has the scope leave amid a run hears no
// more of that run.
class ScopedInstrument : public PassInstrument {
 public:
  explicit ScopedInstrument(PassInstrumentRef object) : object_(std::move(object)), was_entered_(is_entered(object_)) {}
  const PassInstrumentRef& object() const { return object_; }
  std::string name() const override { return object_->name; }
  bool should_run(const IRModule& module, const PassInfo& info) override {
    if (has_left()) return true;
    if (object_->native) return object_->native->should_run(module, info);
    return !object_->should_run || object_->should_run(module, make_pass_info(info)).as<bool>();
  }
  void run_before_pass(const IRModule& module, const PassInfo& info) override {
    if (has_left()) return;
    if (object_->native) return object_->native->run_before_pass(module, info);
    if (object_->run_before_pass) object_->run_before_pass(module, make_pass_info(info));
  }
  void run_after_pass(const IRModule& module, const PassInfo& info) override {
    if (has_left()) return;
    if (object_->native) return object_->native->run_after_pass(module, info);
    if (object_->run_after_pass) object_->run_after_pass(module, make_pass_info(info));
  }

 private:
  bool has_left() const { return was_entered_ && !is_entered(object_); }

  PassInstrumentRef object_;
  bool was_entered_;
};

}  // namespace

PassContextRef current_context() { return innermost().context; }

bool is_in_context() { return !scopes().empty(); }

void check_context(const PassContextObj& context) {
  check_opt_level(context.opt_level);
  check_config(context.config);
}

// Enters all of them, or none.
static void enter_all(const Array<PassInstrumentRef>& instruments) {
  size_t entered = 0;
  try {
    for (const PassInstrumentRef& instrument : instruments) {
      enter(*instrument);
      ++entered;
    }
  } catch (...) {
    leave_first(instruments, entered);
    throw;
  }
}

void enter_context(const PassContextRef& context) {
  check_context(*context);
  const Array<PassInstrumentRef> instruments = context->instruments;
  enter_all(instruments);
  scopes().push_back({context, context, instruments});
}

void exit_context(const PassContextRef& context) {
  std::vector<Scope>& stack = scopes();
  const auto found =
      std::find_if(stack.rbegin(), stack.rend(), [&](const Scope& scope) { return scope.is_of(context); });
  if (found == stack.rend()) throw_user_error("this thread is in no scope of that PassContext");
  const Scope scope = std::move(*found);
  stack.erase(std::next(found).base());
  if (const std::exception_ptr error = leave_first(scope.instruments, scope.instruments.size()))
    std::rethrow_exception(error);
}

void override_instruments(const PassContextRef& context, const Array<PassInstrumentRef>& instruments) {
  if (!innermost().is_of(context))
    throw_user_error(
        "override_instruments: this is not the context that passes run in now; write "
        "PassContext.current().override_instruments([...])");
  const auto set = [&](const Array<PassInstrumentRef>& list) {
    Scope& scope = innermost();
    if (!is_in_context()) scope.entered = context;  // the program's context on this thread
    scope.context = copy_with(*scope.context, [&](PassContextObj& copy) { copy.instruments = list; });
    scope.instruments = list;
  };
  const Array<PassInstrumentRef> before = innermost().instruments;
  set({});
  if (const std::exception_ptr error = leave_first(before, before.size())) std::rethrow_exception(error);
  enter_all(instruments);
  set(instruments);
}

With::~With() noexcept(false) {
  try {
    exit_context(context_);
  } catch (...) {
    // An error that is under way is the one to report.
    if (std::uncaught_exceptions() <= exceptions_) throw;
  }
}

PassContextRef to_object(const PassContext& context) {
  PassContextRef object = make_object<PassContextObj>();
  object->opt_level = context.opt_level;
  object->required_pass = Array<std::string>(context.required_pass);
  object->disabled_pass = Array<std::string>(context.disabled_pass);
  object->config = context.config;
  if (context.trace)
    object->trace = make_packed([trace = context.trace](const IRModule& module, const Ref<PassInfoObj>& info,
                                                        bool is_before) { trace(module, to_info(*info), is_before); });
  for (const auto& instrument : context.instruments) {
    const auto* scoped = dynamic_cast<const ScopedInstrument*>(instrument.get());
    object->instruments.push_back(scoped == nullptr ? make_instrument(instrument) : scoped->object());
  }
  return object;
}

PassContext to_context(const PassContextRef& context) {
  check_context(*context);
  PassContext result;
  result.opt_level = static_cast<int32_t>(context->opt_level);
  result.required_pass = context->required_pass.to_vector();
  result.disabled_pass = context->disabled_pass.to_vector();
  result.config = context->config;
  for (const PassInstrumentRef& instrument : context->instruments)
    result.instruments.push_back(std::make_shared<ScopedInstrument>(instrument));
  if (context->trace)
    result.trace = [trace = context->trace](const IRModule& module, const PassInfo& info, bool is_before) {
      trace(module, make_pass_info(info), is_before);
    };
  result.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  return result;
}

}  // namespace headrace::pass
