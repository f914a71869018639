// Evaluates constant expressions at compile time, within a budget and on several threads.
#pragma once

#include "interp/interp.h"
#include "ops/eval_work.h"

namespace headrace::interp {

// Limits how much work and memory one run of a pass spends on evaluating the constants of a program, so that a short
// text cannot make a compile run for minutes or write a huge file. The budget is 4e8 steps (a few seconds) and 64 MB of
// results, plus 50 steps and 4 bytes for each byte of the program's own constants. A step is defined in EvalWork.
class ConstantBudget {
 public:
  // `source_bytes` is the size of the program's own constants.
  explicit ConstantBudget(int64_t source_bytes, int32_t threads = 1);

  // Returns the limits of the next evaluation: all that is left. Even with nothing left it allows 20,000 steps and
  // 64 kB, because types depend on the values of shapes, axes and scalars.
  ops::EvalWork::Limits next() const;
  // Subtracts the work of an evaluation, finished or not.
  void charge(const ops::EvalWork& work);

 private:
  int64_t steps_left_, bytes_left_;
  int32_t threads_;
};

struct Evaluation {
  enum class Outcome : uint8_t {
    done,
    refused,     // an op rejects its operands; `why` is its error. The program throws it if it runs the op
    over_budget  // `why` says which limit
  };
  Outcome outcome = Outcome::done;
  Value value;
  std::string why;
};

// Evaluates a closed expression and charges the budget for it. An op that rejects its operands and an exceeded limit
// are outcomes; all other errors are thrown: an interrupt, an exception of a user's function, a missing library.
Evaluation evaluate(const Expr& closed, ConstantBudget& budget);

}  // namespace headrace::interp
