// The last step of a compile: code, weights and external modules become an artifact.
#pragma once

#include "artifact/manifest.h"
#include "codegen/native.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/save_modules.h"
#include "plan/weight_table.h"

namespace headrace::driver {

// What more weights than this would make of one file: near 2 GB, distances within it stop fitting into 32 bits, which
// other people's tools for ELF files may count on.
inline constexpr int64_t kWeightsLimitBytes = 1'500'000'000;

// What a side file is called: the artifact's name and this.
inline constexpr const char* kSideFileSuffix = ".safetensors";

// All that linking needs.
struct CompiledCode {
  codegen::NativeTarget target;
  artifact::Program program;
  plan::WeightTable weights;
  std::vector<tir::PrimFunc> loops;          // the kernels as lowering made them: what C is written from
  std::vector<tir::PrimFunc> kernels;        // as the passes of loops left them
  int opt_level = 3;                         // that the code generator ran with
  std::vector<codegen::ObjectCode> objects;  // of the kernels; text is written without
  SavedModules modules;
  int32_t default_threads = 0;
};

struct LinkedArtifact {
  artifact::Manifest manifest;
  int64_t nbytes = 0;  // of the file, without a side file
};

// Links to one open file, weights of any size in it. `name` is for messages. UserError: what it cannot be written.
LinkedArtifact link_artifact(const CompiledCode& code, int descriptor, const std::string& name);

// The same to `file`, and commits it. More than `weights_limit_bytes` of weights go into a side file beside it
// (plan/side_file.h); both appear, or neither. The manifest holds the side file's name, so it is part of what the bytes
// depend on. UserError: a file that cannot be written, a side file that would replace one of `inputs`, the files that
// the model was read from, or whose name is no UTF-8.
LinkedArtifact link_artifact(const CompiledCode& code, OutputFile& file, int64_t weights_limit_bytes,
                             const std::vector<std::string>& inputs);

// The kernels as text, and nothing of the rest. UserError: a kernel that C has no words for (codegen/c_source.h).
std::string kernel_text(const CompiledCode& code, ModuleFormat format);

// The model in any format, as link_artifact of a file:
//   kShared    what that writes
//   kObject    the same parts as one relocatable object, for another linker: what that makes is an artifact once it is
//              sealed (driver/seal_library.h). It exports the kernels, so one library or program holds one such object.
//              It ends in a trailer (artifact/trailer.h), which linkers do not look at. UserError: more than
//              `weights_limit_bytes` of weights.
//   kLlvm, kAssembly, kC    kernel_text
// The manifest is that of the model, whatever of it the format holds.
LinkedArtifact write_module(const CompiledCode& code, ModuleFormat format, OutputFile& file,
                            int64_t weights_limit_bytes, const std::vector<std::string>& inputs);

}  // namespace headrace::driver
