#include "pass/pass.h"

#include "base/interrupt.h"

namespace headrace::pass {

namespace {

// What pass names are compared by.
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

bool should_run(const PassInfo& info, const IRModule& module, const PassContext& context) {
  if (context.is_required(info)) return true;
  if (context.is_disabled(info) || info.opt_level > context.opt_level) return false;
  return std::all_of(context.instruments.begin(), context.instruments.end(),
                     [&](const auto& instrument) { return instrument->should_run(module, info); });
}

// What is in a module. The objects are held, so that whoever adds to the module makes others.
using Contents = std::pair<Ref<MapObj>, Ref<MapObj>>;
Contents contents(const IRModule& module) {
  return {module->functions().object(), module->type_definitions().object()};
}

// Enters the instruments; leaves those it entered, whatever happens.
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

  // After a run that succeeded: the first error of an instrument is the run's.
  void finish() {
    if (const std::exception_ptr error = leave()) std::rethrow_exception(error);
  }

 private:
  std::exception_ptr leave() noexcept {
    std::exception_ptr first;
    while (entered_ > 0) {
      try {
        context_.instruments[--entered_]->exit_pass_ctx();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    return first;
  }
  const PassContext& context_;
  size_t entered_ = 0;
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

IRModule run_passes(const std::vector<Pass>& passes, const IRModule& given, const PassContext& context) {
  // Passes read a module many times, while others may add to the one that was given.
  const IRModule start = snapshot(given);
  const Contents before = contents(start);
  InstrumentScope scope(context);
  IRModule module = start;
  for (const Pass& pass : passes) {
    if (!should_run(pass.info, module, context)) continue;
    poll_interrupt();
    if (context.infer_type) module = context.infer_type(module);
    for (const auto& instrument : context.instruments) instrument->run_before_pass(module, pass.info);
    module = pass.run(module, context);
    for (const auto& instrument : context.instruments) instrument->run_after_pass(module, pass.info);
  }
  if (context.infer_type) module = context.infer_type(module);
  scope.finish();
  // A pass in Python may add to the module that it gets and return it; what others added, no pass has seen.
  return module == start && contents(start) == before && contents(given) == before ? given : module;
}

}  // namespace headrace::pass
