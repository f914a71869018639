#include "codegen/llvm/emit.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include "base/error.h"
#include "codegen/llvm/kernel_builder.h"
#include "codegen/llvm/target.h"

namespace headrace::codegen::llvm_plugin {

static void keep_error(const llvm::DiagnosticInfo* info, void* errors) {
  if (info->getSeverity() != llvm::DS_Error) return;
  auto& text = *static_cast<std::string*>(errors);
  llvm::raw_string_ostream stream(text);
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
  stream << '\n';
}

Context::Context() : context_(std::make_unique<llvm::LLVMContext>()) {
  context_->setDiagnosticHandlerCallBack(keep_error, &errors_);
}

Context::~Context() = default;

namespace {

// From this many instructions on, a kernel takes the short list: they come from register tiles that the schedule has
// unrolled and vectorised; LLVM's default list spends most of its time on their long blocks and gains nothing there.
constexpr unsigned kLongKernel = 1200;

template <typename Pass, typename... Rest>
void add_loop_passes(llvm::FunctionPassManager& passes, bool with_memory_ssa, Pass&& first, Rest&&... rest) {
  llvm::LoopPassManager loops;
  loops.addPass(std::forward<Pass>(first));
  (loops.addPass(std::forward<Rest>(rest)), ...);
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), with_memory_ssa));
}

// The short list, found by trial: with it as a whole, kernels run as fast as with the default one. There is nothing to
// inline, and no module to look at as a whole.
llvm::FunctionPassManager passes_of_long_kernels() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  add_loop_passes(passes, true, llvm::LoopRotatePass(), llvm::LICMPass(llvm::LICMOptions()));
  // The taps of a window are a loop of constant length; unrolled, their addresses become offsets.
  add_loop_passes(passes, false, llvm::LoopIdiomRecognizePass(), llvm::IndVarSimplifyPass(), llvm::LoopDeletionPass(),
                  llvm::LoopFullUnrollPass(/*OptLevel=*/3));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::LoopVectorizePass());
  passes.addPass(llvm::SLPVectorizerPass());
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(/*OptLevel=*/2)));
  passes.addPass(llvm::InstCombinePass());
  add_loop_passes(passes, true, llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

llvm::ModulePassManager passes_for(const llvm::Module& module, llvm::PassBuilder& builder, int opt_level) {
  const llvm::OptimizationLevel kLevels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                             llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  const llvm::OptimizationLevel level = kLevels[std::clamp(opt_level, 0, 3)];
  if (level == llvm::OptimizationLevel::O0) return builder.buildO0DefaultPipeline(level);
  if (level == llvm::OptimizationLevel::O3 && module.getInstructionCount() >= kLongKernel) {
    llvm::ModulePassManager passes;
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(passes_of_long_kernels()));
    return passes;
  }
  return builder.buildPerModuleDefaultPipeline(level);
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, int opt_level) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = opt_level > 1;
  tuning.SLPVectorization = opt_level > 1;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  passes_for(module, builder, opt_level).run(module, modules);
}

std::string print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

std::string generate(llvm::Module& module, llvm::TargetMachine& machine, CodeForm form) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = form == CodeForm::kObject ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  const bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, type);
  HEADRACE_CHECK(!refused, "LLVM cannot emit this kind of file for {}", machine.getTargetTriple().str());
  passes.run(module);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string emit_module(Context& context, llvm::Module& module, const NativeTarget& target, CodeForm form,
                        int opt_level) {
  const std::unique_ptr<llvm::TargetMachine> machine = make_target_machine(target, opt_level);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream)) {
    throw InternalError(fmt::format("the LLVM module '{}' is not valid: {}", module.getName().str(), problem));
  }
  if (form == CodeForm::kInputLlvm) return print(module);
  optimise(module, *machine, opt_level);
  std::string result = form == CodeForm::kLlvm ? print(module) : generate(module, *machine, form);
  if (!context.errors().empty()) {
    throw_user_error("LLVM cannot make code of '{}' for {}: {}", module.getName().str(), target.cpu, context.errors());
  }
  return result;
}

std::string compile(std::span<const tir::PrimFunc> functions, const NativeTarget& target, CodeForm form,
                    int opt_level) {
  Context context;
  llvm::Module module(functions.size() == 1 ? tir::symbol_of(*functions[0]) : "kernels", context.get());
  for (const tir::PrimFunc& function : functions) KernelBuilder(module, target).add(*function);
  return emit_module(context, module, target, form, opt_level);
}

std::string compile_llvm(const std::string& text, const NativeTarget& target, CodeForm form, int opt_level) {
  Context context;
  llvm::SMDiagnostic diagnostic;
  const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context.get());
  if (module == nullptr) {
    throw_user_error("the LLVM text does not parse: line {}, column {}: {}", diagnostic.getLineNo(),
                     diagnostic.getColumnNo() + 1, diagnostic.getMessage().str());
  }
  return emit_module(context, *module, target, form, opt_level);
}

}  // namespace headrace::codegen::llvm_plugin
