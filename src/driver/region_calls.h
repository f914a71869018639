// Runs the regions of a program that the interpreter evaluates: functions marked Compiler, also those that branches and
// recursive functions call.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "executors/executor.h"
#include "interp/interp.h"

namespace headrace::driver {

// Compiles each region when it is first called, as a program of its own, and runs it with the graph executor. Threads
// may share it.
class RegionCalls {
 public:
  // `program` holds the functions that regions call. `fallback` decides about a region whose backend is missing or
  // fails in a run: either the interpreter evaluates its body, or its native form runs; or the call fails.
  RegionCalls(IRModule program, CompileOptions options, executors::Fallback fallback);

  // Calls a region as interp::ExternalCall describes. A region with parameters of open types is compiled for the types
  // of the arguments. Returns nothing if the region's backend is missing and the fallback is native. Throws UserError
  // if the region cannot be compiled, and for a call that fails.
  std::optional<Value> call(const relay::Function& region, std::span<const Value> args);

  // Returns the regions that their backends did not compute, in the order of the regions' first calls.
  std::vector<executors::FallbackEvent> fallbacks() const;

 private:
  // A region that was called with arguments of these types.
  struct Code {
    relay::Function region;
    std::vector<Type> args;
    Type result = {};
    std::shared_ptr<executors::Executor> executor = {};  // null: the backend is missing
    executors::FallbackEvent event = {};                 // says so
  };

  std::string name_of(const relay::Function& region) const;
  std::shared_ptr<const Code> find(const relay::Function& region, const std::vector<Type>& args) const;
  std::shared_ptr<const Code> find_locked(const relay::Function& region, const std::vector<Type>& args) const;
  // Returns the code that is kept: another thread's where that was faster.
  std::shared_ptr<const Code> add(Code code);
  Code make_code(const relay::Function& region, const std::vector<Type>& args) const;
  void compile(const std::string& name, Code& code) const;

  IRModule program_;
  CompileOptions options_;
  executors::Fallback fallback_;
  mutable std::mutex mutex_;  // guards codes_; unlocked while a region is compiled, which may call Python
  std::vector<std::shared_ptr<const Code>> codes_;
};

}  // namespace headrace::driver
