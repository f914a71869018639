#include "codegen/llvm/target.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "cost/machine.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
void LLVMInitializeX86AsmParser();
void LLVMInitializeAArch64TargetInfo();
void LLVMInitializeAArch64Target();
void LLVMInitializeAArch64TargetMC();
void LLVMInitializeAArch64AsmPrinter();
void LLVMInitializeAArch64AsmParser();
void LLVMInitializeRISCVTargetInfo();
void LLVMInitializeRISCVTarget();
void LLVMInitializeRISCVTargetMC();
void LLVMInitializeRISCVAsmPrinter();
void LLVMInitializeRISCVAsmParser();
}

namespace headrace::codegen::llvm_plugin {

namespace {

// Registers LLVM's targets, once: the registry is a linked list without a lock.
void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
    LLVMInitializeRISCVAsmParser();
  });
}

const llvm::Target& find_target(const std::string& triple) {
  initialize_llvm();
  const llvm::Triple parsed(triple);
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (target == nullptr || !parsed.isOSLinux() || !parsed.isArch64Bit() || parsed.isX32() || !parsed.isLittleEndian()) {
    throw_user_error(
        "cannot make code for the triple '{}'; known are x86_64, aarch64 and riscv64 on Linux, such as "
        "x86_64-unknown-linux-gnu",
        triple);
  }
  return *target;
}

// Returns the three names nearest to `word`, for messages.
template <typename Table>
std::string nearest(std::string_view word, const Table& table) {
  std::vector<std::pair<unsigned, std::string_view>> ranked;
  const llvm::StringRef wanted(word.data(), word.size());
  for (const auto& row : table) ranked.emplace_back(wanted.edit_distance(row.Key), row.Key);
  std::sort(ranked.begin(), ranked.end());
  std::string text;
  for (size_t i = 0; i < ranked.size() && i < 3; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranked[i].second);
  return text;
}

std::vector<std::string> split_features(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (!word.empty()) words.emplace_back(word);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return words;
}

void check_features(const std::vector<std::string>& words, const llvm::MCSubtargetInfo& info) {
  for (const std::string& word : words) {
    const std::string_view name = std::string_view(word).substr(1);
    if (word[0] != '+' && word[0] != '-') {
      throw_user_error("bad processor feature '{}': write +name to use it or -name to avoid it", word);
    }
    const auto features = info.getAllProcessorFeatures();
    const bool known = std::any_of(features.begin(), features.end(), [&](const auto& row) { return row.Key == name; });
    if (!known) {
      throw_user_error("unknown processor feature '{}' for this architecture; near are {}", name,
                       nearest(name, features));
    }
  }
}

// Adds the names of `features` and of all features that these imply.
void add_closure(const llvm::MCSubtargetInfo& info, const llvm::FeatureBitset& features, llvm::StringSet<>& names) {
  for (const auto& row : info.getAllProcessorFeatures()) {
    if (features.test(row.Value) && names.insert(row.Key).second) add_closure(info, row.Implies.getAsBitset(), names);
  }
}

// Returns the features that LLVM's tables give to processors for tuning alone, such as fusing pairs of instructions.
llvm::StringSet<> tuning_hints(const llvm::MCSubtargetInfo& info) {
  llvm::StringSet<> hints, others;
  for (const auto& processor : info.getAllProcessorDescriptions()) {
    add_closure(info, processor.TuneImplies.getAsBitset(), hints);
    add_closure(info, processor.Implies.getAsBitset(), others);
  }
  for (const auto& other : others) hints.erase(other.getKey());
  return hints;
}

// LLVM's feature list mixes instruction sets with tuning hints. A feature of some x86 processor in LLVM's parser tables
// counts as an instruction set; of other architectures all features count that are not hints.
bool is_instruction_set(const llvm::Triple& triple, llvm::StringRef feature, const llvm::StringSet<>& hints) {
  static const llvm::StringSet<> x86 = [] {
    llvm::StringSet<> names;
    llvm::SmallVector<llvm::StringRef, 128> processors;
    llvm::X86::fillValidCPUArchList(processors);
    for (llvm::StringRef processor : processors) {
      llvm::SmallVector<llvm::StringRef, 128> features;
      llvm::X86::getFeaturesForCPU(processor, features);
      for (llvm::StringRef it : features) names.insert(it);
    }
    return names;
  }();
  return triple.isX86() ? x86.contains(feature) : !hints.contains(feature);
}

