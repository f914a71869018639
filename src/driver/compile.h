// Compiles a model to an artifact. The stages, in order:
//
//   canonical passes -> placement -> backends' compile of their regions ------------------------------.
//                                '-> native passes -> plan -> lower -> tir passes -> emit -> native code -> link
#pragma once

#include "artifact/manifest.h"
#include "driver/link_artifact.h"
#include "driver/model.h"
#include "ir/target.h"
#include "load/artifact.h"
#include "partition/place_override.h"
#include "pass/pass.h"
#include "base/descriptor.h"

namespace headrace::driver {

// How backends are chosen.
enum class Placement : uint8_t {
  order,  // each op goes to the first backend of the list that takes it
  cost,   // the plan of least cost (partition/placement/by_cost.h); needs backends
};
// Returns the placement of that name; UserError, which calls the option `option`, for any other name.
Placement read_placement(const std::string& option, const std::string& name);

struct CompileOptions {
  Target target = make_target("llvm");  // without options: this machine
  // Configures the Relay and tir passes. Its level, from 0 (one kernel for each op) to 4, also sets that of the code
  // generator. The compile sets type inference, notes and threads itself and ignores those given here.
  pass::PassContext passes = {.opt_level = 3};
  // The default number of threads that run the artifact, at most runtime::kMaxWorkers. 0: the target's num-cores, or
  // one for each processor.
  int32_t threads = 0;
  // The number of threads that generate code and evaluate constants. 0: one for each processor. The artifact's bytes do
  // not depend on it.
  int32_t jobs = 0;
  // Weights of more bytes than this go into a file beside the artifact (driver/link_artifact.h).
  int64_t weights_limit_bytes = kWeightsLimitBytes;
  // The backends beside the native one, in the order of their priority; those of the target's option -extern= come
  // after them.
  std::vector<std::string> backends = {};
  Placement placement = Placement::order;
  // A file of measured costs (partition/placement/cost_table.h) for placement by cost, or that `plan` must have been
  // made by; "cache": those that profiles keep (driver/cost_cache.h); empty: none.
  std::string costs = {};
  // Options of backends, by name: "cc" of "ccompiler". They replace those of the pass configuration.
  std::map<std::string, Map<std::string, Value>> backend_options = {};
  // A file that says where each op goes (partition/plan_file/plan.h), in place of the order of `backends`; empty: none.
  // `backends` may then be empty, or must be those of the plan.
  std::string plan = {};
  // The text of the plan, where it was read before (read_plan_file) or stands in no file; `plan` is its name then.
  std::optional<std::string> plan_text = {};
  // Ops that go elsewhere than the order or the plan says. The first whose pattern matches an op decides.
  std::vector<partition::PlaceOverride> overrides = {};
  // Whether a region is compiled natively, too, for runs in which its backend is missing or fails.
  bool native_forms = true;
  bool verify_each = false;  // check the IR's rules after each pass
  // A folder to which each kernel's loops are written as text: NAME.lowered.tir after lowering, NAME.tir after the tir
  // passes. Created if it does not exist. Empty: nothing is written.
  std::string dump_tir = {};
  // Called at the start of each stage with its name, its index from 0 and the number of stages. May be empty.
  std::function<void(std::string_view stage, int index, int count)> progress = {};
};

struct StageTime {
  std::string stage;
  double seconds = 0;
};

struct CompileReport {
  artifact::Manifest manifest;
  std::vector<StageTime> stages;
  std::vector<pass::PassNote> notes;  // rewrites that passes skipped, such as constants too expensive to evaluate
  int64_t artifact_bytes = 0;         // the size of the artifact's file, without a side file
  // Where the costs of a placement by cost are from, as a phrase (partition::PlanCost); empty for another placement.
  std::string cost_source = {};
};

// Compiles `model` to the file `path`, in the format that its extension names (module_format.h). The file and its side
// file of weights, if there is one, appear complete or not at all. Throws UserError for a model that cannot be
// compiled, an invalid option (check_options.h), an unknown target or format, an external module that cannot be saved,
// and a file that cannot be written. A model that is moved in gives up constants as passes replace them: a compile then
// takes less memory.
CompileReport compile_to_file(Model model, const std::string& path, const CompileOptions& options = {});

// An artifact in memory. The descriptor is ready for load::open_artifact. Weights of any size are stored in it, without
// a side file.
struct CompiledModel {
  Descriptor descriptor;
  CompileReport report;
};
// Compiles `model` into memory. Throws UserError as compile_to_file. If `kept` is not null, it receives the input of
// link_artifact, from which files can be written later; it holds a second copy of the weights.
CompiledModel compile_to_memory(Model model, const CompileOptions& options = {}, CompiledCode* kept = nullptr);

// Opens the compiled artifact. Messages call it `name`.
std::shared_ptr<const load::Artifact> open_compiled(CompiledModel compiled, const std::string& name);

}  // namespace headrace::driver
