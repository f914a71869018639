// The narrow interface to native code: machine descriptions, compilation to objects, linking to one shared object.
// The work is done by a plugin, libheadrace_llvm.so; no header of LLVM or lld is seen here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tir/stmt.h"

namespace headrace::codegen {

struct NativePlugin;

// The machine that code is made for. Two equal targets give equal bytes; "native" is resolved to this once, and then
// recorded, so that a compile never depends on the machine behind the caller's back.
struct NativeTarget {
  std::string triple;    // "x86_64-unknown-linux-gnu"
  std::string cpu;       // a processor that LLVM knows: "znver4", "x86-64-v3"
  std::string features;  // every feature by name, "+avx2,-avx512f,...", sorted: the whole truth, whatever `cpu` implies
  std::vector<std::string> enabled;  // the names with a plus, sorted
  int vector_bits = 128;             // widest vector register that code should use

  bool has(std::string_view feature) const;
  bool operator==(const NativeTarget&) const = default;
};

// A target as users write it: `-mcpu=` ("native" or empty: this machine), `-mattr=` ("+fma,-avx512f"), `-mtriple=`
// (empty: this machine's).
struct TargetRequest {
  std::string cpu;
  std::string features;
  std::string triple;
};

// The bytes of one relocatable object, and the name that messages use for it.
struct ObjectCode {
  std::string name;
  std::string bytes;
};

// Output forms: a relocatable object, LLVM text before optimisation, LLVM text after it, assembly.
enum class CodeForm : uint8_t { kObject, kInputLlvm, kLlvm, kAssembly };

struct CompileOptions {
  int opt_level = 3;  // 0 to 3
  int jobs = 1;       // threads; the bytes do not depend on it
};

// A read-only section of the shared object: chunks at their offsets, with zero bytes between them. Chunks are borrowed:
// they must live until link() returns, and are copied once, into the output.
struct DataSection {
  struct Chunk {
    uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  std::string name;         // ".headrace.params": starts with '.', of letters, digits, '.', '_'
  uint64_t alignment = 64;  // a power of two, at most 4096
  uint64_t size_bytes = 0;
  std::vector<Chunk> chunks;  // ascending, not overlapping
  std::string symbol;         // when not empty: the name of the section's first byte, for code and for `exports`
};

// A shared object that the loader opens, or a relocatable object with the same symbols and sections, for another
// linker.
enum class LinkForm : uint8_t { kShared, kRelocatable };

struct LinkRequest {
  NativeTarget target;
  LinkForm form = LinkForm::kShared;
  std::span<const ObjectCode> objects;
  std::span<const DataSection> sections;
  std::span<const std::string> exports;  // the dynamic symbols; everything else becomes local. Not of a relocatable one
  std::string soname = "headrace-model.so";
  std::string output = "the linked library";  // its name in messages
};

class NativeCompiler {
 public:
  // Loads the plugin from `plugin_path`, or, when that is empty, from the folder of Headrace's core library. Loaded
  // once, never unloaded. MissingError: the plugin is missing, is not one, or belongs to another version of Headrace.
  static NativeCompiler load(const std::string& plugin_path = {});

  NativeTarget host_target() const { return resolve_target({}); }
  // Returns the version of the plugin's LLVM, "19.1.7".
  std::string llvm_version() const;

  // Resolves a target. UserError for an unknown processor, feature or triple, with the nearest known names.
  NativeTarget resolve_target(const TargetRequest& request) const;

  // Compiles one object for each function, in their order; each defines its global_symbol, of type hr_kernel. A
  // worker's workspace must have the size that workspace_of (tir/workspace.h) gives. UserError: a dtype that
  // native code does not support.
  std::vector<ObjectCode> compile(std::span<const tir::PrimFunc> functions, const NativeTarget& target,
                                  const CompileOptions& options) const;

  // Returns LLVM text or assembly of functions, in one module.
  std::string emit_text(std::span<const tir::PrimFunc> functions, const NativeTarget& target, CodeForm form,
                        int opt_level) const;

  // Compiles modules in LLVM's text form, one object each, joined by index. UserError: the text does not parse, or is
  // not valid LLVM.
  std::vector<ObjectCode> compile_llvm(std::span<const std::string> texts, const NativeTarget& target,
                                       const CompileOptions& options) const;

  // Returns LLVM text or assembly of one such module.
  std::string emit_llvm(const std::string& text, const NativeTarget& target, CodeForm form, int opt_level) const;

  // Links objects and data sections into one ELF file, written to `output_fd` from offset 0 (a memfd, or a
  // temporary file that the caller renames). Same request, same bytes. Sections lie after the code, in one segment that
  // is mapped read-only. No library is needed but libm.so.6 and libc.so.6, and those only when used.
  // Safe to call from several threads; lld itself runs one link at a time in a process.
  // UserError: an object that is not one or is of another machine, an undefined symbol, an export that no object
  // defines, a write that failed.
  void link(const LinkRequest& request, int output_fd) const;

  // Returns the bytes of a shared object made of one relocatable one, which brings its data with it; all that is
  // visible in it is exported. UserError as link.
  std::string link_object(const ObjectCode& object, const NativeTarget& target) const;

 private:
  explicit NativeCompiler(const NativePlugin* plugin) : plugin_(plugin) {}
  const NativePlugin* plugin_;
};

}  // namespace headrace::codegen
