// From a model to an artifact: every stage in its order.
//
//   canonical passes -> native passes -> destination passing -> memory plan -> lower -> tir passes -> native code ->
//   link
#pragma once

#include "artifact/manifest.h"
#include "driver/link_artifact.h"
#include "driver/model.h"
#include "ir/target.h"
#include "load/artifact.h"
#include "pass/pass.h"
#include "base/descriptor.h"

namespace headrace::driver {

struct CompileOptions {
  Target target = make_target("llvm");  // without options: this machine
  // How the passes run, of Relay and of loops; its level, from 0 (each op by itself) to 4, is the code generator's too.
  // Type inference, notes and threads are the compile's own.
  pass::PassContext passes = {.opt_level = 3};
  // What the artifact runs with unless told otherwise, to runtime::kMaxWorkers; 0: the target's num-cores, else one a
  // processor.
  int32_t threads = 0;
  int32_t jobs =
      0;  // threads that generate code and evaluate constants; 0: one a processor. The bytes do not depend on it.
  // More weights than this go into a file beside the artifact (driver/link_artifact.h).
  int64_t weights_limit_bytes = kWeightsLimitBytes;
  bool verify_each = false;  // check the IR's rules after each pass
  // A folder that gets the loops of each kernel as text: NAME.lowered.tir as lowering made them, NAME.tir as the passes
  // left them. Made when it is not there; empty: nothing is written.
  std::string dump_tir = {};
  // Told at the start of each stage: its name, its number from 0, how many there are. Empty: nobody listens.
  std::function<void(std::string_view stage, int index, int count)> progress = {};
};

struct StageTime {
  std::string stage;
  double seconds = 0;
};

struct CompileReport {
  artifact::Manifest manifest;
  std::vector<StageTime> stages;
  std::vector<pass::PassNote> notes;  // what passes left undone, such as constants that cost too much to evaluate
  int64_t artifact_bytes = 0;         // of the file, without a side file
};

// Compiles `model` to the file `path`, in the format that its ending names (module_format.h). The file appears whole or
// not at all, as does the file of its weights, if it has one. UserError: a model that cannot be compiled (what, where,
// what to do), an option that means nothing (check_options.h), a target or format that is not known, an external module
// that cannot be saved, a file that cannot be written.
CompileReport compile_to_file(const Model& model, const std::string& path, const CompileOptions& options = {});

// The same into memory; the descriptor is ready for load::open_artifact. Weights of any size lie in it: nobody moves or
// copies it, and no bare client opens it.
struct CompiledModel {
  Descriptor descriptor;
  CompileReport report;
};
// `kept`, where there is one, becomes what link_artifact takes, to write files later; it holds the weights again.
CompiledModel compile_to_memory(const Model& model, const CompileOptions& options = {}, CompiledCode* kept = nullptr);

// The artifact that was compiled; `name` is what messages call it.
std::shared_ptr<const load::Artifact> open_compiled(CompiledModel compiled, const std::string& name);

}  // namespace headrace::driver
