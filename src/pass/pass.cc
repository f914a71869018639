#include "pass/pass.h"

#include <memory>
#include <set>

#include "base/interrupt.h"
#include "relay/unique_binders.h"

namespace headrace::pass {

namespace {

// Returns the form in which pass names are compared.
std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_') result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return result;
}

bool names_one(const std::vector<std::string>& names, const PassInfo& info) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return info.is_called(name); });
}

bool is_chosen(const PassInfo& info, const PassContext& context) {
  return context.is_required(info) || (!context.is_disabled(info) && info.opt_level <= context.opt_level);
}

bool should_run(const PassInfo& info, const IRModule& module, const PassContext& context) {
  if (!is_chosen(info, context)) return false;
  return context.is_required(info) ||
         std::all_of(context.instruments.begin(), context.instruments.end(),
                     [&](const auto& instrument) { return instrument->should_run(module, info); });
}

void check_required(const Pass& pass, const PassContext& context) {
  for (const Pass& required : pass.prerequisites) {
    if (context.is_disabled(required.info))
      throw_user_error("pass {0} requires {1}, which the context disables; enable {1}, or leave {0} out",
                       pass.info.name, required.info.name);
    check_required(required, context);
  }
}

void check_list(const std::vector<Pass>& passes, const PassContext& context) {
  std::vector<const PassInfo*> before;
  for (const Pass& pass : passes) {
    if (!is_chosen(pass.info, context)) continue;
    check_required(pass, context);
    bool is_repeated = false;  // it also stands before what it must stand before: the list goes through both again
    for (const PassInfo* earlier : before) {
      is_repeated |= earlier->name == pass.info.name;
      if (!is_repeated && names_one(earlier->runs_after, pass.info))
        throw_user_error("{} comes after {}, and in this list before it; put {} first", earlier->name, pass.info.name,
                         pass.info.name);
    }
    std::erase_if(before, [&](const PassInfo* earlier) { return names_one(pass.info.undoes, *earlier); });
    before.push_back(&pass.info);
  }
}

// The contents of a module. The objects are held, so that adding to the module makes new ones.
using Contents = std::pair<Ref<MapObj>, Ref<MapObj>>;
Contents contents(const IRModule& module) {
  return {module->functions().object(), module->type_definitions().object()};
}

// Enters the instruments; leaves those it entered, in the same order, whatever happens.
class InstrumentScope {
 public:
  explicit InstrumentScope(const PassContext& context) : context_(context) {
    for (const auto& instrument : context.instruments) {
      try {
        instrument->enter_pass_ctx();
      } catch (...) {
        leave();
        throw;
      }
      ++entered_;
    }
  }
  // After an error, which is the one to report, not the instruments'.
  ~InstrumentScope() { leave(); }
  InstrumentScope(const InstrumentScope&) = delete;

  // Ends a run that succeeded: the first error of an instrument becomes the run's.
  void finish() {
    if (const std::exception_ptr error = leave()) std::rethrow_exception(error);
  }

 private:
  std::exception_ptr leave() noexcept {
    std::exception_ptr first;
    const size_t count = std::exchange(entered_, 0);
    for (size_t i = 0; i < count; ++i) {
      try {
        context_.instruments[i]->exit_pass_ctx();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    return first;
  }
  const PassContext& context_;
  size_t entered_ = 0;
};

// One run over a list.
class Run {
 public:
  Run(IRModule module, const PassContext& context) : module_(std::move(module)), context_(context) {}
  const IRModule& module() const { return module_; }

  void run(const Pass& pass) {
    for (const Pass& required : pass.prerequisites) {
      if (last_ != required.info.name) run(required);
    }
    poll_interrupt();
    infer_type();
    trace(pass, true);
    for (const auto& instrument : context_.instruments) instrument->run_before_pass(module_, pass.info);
    module_ = pass.run(std::exchange(module_, {}), context_);
    for (const auto& instrument : context_.instruments) instrument->run_after_pass(module_, pass.info);
    trace(pass, false);
    last_ = pass.info.name;
  }

  void infer_type() {
    if (context_.infer_type) module_ = context_.infer_type(module_);
  }

 private:
  void trace(const Pass& pass, bool is_before) const {
    if (context_.trace && pass.info.traceable) context_.trace(module_, pass.info, is_before);
  }

  IRModule module_;
  const PassContext& context_;
  std::string last_;  // the pass that has just run
};

}  // namespace

bool same_pass_name(std::string_view a, std::string_view b) { return folded(a) == folded(b); }

bool PassInfo::is_called(std::string_view given) const {
  return same_pass_name(name, given) || std::any_of(aliases.begin(), aliases.end(), [&](const std::string& alias) {
           return same_pass_name(alias, given);
         });
}

bool PassContext::is_disabled(const PassInfo& info) const { return names_one(disabled_pass, info); }
bool PassContext::is_required(const PassInfo& info) const { return names_one(required_pass, info); }

NoteSink each_once(NoteSink note) {
  if (!note) return {};
  return [note = std::move(note), known = std::make_shared<std::set<std::string>>()](const PassNote& one) {
    const std::string message = one.message.substr(0, one.message.find(": "));
    if (known->insert(fmt::format("{}\n{}\n{}", one.pass, to_string(one.span), message)).second) note(one);
  };
}

IRModule run_passes(const std::vector<Pass>& passes, IRModule given, const PassContext& context) {
  check_list(passes, context);
  InstrumentScope scope(context);
  // Passes read a module many times, while others may add to the one that was given. Nobody adds to the last reference
  // to a module, nor can tell whether the result is that module.
  const bool is_shared = !given->is_unique();
  IRModule start = is_shared ? snapshot(given) : IRModule();
  Contents before = is_shared ? contents(start) : Contents();
  IRModule renamed = relay::unique_binders(is_shared ? start : given);
  if (!is_shared) given = {};
  Run run(std::move(renamed), context);
  // A pass in Python may add to the module that it gets and return it; definitions that other threads added meanwhile
  // have not been seen by any pass.
  const auto forget_what_changed = [&] {
    if (!start || (run.module() == start && contents(start) == before && contents(given) == before)) return;
    start = given = {};
    before = {};
  };
  for (const Pass& pass : passes) {
    forget_what_changed();
    if (should_run(pass.info, run.module(), context)) run.run(pass);
  }
  run.infer_type();
  scope.finish();
  forget_what_changed();
  return start ? given : run.module();
}

}  // namespace headrace::pass
