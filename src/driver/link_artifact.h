// The last stage of a compile: links code, weights and external modules to an artifact.
#pragma once

#include "artifact/manifest.h"
#include "codegen/native.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/save_modules.h"
#include "plan/weight_table.h"

namespace headrace::driver {

// The default limit for weights inside an artifact. Near 2 GB, distances within a file no longer fit into 32 bits,
// which other ELF tools may rely on.
inline constexpr int64_t kWeightsLimitBytes = 1'500'000'000;

// The name of a side file is the artifact's name with this suffix.
inline constexpr const char* kSideFileSuffix = ".safetensors";

// The input of linking: the results of all earlier stages.
struct CompiledCode {
  codegen::NativeTarget target;
  std::vector<artifact::Program> programs;  // the one for bare clients first
  std::vector<artifact::Backend> backends;  // backends of the regions
  std::vector<artifact::Region> regions;
  std::vector<runtime::Module> region_modules;  // that of each region; null for one that has none
  plan::WeightTable weights;
  std::vector<tir::PrimFunc> loops;           // the kernels after lowering, from which C is written
  std::vector<tir::PrimFunc> kernels;         // the kernels after the tir passes
  int opt_level = 3;                          // the level of the code generator
  std::vector<codegen::ObjectCode> objects;   // the kernels' machine code; empty for text formats
  std::vector<runtime::Module> module_roots;  // the external modules: those of the model, then those of backends
  SavedModules modules;                       // the modules as bytes
  std::vector<runtime::Module> sources;       // modules with the sources of backends' kernels; no part of the artifact
  int32_t default_threads = 0;
  // In place of programs: a pipeline, and the bytes of the artifact of each of its models.
  std::optional<artifact::PipelinePlan> pipeline;
  std::vector<std::string> models;
};

// Saves the roots of the external modules, and writes into the regions which rows hold theirs.
void save_external_modules(CompiledCode& code);

struct LinkedArtifact {
  artifact::Manifest manifest;
  int64_t nbytes = 0;  // the size of the artifact's file, without a side file
};

// Writes the artifact to an open file, with weights of any size in it. Messages call the file `name`. Throws UserError
// if it cannot be written.
LinkedArtifact link_artifact(const CompiledCode& code, int descriptor, const std::string& name);

// Writes the artifact to `file` and commits it. If the weights have more than `weights_limit_bytes`, they go into a
// side file beside it (plan/side_file.h); both files appear, or neither. The artifact's bytes depend on the side file's
// name, which the manifest holds. Throws UserError for a file that cannot be written, and for a side file that would
// replace one of `inputs` (the files that the model was read from) or whose name is not UTF-8.
LinkedArtifact link_artifact(const CompiledCode& code, OutputFile& file, int64_t weights_limit_bytes,
                             const std::vector<std::string>& inputs);

// Returns the kernels as text, without program and weights. Throws UserError for a kernel that cannot be expressed in C
// (codegen/c_source.h).
std::string kernel_text(const CompiledCode& code, ModuleFormat format);

// Writes the model to `file` in any format, and commits it:
//   kShared    the shared object that link_artifact writes
//   kObject    the parts of that shared object as one relocatable object, for another linker. The library that it links
//              is an artifact once it is sealed (driver/seal_library.h). The object exports the kernels, so a library
//              or program can contain only one such object. It ends in a trailer (artifact/trailer.h), which linkers
//              ignore. Throws UserError for weights of more than `weights_limit_bytes`.
//   kLlvm, kAssembly, kC    the text that kernel_text returns
// The returned manifest is that of the whole model, whichever parts the format holds.
LinkedArtifact write_module(const CompiledCode& code, ModuleFormat format, OutputFile& file,
                            int64_t weights_limit_bytes, const std::vector<std::string>& inputs);

}  // namespace headrace::driver
