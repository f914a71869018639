#include "conformance/cost_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "codegen/native.h"
#include "driver/target.h"
#include "ir/type.h"
#include "partition/placement/by_cost.h"
#include "partition/placement/op_costs.h"
#include "relay/visit.h"

namespace headrace::conformance {

namespace {

using relay::CallNode;
using Kind = CostQuestion::Kind;

constexpr int kThreadCounts[] = {1, 4};
constexpr int kAskers = 4, kRoundsOfAnAsker = 4, kRepeats = 3;
// An estimate is far off if it is more than ten times what was measured, or less than a tenth. Shorter times than this
// are those of the call, which differ from run to run, and count as this much.
constexpr double kFarOff = 10, kLeastMeasured = 100e-6;

// Counts how often calls, tuples and items read each call.
std::unordered_map<const Object*, int> uses_of(const IRModule& module) {
  std::unordered_map<const Object*, int> uses;
  const auto use = [&](const Expr& expr) { ++uses[expr.get()]; };
  relay::post_order(module->lookup("main"), [&](const Expr& expr) {
    if (const auto* call = expr.as<CallNode>()) {
      for (const Expr& arg : call->args) use(arg);
    } else if (const auto* tuple = expr.as<relay::TupleNode>()) {
      for (const Expr& item : tuple->items) use(item);
    } else if (const auto* item = expr.as<relay::TupleGetItemNode>()) {
      use(item->tuple);
    } else if (const auto* function = expr.as<relay::FunctionNode>()) {
      use(function->body);
    }
  });
  return uses;
}

std::string with_threads(const std::string& words, int threads) {
  return fmt::format("{} with {} {}", words, threads, threads == 1 ? "thread" : "threads");
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

CostChecks::CostChecks(std::shared_ptr<const partition::Backend> backend, const IRModule& module)
    : backend_(std::move(backend)),
      module_(module),
      machine_(
          driver::machine_of(driver::choose_target(codegen::NativeCompiler::load(), driver::llvm_target("", "")))) {
  read_questions();
}

void CostChecks::read_questions() {
  splits_ = partition::splits_of(module_, {backend_});
  for (const IRModule& split : splits_) read_calls(split);
}

void CostChecks::read_calls(const IRModule& split) {
  const auto uses = uses_of(split);
  const auto is_taken = [&](const CallNode& call) { return partition::verdict_of(*backend_, call).ok(); };
  const auto producer_of = [&](const CallNode& call) -> const CallNode* {
    for (const Expr& arg : call.args) {
      const auto* producer = arg.as<CallNode>();
      if (producer != nullptr && uses.at(producer) == 1 && is_taken(*producer)) return producer;
    }
    return nullptr;
  };
  partition::for_each_decided_call(split, [&](const CallNode& call) {
    if (!is_taken(call)) return;
    const std::string kind = partition::kind_of(call);
    std::vector<Type> types = leaves_of(call.checked_type());
    for (const Expr& arg : call.args) {
      for (const Type& leaf : leaves_of(arg->checked_type())) types.push_back(leaf);
    }
    const CallNode* producer = producer_of(call);
    for (const int threads : kThreadCounts) {
      questions_.push_back({Kind::cost, threads, &call, {}, {}, with_threads("the cost of " + kind, threads)});
      for (const Type& type : types) {
        if (type.is<TensorTypeNode>())
          questions_.push_back(
              {Kind::border, threads, nullptr, {}, type, with_threads("the cost of a border at " + kind, threads)});
      }
      std::vector<const CallNode*> producers;
      for (const CallNode* one = producer; one != nullptr && producers.size() < 2; one = producer_of(*one)) {
        producers.push_back(one);
        const std::string words = fmt::format("the seconds saved at {} after {}", kind, partition::kind_of(*producer));
        questions_.push_back({Kind::saved, threads, &call, producers, {}, with_threads(words, threads)});
      }
    }
  });
}

double CostChecks::ask(const CostQuestion& question) const {
  switch (question.kind) {
    case Kind::cost:
      return backend_->cost(*question.call, machine_, question.threads);
    case Kind::saved:
      return backend_->saved(*question.call, question.producers, machine_, question.threads);
    case Kind::border:
      return backend_->border(question.type, machine_, question.threads);
  }
  return 0;
}

std::string CostChecks::answers() {
  answers_.clear();
  for (const CostQuestion& question : questions_) {
    const double seconds = ask(question);
    const double most = question.kind == Kind::cost ? partition::kMaxCostSeconds : std::numeric_limits<double>::max();
    if (!(seconds >= 0 && seconds <= most))
      return fmt::format("{} is {}; it must be seconds from 0 on{}", question.words, seconds,
                         question.kind == Kind::cost ? fmt::format(" to {}, or unknown", most) : "");
    answers_.push_back(seconds);
  }
  return "";
}

std::string CostChecks::repeated() const {
  for (int round = 0; round < kRepeats; ++round) {
    for (size_t i = 0; i < questions_.size(); ++i) {
      const double again = ask(questions_[i]);
      if (!is_same(again, answers_[i]))
        return fmt::format("{} is {} at first, and {} when it is asked again", questions_[i].words, answers_[i], again);
    }
  }
  return "";
}

// Askers begin at different questions, so that answers that share memory meet others.
std::string CostChecks::on_threads() const {
  std::mutex mutex;
  std::string fault;
  std::vector<std::thread> all;
  const auto ask_all = [&](size_t first) -> std::string {
    for (size_t i = 0; i < kRoundsOfAnAsker * questions_.size(); ++i) {
      const size_t at = (first + i) % questions_.size();
      const double again = ask(questions_[at]);
      if (!is_same(again, answers_[at]))
        return fmt::format("{} is {} by itself, and {} when {} threads ask at once", questions_[at].words, answers_[at],
                           again, kAskers);
    }
    return "";
  };
  for (int t = 0; t < kAskers; ++t) {
    all.emplace_back([&, t] {
      std::string own;
      try {
        own = ask_all(static_cast<size_t>(t));
      } catch (const std::exception& error) {
        own = error.what();
      }
      const std::scoped_lock lock(mutex);
      if (fault.empty()) fault = own;
    });
  }
  for (std::thread& thread : all) thread.join();
  return fault;
}

std::string CostChecks::with_other_names(const IRModule& renamed) const {
  const CostChecks other(backend_, renamed);
  if (other.questions_.size() != questions_.size()) return "with other names of variables it takes other calls";
  for (size_t i = 0; i < questions_.size(); ++i) {
    const double seconds = other.ask(other.questions_[i]);
    if (!is_same(seconds, answers_[i]))
      return fmt::format("{} is {}, and {} where variables have other names, on other lines", questions_[i].words,
                         answers_[i], seconds);
  }
  return "";
}

// Takes patterns first, as placement by the order of a list does.
double CostChecks::estimate() const {
  const IRModule composed = partition::compose(module_, {backend_});
  const auto main = module_->lookup("main").cast<relay::FunctionNode>();
  double seconds = backend_->border(main->body->checked_type(), machine_, 1);
  for (const relay::Var& param : main->params) seconds += backend_->border(param->checked_type(), machine_, 1);
  partition::for_each_decided_call(composed, [&](const CallNode& call) {
    if (partition::verdict_of(*backend_, call).ok()) seconds += backend_->cost(call, machine_, 1);
  });
  return seconds;
}

std::string CostChecks::compared_with(double measured_seconds) const {
  const double estimated = estimate();
  const bool is_too_much = estimated > kFarOff * std::max(measured_seconds, kLeastMeasured);
  const bool is_too_little = measured_seconds > kFarOff * std::max(estimated, kLeastMeasured);
  if (!is_too_much && !is_too_little) return "";
  return fmt::format("the estimate is {}, and a run takes {}", partition::show_cost(estimated),
                     partition::show_cost(measured_seconds));
}

}  // namespace headrace::conformance