// Refuses a processor without the features that 64-bit code needs: LLVM would end the process, or make code that cannot
// be linked.
void check_base(const llvm::Triple& triple, const std::string& cpu, const llvm::MCSubtargetInfo& info) {
  if (!triple.isX86()) return;
  constexpr std::string_view kNeeded[] = {"64bit", "64bit-mode", "x87", "sse", "sse2", "cx8", "cmov"};
  constexpr std::string_view kOther[] = {"32bit-mode", "16bit-mode", "soft-float"};
  for (const auto& row : info.getAllProcessorFeatures()) {
    const bool on = info.getFeatureBits().test(row.Value);
    const std::string_view name = row.Key;
    const bool is_needed = std::find(std::begin(kNeeded), std::end(kNeeded), name) != std::end(kNeeded);
    const bool is_other = std::find(std::begin(kOther), std::end(kOther), name) != std::end(kOther);
    const bool is_retpoline = name.starts_with("retpoline") || name.starts_with("lvi-");
    if ((is_needed && !on) || ((is_other || is_retpoline) && on))
      throw_user_error("cannot make 64-bit code for processor '{}' {} feature '{}'{}", cpu, on ? "with" : "without",
                       name, is_needed ? "; x86-64 is the least processor" : "");
  }
}

std::string default_cpu(const llvm::Triple& triple) {
  if (triple.isX86()) return "x86-64";
  return triple.isAArch64() ? "generic" : "generic-rv64";
}

// Returns the features of this machine's processor: "+avx2", "-sse4a", ...
std::vector<std::string> host_features() {
  std::vector<std::string> words;
  for (const auto& it : llvm::sys::getHostCPUFeatures()) words.push_back((it.second ? "+" : "-") + it.first().str());
  std::sort(words.begin(), words.end());
  return words;
}

}  // namespace

NativeTarget resolve_target(const TargetRequest& request) {
  const llvm::Triple host(llvm::sys::getProcessTriple());
  const llvm::Triple triple(request.triple.empty() ? host.str() : llvm::Triple::normalize(request.triple));
  const llvm::Target& target = find_target(triple.str());
  const bool at_home = triple.getArch() == host.getArch();
  const bool native = request.cpu == "native" || (request.cpu.empty() && at_home);
  if (native && !at_home) {
    throw_user_error("-mcpu=native cannot be used for {}: this machine is {}", triple.str(), host.str());
  }

  std::string cpu = request.cpu.empty() ? default_cpu(triple) : request.cpu;
  std::vector<std::string> words;
  if (native) {
    cpu = llvm::sys::getHostCPUName().str();
    words = host_features();
  }
  // Unknown names make LLVM print a warning and go on, so they are looked up in the tables before they are used.
  const std::unique_ptr<llvm::MCSubtargetInfo> plain(target.createMCSubtargetInfo(triple.str(), "", ""));
  if (!plain->isCPUStringValid(cpu)) {
    throw_user_error("unknown processor '{}' for {}; near are {}; headrace targets lists the usual ones", cpu,
                     triple.getArchName().str(), nearest(cpu, plain->getAllProcessorDescriptions()));
  }
  const std::vector<std::string> asked = split_features(request.features);
  check_features(asked, *plain);
  words.insert(words.end(), asked.begin(), asked.end());
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ",") + word;

  const std::unique_ptr<llvm::MCSubtargetInfo> info(target.createMCSubtargetInfo(triple.str(), cpu, joined));
  check_base(triple, cpu, *info);
  const llvm::StringSet<> hints = triple.isX86() ? llvm::StringSet<>() : tuning_hints(*info);
  NativeTarget result{.triple = triple.str(), .cpu = cpu, .features = {}, .enabled = {}};
  for (const auto& row : info->getAllProcessorFeatures()) {
    const bool on = info->getFeatureBits().test(row.Value);
    result.features += fmt::format("{}{}{}", result.features.empty() ? "" : ",", on ? '+' : '-', row.Key);
    if (on && is_instruction_set(triple, row.Key, hints)) result.enabled.emplace_back(row.Key);
  }
  std::sort(result.enabled.begin(), result.enabled.end());
  result.vector_bits = cost::vector_bits_of(result.enabled);
  return result;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const NativeTarget& target, int opt_level) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const auto level = llvm::CodeGenOpt::getLevel(std::clamp(opt_level, 0, 3));
  std::unique_ptr<llvm::TargetMachine> machine(find_target(target.triple)
                                                   .createTargetMachine(target.triple, target.cpu, target.features,
                                                                        options, llvm::Reloc::PIC_,
                                                                        llvm::CodeModel::Small, *level));
  HEADRACE_CHECK(machine != nullptr, "LLVM makes no target machine for {} {}", target.triple, target.cpu);
  return machine;
}

}  // namespace headrace::codegen::llvm_plugin
