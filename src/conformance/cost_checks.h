// Checks of the costs that a backend says, which placement by cost compares (partition/placement/by_cost.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/module.h"
#include "partition/backend.h"

namespace headrace::conformance {

// A question about costs, and the words for it in a finding.
struct CostQuestion {
  enum class Kind : uint8_t { cost, saved, border };
  Kind kind;
  int threads;
  const relay::CallNode* call = nullptr;               // asked about by a cost, or by what is saved
  std::vector<const relay::CallNode*> producers = {};  // calls of the same region; for what is saved
  Type type = {};                                      // for a border
  std::string words = {};                              // "the cost of add with 4 threads"
};

// Asks a backend about each call of a program that it takes, about the composite function of each match of its
// patterns, about pairs of them in one region, and about the tensors that they read and give.
class CostChecks {
 public:
  // `module` is typed.
  CostChecks(std::shared_ptr<const partition::Backend> backend, const IRModule& module);

  // Each returns what is wrong, and an empty string where nothing is.
  // Checks that costs are seconds from 0 to 1000, and what is saved and borders finite and not negative.
  std::string answers();
  // Checks that later questions get the answers of answers(), on this thread and on several ones. Call after it.
  std::string repeated() const;
  std::string on_threads() const;
  // Checks that the program with other names of variables, and at other places of its file, has these answers.
  std::string with_other_names(const IRModule& renamed) const;
  // Compares the seconds that a run took on one thread with the estimate of the program.
  std::string compared_with(double measured_seconds) const;

 private:
  void read_questions();
  void read_calls(const IRModule& split);
  double ask(const CostQuestion& question) const;
  double estimate() const;

  std::shared_ptr<const partition::Backend> backend_;
  IRModule module_;
  cost::Machine machine_;
  std::vector<IRModule> splits_;  // hold the calls of the questions
  std::vector<CostQuestion> questions_;
  std::vector<double> answers_;  // by question
};

}  // namespace headrace::conformance
