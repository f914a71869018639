// Evaluates constants while a program is compiled: within a budget, on several threads.
#pragma once

#include "interp/interp.h"
#include "ops/eval_work.h"

namespace headrace::interp {

// What the constants of one program may cost a compile: a few seconds and 64 MB for a small program, and in proportion
// to the data of a large one. So a short text cannot make a compile run for minutes or write a huge file.
class ConstantBudget {
 public:
  // `source_bytes`: the data of the program's own constants.
  explicit ConstantBudget(int64_t source_bytes, int32_t threads = 1);

  // The limits of the next evaluation. Small ones are allowed even when all is spent.
  ops::EvalWork::Limits next() const;
  void charge(const ops::EvalWork& work);

 private:
  int64_t steps_left_, bytes_left_;
  int32_t threads_;
};

struct Evaluation {
  enum class Outcome : uint8_t {
    done,
    refused,     // an op refuses these operands; a program that comes to it reports that when it runs
    over_budget  // `why` says which limit
  };
  Outcome outcome = Outcome::done;
  Value value;
  std::string why;
};

// Evaluates a closed expression. Throws every error except that an op refuses its operands: an interrupt, an exception
// of a user's function, a missing part.
Evaluation evaluate(const Expr& closed, ConstantBudget& budget);

}  // namespace headrace::interp
