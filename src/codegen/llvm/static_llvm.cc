// Defines what Debian's archives of lld and LLVM refer to and Headrace never uses, so that a plugin with LLVM inside
// does not contain it: lld initializes every target of LLVM, and libLLVMLTO asks the optimizer Polly for its passes.
#include <llvm/Passes/PassPlugin.h>

// HEADRACE_OTHER_TARGETS comes from CMake: HEADRACE_OTHER_TARGET(NAME) for each target that the plugin does not
// contain.
#define HEADRACE_OTHER_TARGET(NAME)          \
  void LLVMInitialize##NAME##TargetInfo() {} \
  void LLVMInitialize##NAME##Target() {}     \
  void LLVMInitialize##NAME##TargetMC() {}   \
  void LLVMInitialize##NAME##AsmPrinter() {} \
  void LLVMInitialize##NAME##AsmParser() {}
extern "C" {
HEADRACE_OTHER_TARGETS
}

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "no Polly", "", [](llvm::PassBuilder&) {}};
}
