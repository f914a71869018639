// Programs on their way to native code: that of the model, and the native forms of regions.
#pragma once

#include "driver/compile.h"
#include "partition/place.h"
#include "plan/graph_program.h"

namespace headrace::driver {

// Each stage of a compile fills in the members that it makes.
struct NativeProgram {
  plan::ProgramNames names;
  IRModule module = {};  // after the canonical passes, then after the native ones
  plan::Program plan = {};
  int64_t workspace_bytes = 0;  // workspace per thread: the largest that a kernel needs
  bool is_fallback = false;     // the native form of a region, which runs where its backend is missing
};

// Returns the native form of a region of `module`, before the passes.
NativeProgram fallback_of(const partition::Region& region, const IRModule& module);

// Lowers kernels and runs the tir passes over them. Kernels of one name, which several programs may have, are lowered
// once. Adds all loops to `code`.
class KernelLowering {
 public:
  KernelLowering(const CompileOptions& options, CompiledCode& code) : options_(options), code_(code) {}

  // Lowers the kernels of a planned program and sets its workspace. UserError for a kernel whose workspace no machine
  // has.
  void lower(NativeProgram& program);
  // Finishes the loops that a backend made of a region at `op`; returns the bytes of their workspace. UserError as
  // lower.
  int64_t finish(const tir::PrimFunc& kernel, const Span& op);

 private:
  IRModule run_passes(const IRModule& loops);
  void add_kernel(const NativeProgram& program, const GlobalVar& name, tir::PrimFunc kernel);

  const CompileOptions& options_;
  CompiledCode& code_;
  std::map<std::string, int64_t> workspaces_;  // by the name of a lowered kernel
};

}  // namespace headrace::driver
