// LLVM modules to bytes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/native.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace headrace::codegen::llvm_plugin {

// An LLVM context that records errors, where LLVM would print them and end the process. One per job.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  llvm::LLVMContext& get() { return *context_; }
  // Returns the errors so far, one a line; empty when all went well.
  const std::string& errors() const { return errors_; }

 private:
  std::unique_ptr<llvm::LLVMContext> context_;
  std::string errors_;
};

// Verifies, optimises and emits a module. InternalError when the module is not valid LLVM; UserError for errors that
// only code generation finds, such as inline assembly that the target does not support.
std::string emit_module(Context& context, llvm::Module& module, const NativeTarget& target, CodeForm form,
                        int opt_level);

// Compiles these kernels in one module.
std::string compile(std::span<const tir::PrimFunc> functions, const NativeTarget& target, CodeForm form, int opt_level);

// Parses LLVM's text form and emits it.
std::string compile_llvm(const std::string& text, const NativeTarget& target, CodeForm form, int opt_level);

}  // namespace headrace::codegen::llvm_plugin
