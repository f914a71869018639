// Answers Debian's static libLLVMLTO, which was built to ask the optimizer Polly for its passes. lld needs that library
// to link bitcode, which Headrace never gives it; so Polly, which no other part calls, is not linked.
#include <llvm/Passes/PassPlugin.h>

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "no Polly", "", [](llvm::PassBuilder&) {}};
}
