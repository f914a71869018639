// The manifest: the description of an artifact's content. Plain structs that the compiler writes and the runtime reads;
// manifest_json.h has their JSON text, check_manifest.h the rules they keep.
#pragma once

#include <headrace/kernel_abi.h>
#include <headrace/reason.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "artifact/location.h"
#include "artifact/pipeline_plan.h"
#include "artifact/tensor_spec.h"
#include "tensor/data_type.h"

namespace headrace::artifact {

// Version of the manifest that this build writes, and the oldest that it reads.
inline constexpr int64_t kManifestVersion = 11;
inline constexpr int64_t kManifestOldest = 2;

// Names of the ELF sections.
inline constexpr const char* kManifestSection = ".headrace.manifest";
inline constexpr const char* kWeightsSection = ".headrace.weights";
inline constexpr const char* kBlobSectionPrefix = ".headrace.blob.";

// The program that bare clients run.
inline constexpr const char* kDefaultProgram = "default";

struct Target {
  std::string triple;                 // "x86_64-unknown-linux-gnu"
  std::string cpu;                    // LLVM's name; information only
  std::vector<std::string> features;  // LLVM's names; the code needs each of them
};

// Memory that a run holds in one place for what lies between inputs and outputs.
struct Arena {
  Location location = {};
  int64_t nbytes = 0;
};

// A piece of an arena. Storages whose values are never alive at the same time overlap.
struct Storage {
  int32_t arena = 0;   // an arena of the plan; the storage lies where the arena does
  int64_t offset = 0;  // bytes from the arena's start; a multiple of HR_ALIGNMENT
  int64_t nbytes = 0;
};

struct MemoryPlan {
  std::vector<Arena> arenas;    // one per location
  int64_t workspace_bytes = 0;  // scratch of one worker; a multiple of HR_ALIGNMENT
  std::vector<Storage> storages;
};
// Returns the bytes of all arenas.
int64_t arena_bytes(const MemoryPlan& memory);

enum class Place { kStorage, kWeight, kInput, kOutput };

// A value as a step sees it: a view of a storage, a weight, an input or an output. Reshapes and slices are entries that
// share a base; they cost no step.
struct Entry {
  Place place = Place::kStorage;
  int64_t index = 0;        // which storage, weight, input or output
  int64_t byte_offset = 0;  // from the start of that base
  DataType dtype = {};
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // in elements, not negative; empty: contiguous
  // The location of its base. A weight is brought there when an executor is made.
  Location location = {};
};

// Calls a function of the artifact's own code.
struct KernelCall {
  std::string symbol;
};
// Calls an import: a function of an external module or of the process, as ops of users are.
struct ExternalCall {
  std::string function;
};
// Runs a region of the manifest: its backend's function, or the region's native form where that cannot be had.
struct RegionCall {
  std::string region;  // its name
};
// Copies args[0] to args[1], both contiguous and of one dtype and shape (an output that is an input).
struct CopyStep {};
using StepAction = std::variant<KernelCall, ExternalCall, RegionCall, CopyStep>;

// Returns the action's name, as manifests and `headrace inspect` show it: "kernel", "external", "region",
// "copy".
std::string_view name_of(const StepAction& action);
// Returns the name of the function or region that is called; empty for a copy.
const std::string& callee_of(const StepAction& action);
// Returns whether only the runtime library runs the action. The static main of a file runs the others by itself.
bool needs_runtime(const StepAction& action);
// Returns an action by its name, calling `callee`; nothing when there is no action of that name.
std::optional<StepAction> make_step_action(std::string_view name, std::string callee);

struct Step {
  StepAction action = KernelCall{};
  std::vector<int32_t> args = {};  // entries: inputs, then outputs
  int32_t num_outputs = 1;         // the last so many of `args` are written
  std::string op = {};             // the name that the user knows: node names of the model; may be empty
  // Arithmetic operations; a multiply-add counts as two. An estimate by the sizes of tensors; 0: none, or not known.
  int64_t operations = 0;
};

// A flat list, run in order.
struct GraphProgram {
  std::vector<Entry> entries;
  std::vector<Step> steps;
};

// The backend that runs an op of the model, and why no other does.
struct Placement {
  std::string op;         // where the op stands in the model, or its name
  std::string kind = {};  // its name: "nn.conv2d"
  std::string backend;    // "native", or the name of another compiler
  hr_reason reason = HR_REASON_NONE;
  std::string message;
  std::string region = {};  // the region that holds the op; empty: none
};

// Says what the compiler left undone, and why; no error.
struct CompileNote {
  std::string pass;  // "FoldConstant"
  std::string op;    // where in the model; may be empty
  hr_reason reason = HR_REASON_NONE;
  std::string message;
};

// An output whose size only a run tells. Its spec has the largest possible shape, and a run writes memory of that size.
// After the run the entry `extent`, an int64 of one element, says how many indices of `axis` count; they lie dense at
// the start of the output's memory.
struct BoundedOutput {
  int64_t output = 0;
  int64_t axis = 0;
  int32_t extent = 0;  // an entry
};

// A parameter that got its value when the program was compiled. It is a constant of the program and not an input.
struct BoundParam {
  TensorSpec spec;
  std::string hash;  // hash of its bytes, as Weight::hash
};

struct Program {
  std::string name;
  std::string region;  // the region whose native form this is; empty: a program of the model
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<BoundedOutput> bounded_outputs;  // an output at most once
  std::vector<BoundParam> bound_params;        // each has a name of its own
  Target target;
  std::string compiler;  // version of Headrace that made it
  int64_t kernel_abi = HR_KERNEL_ABI_VERSION;
  MemoryPlan memory;
  GraphProgram graph;
  std::vector<Placement> placement;
  std::vector<CompileNote> notes;
};

// XXH3-128 as 32 hexadecimal digits.
using ContentHash = std::string;

// One constant; equal contents are stored once.
struct Weight {
  ContentHash hash;
  int64_t offset = 0;  // bytes from the start of the weights section or of the side file; a multiple of HR_ALIGNMENT
  int64_t nbytes = 0;
  DataType dtype;
  std::vector<int64_t> shape;
};

// The file for weights that exceed the limit of one ELF file: a safetensors file beside the artifact.
struct SideFile {
  std::string name;  // a plain file name, in the artifact's folder
  int64_t nbytes = 0;
  ContentHash hash;
};

struct ExternalModule {
  std::string loader;                   // key in the table of loaders
  std::string section;                  // its blob
  std::vector<int32_t> imports;         // modules it imports; each comes later in the list, so the tree has no cycle
  std::vector<int64_t> constants = {};  // weights of the manifest, which the loader gets beside the blob
};

// A compiler or library beside the native one that made a part of the file.
struct Backend {
  std::string name;
  std::string version;  // the backend's own; may be empty
};

// A part of a program that another backend computes. Its code is a kernel of the file, a function of one of the file's
// modules, or else a function of the process.
struct Region {
  std::string name;           // also that of its function
  std::string backend;        // one of the manifest's backends
  std::string symbol = {};    // its kernel in the file's own code; empty: none
  int32_t module = -1;        // the module that has its function, itself or by an import; -1: none
  std::string fallback = {};  // the program that computes the same natively; empty: none
  std::string body = {};      // the function as Relay text; its large constants are `body_weights`, in order
  std::vector<int64_t> body_weights = {};  // weights of the manifest
};

struct Manifest {
  std::vector<Program> programs;
  std::vector<Weight> weights;
  std::optional<SideFile> side_file;  // holds all weights when present; otherwise the weights section does
  std::vector<ExternalModule> modules;
  std::vector<Backend> backends;
  std::vector<Region> regions;
  std::optional<PipelinePlan> pipeline;  // present in the file of a pipeline, which has no programs of its own
  int32_t default_threads = 0;           // 0: one per core
};

// Returns the program, or the region, of that name, or nullptr.
const Program* find_program(const Manifest& manifest, std::string_view name);
const Region* find_region(const Manifest& manifest, std::string_view name);

}  // namespace headrace::artifact
