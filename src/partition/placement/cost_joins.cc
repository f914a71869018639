// Joins of a cost problem: calls that cost less beside others.
#include <algorithm>
#include <set>

#include "ops/call_fusion.h"
#include "partition/placement/cost_problem.h"
#include "partition/decision.h"
#include "partition/place.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

// A region is taken to compute so many calls before one, when backends are asked what that saves.
constexpr size_t kMaxProducers = 8;

}  // namespace

// Reads the joins of one call by one label, or of an instance.
struct CostProblem::JoinReader {
  const CostProblem& problem;
  const OpCosts& costs;
  int32_t node, label;
  int32_t piece;                    // kNone for a call of the program
  std::vector<int32_t> nodes = {};  // those of the call or the instance
  const CallNode* call = nullptr;   // the call of the composite function
  std::vector<Expr> arguments = {};
  Joins joins = {};

  JoinReader(const CostProblem& all, const OpCosts& op_costs, int32_t at, int32_t own)
      : problem(all), costs(op_costs), node(at), label(own), piece(all.pieces_.at(at, own)) {
    if (piece == kNone) {
      nodes = {node};
      call = all.flow_.node(node).as<CallNode>();
      if (call != nullptr) arguments.assign(call->args.begin(), call->args.end());
    } else {
      nodes = all.pieces_.all()[static_cast<size_t>(piece)].nodes;
      const Instance& instance = all.pieces_.instance(static_cast<size_t>(piece));
      call = instance.call.as<CallNode>();
      arguments = instance.inputs;
    }
  }

  // The first operand that saves something is the one that counts. One that an instance may compute once more, so that
  // fewer calls use it then, leaves the choice to the plan.
  void read() {
    if (call == nullptr || !problem.may_have(node, label)) return;
    for (const Expr& argument : arguments) {
      const auto* producer = argument.as<CallNode>();
      if (producer == nullptr || !is_used_once(*producer, nodes, true)) continue;
      const int32_t operand = problem.flow_.find(argument);
      const size_t before = joins.size();
      for (int32_t form = 0; form < problem.num_labels(); ++form) add(*producer, operand, form);
      if (joins.size() > before && is_used_once(*producer, nodes, false)) return;
    }
  }

  void add(const CallNode& producer, int32_t operand, int32_t form) {
    if (problem.backend_of(form) != problem.backend_of(label) || !problem.may_have(operand, form)) return;
    const int32_t before = problem.pieces_.at(operand, form);
    if (before != kNone && problem.pieces_.all()[static_cast<size_t>(before)].root != operand) return;
    Join join = label == kNativeLabel ? native_join(producer) : join_of_form(producer, before);
    if (join.seconds_saved <= 0) return;
    join.operand = operand;
    join.form = form;
    joins.push_back(std::move(join));
  }

  Join native_join(const CallNode& producer) const {
    if (call->as_op() == nullptr || producer.as_op() == nullptr) return {};
    return {.producers = {&producer}, .seconds_saved = std::min(costs.saved(producer, *call), seconds())};
  }

  double seconds() const {
    return piece == kNone ? problem.seconds(node, label) : problem.pieces_.all()[static_cast<size_t>(piece)].seconds;
  }

