#include "interp/evaluate.h"

#include <algorithm>

namespace headrace::interp {

namespace {

// A step takes one to twenty-five nanoseconds (step_time_test.cc).
constexpr int64_t kSteps = 400'000'000, kStepsPerByte = 50;
constexpr int64_t kBytes = int64_t{64} << 20, kBytesPerByte = 4;
// Shapes, axes and scalars are always evaluated: types depend on them.
constexpr int64_t kFreeSteps = 20'000, kFreeBytes = 64 << 10;

int64_t scaled(int64_t base, int64_t bytes, int64_t factor) {
  return bytes > (INT64_MAX - base) / factor ? INT64_MAX : base + bytes * factor;
}

}  // namespace

ConstantBudget::ConstantBudget(int64_t source_bytes, int32_t threads)
    : steps_left_(scaled(kSteps, source_bytes, kStepsPerByte)),
      bytes_left_(scaled(kBytes, source_bytes, kBytesPerByte)),
      threads_(threads) {}

ops::EvalWork::Limits ConstantBudget::next() const {
  return {.steps = std::max(steps_left_, kFreeSteps), .bytes = std::max(bytes_left_, kFreeBytes), .threads = threads_};
}

void ConstantBudget::charge(const ops::EvalWork& work) {
  steps_left_ = std::max<int64_t>(0, steps_left_ - work.steps());
  bytes_left_ = std::max<int64_t>(0, bytes_left_ - work.bytes());
}

Evaluation evaluate(const Expr& closed, ConstantBudget& budget) {
  ops::EvalWork work(budget.next());
  Evaluation result;
  try {
    result.value = run_expr(closed, {.work = &work});
  } catch (const ops::WorkLimitReached& reached) {
    result = {Evaluation::Outcome::over_budget, {}, reached.message()};
  } catch (const UserError& error) {
    if (!is_plain(error) || error.where().op.empty()) throw;
    result = {Evaluation::Outcome::refused, {}, error.what()};
  }
  budget.charge(work);
  return result;
}

}  // namespace headrace::interp
