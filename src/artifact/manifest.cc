#include "artifact/manifest.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace headrace::artifact {
namespace {

// The names of the actions, in the order of StepAction.
constexpr std::array<std::string_view, std::variant_size_v<StepAction>> kActionNames = {"kernel", "external", "region",
                                                                                        "copy"};

}  // namespace

std::string_view name_of(const StepAction& action) { return kActionNames[action.index()]; }

const std::string& callee_of(const StepAction& action) {
  static const std::string none;
  if (const auto* kernel = std::get_if<KernelCall>(&action)) return kernel->symbol;
  if (const auto* external = std::get_if<ExternalCall>(&action)) return external->function;
  if (const auto* region = std::get_if<RegionCall>(&action)) return region->region;
  return none;
}

namespace {

// A new kind of action does not compile before it has its line.
struct NeedsRuntime {
  bool operator()(const KernelCall&) const { return false; }
  bool operator()(const ExternalCall&) const { return true; }
  bool operator()(const RegionCall&) const { return true; }
  bool operator()(const CopyStep&) const { return false; }
};

}  // namespace

bool needs_runtime(const StepAction& action) { return std::visit(NeedsRuntime(), action); }

std::optional<StepAction> make_step_action(std::string_view name, std::string callee) {
  if (name == kActionNames[0]) return KernelCall{std::move(callee)};
  if (name == kActionNames[1]) return ExternalCall{std::move(callee)};
  if (name == kActionNames[2]) return RegionCall{std::move(callee)};
  if (name == kActionNames[3]) return CopyStep{};
  return std::nullopt;
}

int64_t arena_bytes(const MemoryPlan& memory) {
  return std::accumulate(memory.arenas.begin(), memory.arenas.end(), int64_t{0},
                         [](int64_t sum, const Arena& arena) { return sum + arena.nbytes; });
}

namespace {

template <typename T>
const T* find_named(const std::vector<T>& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const T& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

const Program* find_program(const Manifest& manifest, std::string_view name) {
  return find_named(manifest.programs, name);
}

const Region* find_region(const Manifest& manifest, std::string_view name) {
  return find_named(manifest.regions, name);
}

}  // namespace headrace::artifact
