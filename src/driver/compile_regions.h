// Compiles the regions of a program by their backends.
#pragma once

#include "artifact/manifest.h"
#include "base/expected.h"
#include "codegen/native.h"
#include "ir/target.h"
#include "partition/place.h"
#include "pass/pass.h"
#include "runtime/module.h"
#include "tir/stmt.h"

namespace headrace::driver {

// The code of one region: a kernel named `symbol`, or a function of `module`, or, without both, one of the process.
struct CompiledRegion {
  std::string symbol;
  runtime::Module module;
  int64_t workspace_bytes = 0;  // that the kernel needs
  tir::PrimFunc kernel = {};    // not null: the kernel's loops, which are still to be compiled natively
};

struct CompiledRegions {
  std::vector<CompiledRegion> regions;          // in the order of the regions that were given
  std::vector<runtime::Module> modules;         // those that backends made, each once
  std::vector<runtime::Module> sources;         // modules with kernels' sources, for readers of a build, each once
  std::vector<codegen::ObjectCode> objects;     // that hold the kernels
  std::vector<artifact::Backend> backends;      // in the order of their first region
  std::vector<std::optional<Refusal>> refused;  // for each region, why its backend does not compile it, if so
};

// Returns a module of `function`, under `name`, and of all functions of `program` that it calls, directly or through
// others, with the data types of the program.
IRModule closed_module(const std::string& name, const relay::Function& function, const IRModule& program);

// Removes the regions that were refused, and the backends that compute none of those that are left.
void drop_refused(CompiledRegions& compiled, std::span<const partition::Region> left);

// Compiles each region by the backend of its name: first by the hooks of the target kind of that name, if it has them
// (driver/target_hooks.h), and what these leave by the backend. A region without either must find its function in
// `modules`, which the model brings, or among the functions of the process. `program` holds the functions that regions
// call, `options` those of each backend. UserError that says what to register for a region that nothing computes, and
// for code that lacks the region's function.
CompiledRegions compile_regions(std::span<const partition::Region> regions, const IRModule& program,
                                std::span<const runtime::Module> modules, const Target& target,
                                const codegen::NativeTarget& machine,
                                const std::map<std::string, Map<std::string, Value>>& options);

}  // namespace headrace::driver