  // A region may save by a call only where it computes several others: these are the first of the calls before it with
  // which it saves as much as with all.
  Join join_of_form(const CallNode& producer, int32_t before) const {
    const size_t index = problem.backend_index(label);
    if (seconds() <= 0 || problem.one_call_.contains(problem.names_[index])) return {};
    std::vector<const CallNode*> calls = producers_of(producer, before);
    const auto saved_by = [&](size_t count) {
      std::vector<const CallNode*> first(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count));
      if (before != kNone) first[0] = problem.pieces_.instance(static_cast<size_t>(before)).call.as<CallNode>();
      return costs.saved(*problem.backends_[index - 1], *call, first);
    };
    const double all = saved_by(calls.size());
    for (size_t count = 1; count < calls.size() && all > 0; ++count) {
      if (saved_by(count) < all) continue;
      calls.resize(count);
      break;
    }
    return {.producers = std::move(calls), .seconds_saved = std::min(all, seconds())};
  }

  // Returns whether nothing else uses a call; `in_some_plan`: in a plan in which instances compute it once more for
  // themselves.
  bool is_used_once(const CallNode& producer, const std::vector<int32_t>& users, bool in_some_plan) const {
    const int32_t from = problem.flow_.find(ref(&producer));
    if (from == kNone || problem.plain_->is_result[static_cast<size_t>(from)]) return false;
    const std::vector<int32_t>& all = problem.plain_->consumers[static_cast<size_t>(from)];
    return std::all_of(all.begin(), all.end(), [&](int32_t one) {
      return std::find(users.begin(), users.end(), one) != users.end() ||
             (in_some_plan && problem.pieces_.is_repeated(from) && is_repeated(from, one));
    });
  }
  bool is_repeated(int32_t from, int32_t user) const {
    return std::any_of(problem.pieces_.all().begin(), problem.pieces_.all().end(), [&](const Piece& one) {
      const auto has = [](const std::vector<int32_t>& all, int32_t it) {
        return std::find(all.begin(), all.end(), it) != all.end();
      };
      return one.label != kNone && has(one.twice, from) && (has(one.nodes, user) || has(one.twice, user));
    });
  }

  // Returns an operand of a node and the calls before it that a region with this label may compute with the node. What
  // lies before a convolution or a product has no part in it.
  std::vector<const CallNode*> producers_of(const CallNode& producer, int32_t before) const {
    std::vector<const CallNode*> calls{&producer};
    for (size_t i = 0; i < calls.size(); ++i) {
      const CallNode& one = *calls[i];
      std::vector<Expr> arguments_of(one.args.begin(), one.args.end());
      std::vector<int32_t> users{problem.flow_.find(ref(&one))};
      if (i == 0 && before != kNone) {
        arguments_of = problem.pieces_.instance(static_cast<size_t>(before)).inputs;
        users = problem.pieces_.all()[static_cast<size_t>(before)].nodes;
      } else if (one.as_op() != nullptr && ops::fusion_kind_of(one) == ops::FusionKind::anchor) {
        continue;
      }
      for (const Expr& argument : arguments_of) {
        const auto* next = argument.as<CallNode>();
        if (next == nullptr || calls.size() == kMaxProducers || !is_used_once(*next, users, false)) continue;
        const bool is_there = std::find(calls.begin(), calls.end(), next) != calls.end();
        if (!is_there && problem.may_have(problem.flow_.find(argument), problem.backend_of(label)))
          calls.push_back(next);
      }
    }
    return calls;
  }
};

void CostProblem::read_joins(const OpCosts& costs) {
  for (int32_t node = 0; node < flow_.num_nodes(); ++node) {
    for (int32_t label = 0; label < num_labels(); ++label) {
      const int32_t piece = pieces_.at(node, label);
      if (piece != kNone && pieces_.all()[static_cast<size_t>(piece)].root != node) continue;
      JoinReader reader(*this, costs, node, label);
      reader.read();
      if (!reader.joins.empty()) joins_[{node, label}] = std::move(reader.joins);
    }
  }
}

bool CostProblem::has_producers(const Join& join, int32_t label, const std::vector<int32_t>& labels) const {
  if (labels[static_cast<size_t>(join.operand)] != join.form) return false;
  return std::all_of(join.producers.begin() + 1, join.producers.end(), [&](const CallNode* producer) {
    return labels[static_cast<size_t>(flow_.find(ref(producer)))] == backend_of(label);
  });
}

const CostProblem::Join* CostProblem::join_of(const Expr& call, bool is_piece, const std::string& label,
                                              const std::vector<int32_t>& labels) const {
  const int32_t node = flow_.find(call);
  if (node == kNone) return nullptr;
  const auto at = label == kNative ? names_.begin() : std::find(names_.begin() + 1, names_.end(), label);
  auto own = static_cast<int32_t>(at - names_.begin());
  if (is_piece) {
    const int32_t taken = labels[static_cast<size_t>(node)];
    if (pieces_.at(node, taken) == kNone || backend_of(taken) != own) return nullptr;
    own = taken;
  }
  const auto joins = joins_.find({node, own});
  if (joins == joins_.end()) return nullptr;
  const auto found = std::find_if(joins->second.begin(), joins->second.end(),
                                  [&](const Join& join) { return has_producers(join, own, labels); });
  return found == joins->second.end() ? nullptr : &*found;
}

// The first operand that nothing else uses in the plan counts.
const CostProblem::Join* CostProblem::join_in(const BodyView& view, const Regions& regions,
                                              std::pair<int32_t, int32_t> key, const Joins& joins,
                                              const std::vector<int32_t>& labels) const {
  const auto& [node, label] = key;
  const auto region = [&](int32_t at) { return regions.region[static_cast<size_t>(at)]; };
  if (labels[static_cast<size_t>(node)] != label || !view.is_there[static_cast<size_t>(node)]) return nullptr;
  const auto is_used_once = [&, user = node](int32_t producer) {
    const std::vector<int32_t>& users = view.consumers[static_cast<size_t>(producer)];
    return std::all_of(users.begin(), users.end(), [&](int32_t one) { return one == user; });
  };
  int32_t operand = kNone;
  for (const Join& join : joins) {
    if (operand == kNone && is_used_once(join.operand)) operand = join.operand;
    if (join.operand != operand || !has_producers(join, label, labels)) continue;
    const bool are_near =
        std::all_of(join.producers.begin(), join.producers.end(),
                    [&, at = node](const CallNode* one) { return region(flow_.find(ref(one))) == region(at); });
    return are_near ? &join : nullptr;
  }
  return nullptr;
}

}  // namespace headrace::partition
