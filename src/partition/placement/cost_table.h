// CostTable: measured times of calls and of whole plans, as a file. `headrace profile` writes it; placement by cost
// reads it.
//
//   {"headrace_costs": 3, "cpu": "znver4", "threads": 1, "costs": [
//     {"call": "fn (%x0: ...) { nn.relu(%x0) }", "backend": "native", "version": "0.1.0", "seconds": 1.2e-06}],
//    "plans": [
//     {"model": "1f0c...", "plan": "native", "version": "0.1.0", "seconds": 0.0068},
//     {"model": "1f0c...", "plan": "onednn,ccompiler", "version": "2, oneDNN 2.6.3,1", "seconds": 0.0071},
//     {"model": "1f0c...", "plan": "onednn,ccompiler by cost 8e3a...", "version": ..., "seconds": 0.0066}]}
//
// A call is known by its op or composite function, its attributes, and the shapes and dtypes of its arguments. A whole
// plan is known by the hash of the model's module (driver/placing.h), and by its name: "native" for native code alone,
// else the list of backends in whose order the ops were placed, or of which a plan of least cost was tried, with the
// hash of where that plan has the ops. Files of version 1, which have no plans, and of version 2, which have none by
// cost, are read, too.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "partition/json_text.h"
#include "relay/expr.h"

namespace headrace::partition {

// Returns the text that a typed call is known by. Arguments that are constants have names that differ from those of
// others; their values do not count.
std::string cost_key(const relay::CallNode& call);

// Returns a program that computes the call alone, on parameters for all arguments that are not constants.
relay::Function program_of_call(const relay::CallNode& call);

// Stands in the names of tried plans, between the list of backends and the hash.
inline constexpr std::string_view kByCost = " by cost ";

struct MeasuredCost {
  std::string version;  // the backend's version; of a plan those of its backends, with commas between them
  double seconds = 0;
};

struct CostTable {
  std::string source = "the costs";  // for messages
  std::string cpu;                   // that the code was made for, by LLVM's name
  int64_t threads = 1;
  std::map<std::pair<std::string, std::string>, MeasuredCost> costs;  // by the call's key and the backend

  std::map<std::pair<std::string, std::string>, MeasuredCost> plans = {};  // by the model's hash and the plan's name

  // Returns the seconds of a call by a backend, or natively; nothing when they were not measured.
  std::optional<double> find(const std::string& key, const std::string& backend) const;
  // Returns the whole plan of that name; null when it was not measured for the model.
  const MeasuredCost* find_plan(const std::string& model, const std::string& plan) const;
};

// Returns the text of a file.
std::string to_json(const CostTable& table);

// Reads the text of a file. UserError that says where, for a text that is not such a table or of another version.
CostTable parse_cost_table(const NamedText& text);

}  // namespace headrace::partition
