#include "driver/native_programs.h"

#include <algorithm>

#include "base/interrupt.h"
#include "driver/canonical.h"
#include "driver/check_size.h"
#include "driver/compile_regions.h"
#include "driver/dump_loops.h"
#include "driver/target.h"
#include "lower/lower_function.h"
#include "tir/verify.h"
#include "tir/workspace.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

// Verifies the loops. The code generator does not check its input, and would emit invalid LLVM for malformed loops.
void check_loops(const IRModule& loops) {
  for (const auto& [name, function] : loops->functions()) {
    const std::vector<std::string> breaches = tir::find_breaches(function.cast<tir::PrimFuncNode>());
    HEADRACE_CHECK(breaches.empty(), "the kernel {} is not well-formed: {}", name->name_hint, breaches.front());
  }
}

// Returns `wanted`, or a name like it that is not empty and not taken: a function may have two parameters of one name,
// and the inputs of a program may not.
std::string free_name(const std::string& wanted, const std::vector<std::string>& taken) {
  std::string name = wanted.empty() ? "input" : wanted;
  for (int i = 1; std::find(taken.begin(), taken.end(), name) != taken.end(); ++i)
    name = fmt::format("{}_{}", wanted.empty() ? "input" : wanted, i);
  return name;
}

int64_t workspace_bytes_of(const tir::PrimFuncNode& kernel) {
  return static_cast<int64_t>(tir::workspace_of(kernel).size_bytes);
}

}  // namespace

NativeProgram fallback_of(const partition::Region& region, const IRModule& module) {
  const relay::Function& function = region.function;
  const auto native = relay::make_function(function->params, function->body, function->ret_type);
  NativeProgram program{
      .names = {.program = region.name}, .module = closed_module("main", native, module), .is_fallback = true};
  for (const relay::Var& param : region.function->params)
    program.names.inputs.push_back(free_name(param->name_hint, program.names.inputs));
  const size_t num_outputs = leaves_of(region.function->body->checked_type()).size();
  for (size_t i = 0; i < num_outputs; ++i) program.names.outputs.push_back(fmt::format("output{}", i));
  return program;
}

void KernelLowering::lower(NativeProgram& program) {
  const cost::Machine machine = machine_of(code_.target);
  IRModule loops = make_module();
  for (const auto& [name, function] : program.plan.functions) {
    if (plan::import_of(name, *function) || workspaces_.contains(name->name_hint)) continue;
    poll_interrupt();
    loops->add_function(name, lower::lower_function(function, name->name_hint, machine));
  }
  for (const auto& [name, function] : run_passes(loops)->functions())
    add_kernel(program, name, function.cast<tir::PrimFuncNode>());
  for (const auto& [name, function] : program.plan.functions) {
    if (const auto known = workspaces_.find(name->name_hint); known != workspaces_.end())
      program.workspace_bytes = std::max(program.workspace_bytes, known->second);
  }
}

int64_t KernelLowering::finish(const tir::PrimFunc& kernel, const Span& op) {
  IRModule loops = make_module();
  loops->add_function(make_global_var(tir::symbol_of(*kernel)), kernel);
  for (const auto& [name, function] : run_passes(loops)->functions())
    code_.kernels.push_back(function.cast<tir::PrimFuncNode>());
  const int64_t workspace = workspace_bytes_of(*code_.kernels.back());
  check_workspace_size(workspace, op);
  return workspace;
}

// Returns the loops after the tir passes, and keeps those before them.
IRModule KernelLowering::run_passes(const IRModule& loops) {
  if (!options_.dump_tir.empty()) dump_loops(loops, options_.dump_tir, ".lowered.tir");
  const pass::PassContext context = make_context(options_, [](const IRModule& module) { tir::verify(module); });
  IRModule finished = pass::run_passes(tir_passes::pipeline(), loops, context);
  check_loops(finished);
  for (const auto& [name, function] : loops->functions()) code_.loops.push_back(function.cast<tir::PrimFuncNode>());
  if (!options_.dump_tir.empty()) dump_loops(finished, options_.dump_tir, ".tir");
  return finished;
}

void KernelLowering::add_kernel(const NativeProgram& program, const GlobalVar& name, tir::PrimFunc kernel) {
  const int64_t workspace = workspace_bytes_of(*kernel);
  for (const auto& [known, function] : program.plan.functions) {
    if (known->name_hint == name->name_hint) check_workspace_size(workspace, function->span);
  }
  workspaces_.emplace(name->name_hint, workspace);
  code_.kernels.push_back(std::move(kernel));
}

}  // namespace headrace::driver
