#include "driver/target.h"

#include <algorithm>

#include "base/architecture.h"
#include "object/structural_equal.h"
#include "plan/static_main_tables.h"
#include "runtime/cpu_features.h"

namespace headrace::driver {

namespace {

// Returns whether the user enabled the feature by name.
bool is_asked_for(const Target& target, const std::string& feature) {
  const Array<std::string> named = target->list("mattr");
  return std::find(named.begin(), named.end(), "+" + feature) != named.end();
}

// Throws UserError for an architecture whose static main, which every artifact has, was not compiled into Headrace.
void check_architecture(std::string_view triple, std::string_view host) {
  if (!plan::static_main_object(architecture_of(triple)).empty()) return;
  throw_user_error(
      "an artifact cannot be made for the triple '{}': this Headrace makes them for {} on Linux, such as {}; compile "
      "on a machine of that architecture",
      triple, fmt::join(plan::static_main_architectures(), " and "), host);
}

codegen::TargetRequest request_of(const Target& target) {
  return {.cpu = target->text("mcpu"),
          .features = fmt::format("{}", fmt::join(target->list("mattr"), ",")),
          .triple = target->text("mtriple")};
}

// The target kind of the native code generator.
constexpr std::string_view kNativeKind = "llvm";

}  // namespace

Target llvm_target(const std::string& cpu, const std::string& features) {
  Map<std::string, Value> attrs;
  if (!cpu.empty()) attrs.set("mcpu", Value(cpu));
  if (!features.empty()) attrs.set("mattr", Value(features));
  return make_target("llvm", attrs);
}

void check_target(const Target& target) {
  const Target checked = checked_target(target);
  if (checked->kind->name != kNativeKind)
    throw_user_error("there is no code generator for targets of kind '{}' here; code is made for kind {}{}",
                     checked->kind->name, kNativeKind,
                     checked->kind->is_backend ? fmt::format(", beside which it is a backend: write [\"{}\", \"{}\"]",
                                                             kNativeKind, checked->kind->name)
                                               : "");
  if (checked->host && !structural_equal(Value(checked->host), Value(with_host(checked, {}))))
    throw_user_error("the target's host is '{}': an artifact's host code is made for the target itself; leave it out",
                     to_string(checked->host));
}

std::vector<std::string> target_features(const codegen::NativeCompiler& compiler, const Target& target) {
  if (target->kind->name != kNativeKind) return {};
  return compiler.resolve_target(request_of(target)).enabled;
}

codegen::NativeTarget choose_target(const codegen::NativeCompiler& compiler, const Target& target) {
  check_target(target);
  const codegen::TargetRequest request = request_of(target);
  const codegen::NativeTarget wanted = compiler.resolve_target(request);
  check_architecture(wanted.triple, compiler.host_target().triple);
  const std::vector<std::string_view> known = runtime::known_cpu_features(architecture_of(wanted.triple));
  codegen::TargetRequest reduced = request;
  for (const std::string& feature : wanted.enabled) {
    if (std::find(known.begin(), known.end(), feature) != known.end()) continue;
    if (is_asked_for(target, feature)) {
      throw_user_error(
          "code cannot be made for the processor feature '{}': loading could not tell a machine that lacks it; leave "
          "it out, or choose among {}",
          feature, fmt::join(known, ", "));
    }
    reduced.features += (reduced.features.empty() ? "-" : ",-") + feature;
  }
  return compiler.resolve_target(reduced);
}

cost::Machine machine_of(const codegen::NativeTarget& target) { return cost::machine_for(target.cpu, target.enabled); }

}  // namespace headrace::driver
