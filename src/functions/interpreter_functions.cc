#include "base/reason_name.h"
#include "driver/region_calls.h"
#include "functions/register_functions.h"
#include "interp/interp.h"
#include "object/array.h"
#include "object/function.h"
#include "object/map.h"
#include "pass/pass_objects.h"
#include "relay/unique_binders.h"

namespace headrace::functions {

namespace {

executors::Fallback read_fallback(const std::string& name) {
  if (name == "native") return executors::Fallback::native;
  if (name == "none") return executors::Fallback::none;
  throw_user_error("fallback: expected \"native\" or \"none\", got \"{}\"", name);
}

// Returns the events as lists: region, backend, reason and its name, message, run.
Array<Value> rows_of(const std::vector<executors::FallbackEvent>& events) {
  Array<Value> rows;
  for (const executors::FallbackEvent& event : events)
    rows.push_back(Value(Array<Value>{Value(event.region), Value(event.backend), Value(int64_t{event.reason}),
                                      Value(std::string(reason_name(event.reason))), Value(event.message),
                                      Value(static_cast<int64_t>(event.run))}));
  return rows;
}

// Makes an interpreter of a module, whose regions run on their backends. Returns two functions: the first runs a
// function, given by its name, with a list of arguments; the second returns the regions that have fallen back. Regions
// are compiled in the pass context of this call.
Array<PackedFunc> make_interpreter(const IRModule& given, const std::string& fallback) {
  const IRModule module = snapshot(given);
  driver::CompileOptions options;
  options.passes = pass::to_context(pass::current_context());
  const auto calls = std::make_shared<driver::RegionCalls>(module, std::move(options), read_fallback(fallback));
  const auto call_external = [calls](const relay::Function& region, std::span<const Value> args) {
    return calls->call(region, args);
  };
  return {make_packed([module, call_external](const std::string& name, const Array<Value>& args) {
            return interp::run(module, name, args.to_vector(), {.call_external = call_external});
          }),
          make_packed([calls] { return rows_of(calls->fallbacks()); })};
}

}  // namespace

void register_interpreter_functions() {
  interp::register_types();
  register_global("relay.backend.MakeRef", make_packed(&interp::make_ref));
  register_global("relay.backend.ReadRef", make_packed(&interp::read_ref));
  register_global("relay.backend.MakeInterpreter", make_packed(&make_interpreter));
}

}  // namespace headrace::functions
