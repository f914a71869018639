#include "driver/region_constants.h"

#include "object/function.h"
#include "object/repr.h"
#include "relay/visit.h"
#include "runtime/const_module.h"

namespace headrace::driver {

namespace {

using Constants = Map<std::string, NDArray>;

Constants constants_of(const partition::RegionSource& region) {
  Constants constants;
  relay::post_order(
      region.function->body, [](const Expr&) { return true; },
      [&](const Expr& expr) {
        if (const auto* constant = expr.as<relay::ConstantNode>())
          constants.set(fmt::format("{}_const_{}", region.name, constants.size()), constant->data);
      });
  return constants;
}

Constants updated(const std::string& name, const PackedFunc& updater, const partition::RegionSource& region) {
  const Value given = updater(region.function, region.name);
  if (given.is_none() || !given.is<Constants>())
    throw_at(region.function->span, "compile",
             fmt::format("the function {} returned {} for the region '{}'; it must return tensors by name", name,
                         repr(given), region.name));
  // A copy, since the caller may write to what it gave.
  Constants constants;
  for (const auto& [key, tensor] : given.as<Constants>()) {
    if (!tensor)
      throw_at(region.function->span, "compile", fmt::format("the function {} gave no tensor for '{}'", name, key));
    constants.set(key, tensor.copy());
  }
  return constants;
}

std::vector<std::string> names_of(const runtime::Module& code, const Constants& constants) {
  std::vector<std::string> names;
  if (const PackedFunc function = code.GetFunction("get_const_vars", true))
    return function().as<Array<std::string>>().to_vector();
  for (const auto& [name, tensor] : constants) names.push_back(name);
  return names;
}

}  // namespace

runtime::Module with_constants(const std::string& backend, const partition::RegionSource& region,
                               const runtime::Module& code) {
  const std::string updater_name = kRegionCompilerPrefix + backend + kConstantUpdater;
  const PackedFunc updater = find_global(updater_name);
  const std::string init = fmt::format("{}{}", runtime::kInitPrefix, region.name);
  // A module that knows its functions is not made ready to run for this question.
  const bool takes =
      code.body().declares(region.name) ? code.body().declares(init) : code.ImplementsFunction(init, true);
  if (!takes && !updater) return code;
  const Constants constants = updater ? updated(updater_name, updater, region) : constants_of(region);
  if (!takes && constants.empty()) return code;
  if (!takes)
    throw_at(region.function->span, "compile",
             fmt::format("the function {} gives the region '{}' constants, and the module of the backend '{}' has no "
                         "function '{}' that takes them",
                         updater_name, region.name, backend, init));
  Array<NDArray> ordered;
  for (const std::string& name : names_of(code, constants)) {
    const auto tensor = constants.get(name);
    if (!tensor)
      throw_at(region.function->span, "compile",
               fmt::format("the module of the backend '{}' asks for the constant '{}' of the region '{}', which has {}",
                           backend, name, region.name, constants.empty() ? "none" : "none of that name"));
    ordered.push_back(*tensor);
  }
  return runtime::make_const_module(region.name, ordered, code);
}

}  // namespace headrace::driver
