// Plans: which backend computes each op of one model, as a file that people read, edit, keep and compare.
//
//   {
//     "headrace": "plan",
//     "version": 2,
//     "model": {
//       "hash": "1d1a03f4cb2d3a4ec2f8a1a4a3d6a7d8",
//       "inputs": ["x: Tensor[(1, 1, 8, 8), float32]"]
//     },
//     "costs": "8f1d0c3a5e7b9d2c4a6f8e0b1c3d5f7a",
//     "backends": [
//       {"name": "ccompiler", "version": "1"}
//     ],
//     "ops": [
//       {"name": "conv1", "kind": "nn.conv2d", "backend": "native", "reason": 20, "message": "ccompiler: ..."},
//       {"name": "relu1", "kind": "nn.relu", "backend": "ccompiler", "reason": 63, "message": "it is the first ..."},
//       {"name": "tanh2", "kind": "x.exp_tanh", "backend": "x", "parts": [{"name": "exp2", "kind": "exp"},
//        {"name": "tanh2", "kind": "tanh"}], "reason": 63, "message": "it is the first ..."}
//     ],
//     "cost": {"seconds": 1.2e-05, "lower_bound": 1.1e-05, "gap": 1e-06, "source": "estimated by ..."}
//   }
//
// Ops are in the order of evaluation; two of one name and kind are told apart by "#2" behind the name, whichever
// patterns match them (plan_names.h). What a pattern matches has one row, under the name of its last op; its `parts`
// are all its ops, which have no rows unless something else uses them. Files of version 1 have no parts; they are read,
// and can be used where no pattern has a row. `costs` is the hash of the file of measured costs that the plan was made
// by; a plan that was made without has no such key. `cost` says what the plan costs, in seconds, and `reason` and
// `message` why the op is there; they are for readers, may be left out, and decide nothing. Names of backends may be
// aliases.
#pragma once

#include <headrace/reason.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/json_text.h"

namespace headrace::partition {

inline constexpr int64_t kPlanVersion = 2;
// The message of an op for which a plan says nothing else.
inline constexpr const char* kByPlan = "the plan says so";

// A piece of the text that a plan was read from.
struct TextRange {
  size_t begin = 0, end = 0;
};

struct PlannedBackend {
  std::string name;
  std::string version;
  TextRange at = {};
};

// An op of a piece that a pattern matches.
struct PlannedPart {
  std::string name;
  std::string kind;
  TextRange at = {};
};

struct PlannedOp {
  std::string name;     // name of the op, unique in the plan
  std::string kind;     // "nn.conv2d", or the name of a pattern
  std::string backend;  // one of the plan's, "native" or "external"
  hr_reason reason = HR_REASON_NONE;
  std::string message = {};
  std::vector<PlannedPart> parts = {};  // the ops of a pattern
  TextRange at = {};                    // the row
  TextRange backend_at = {};            // the backend in it
};

// The cost of a plan, and a cost that no plan is below; for readers of the file.
struct PlannedCost {
  double seconds = 0, lower_bound = 0;
  std::string source;  // where the costs of calls are from
};

struct Plan {
  std::string model_hash;
  std::vector<std::string> inputs;  // inputs of the model, with their types
  std::vector<PlannedBackend> backends;
  std::vector<PlannedOp> ops;
  std::optional<PlannedCost> cost = {};          // known where the plan was made here, not where it was read
  std::string costs_hash = {};                   // hash of the measured costs that it was made by; empty: none
  std::shared_ptr<const NamedText> source = {};  // where it was read from; null for one that was not read
  TextRange hash_at = {}, ops_at = {}, costs_at = {0, 1};
};

// Reads a plan; `name` is that of the file in messages. UserError with line and column for what is not a plan of
// version 1 or 2: wrong JSON, a missing, unknown or repeated key, a value of another type, a backend that is not in the
// plan's list, and an op, a backend or a part of a row that is there twice.
Plan parse_plan(std::string text, const std::string& name);

// Returns the text of a plan. Equal plans give equal bytes.
std::string print_plan(const Plan& plan);

// Returns what differs from `before` to `after`, in the order of `before`'s ops and then of ops that only `after` has.
// Rows of patterns with other parts are other rows.
struct PlanChange {
  std::string name, kind;
  std::string before, after;  // backends; empty: the plan has no such op
};
std::vector<PlanChange> compare_plans(const Plan& before, const Plan& after);

}  // namespace headrace::partition
