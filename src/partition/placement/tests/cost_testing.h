// Helpers of the tests of placement by cost: a backend whose calls, values and savings have prices, random programs,
// and the cost of a placement, which is counted from the module that it makes: a border for each parameter of each
// region.
#pragma once

#include <gtest/gtest.h>

#include <limits>

#include "cost/op_work.h"
#include "kit/property.h"
#include "partition/placement/by_cost.h"
#include "partition/extract.h"
#include "partition/place.h"
#include "partition/tests/region_testing.h"
#include "relay/children.h"

namespace headrace::partition {

// One op over 64 x 64 floats takes longer than a border.
inline constexpr cost::Machine kMachine{.l2_gigabytes = 20};
inline constexpr double kTolerance = 1e-10;  // costs are counted in picoseconds

// How calls and values of a backend depend on each other.
struct Sharing {
  std::set<std::string> halved = {};  // ops that cost half where their operand is in the same region
  std::string needed = "";            // and where this op is there, too, if it is not empty
  double border_seconds = 0;          // a tensor that enters or leaves a region
};

// A backend that takes the ops that it has a cost for, and what its patterns match. Patterns, too, may have costs of
// their own.
class Priced : public Backend {
 public:
  Priced(std::string name, std::map<std::string, double> seconds, Sharing sharing, bool one_call = false)
      : Priced(std::move(name), std::move(seconds), "", 0, one_call) {
    sharing_ = std::move(sharing);
  }
  Priced(std::string name, std::map<std::string, double> seconds, const std::string& patterns = "",
         double pattern_seconds = 0, bool one_call = false, Sharing sharing = {})
      : name_(std::move(name)),
        seconds_(std::move(seconds)),
        pattern_seconds_(pattern_seconds),
        one_call_(one_call),
        sharing_(std::move(sharing)) {
    if (!patterns.empty()) table_ = read_table(Value(patterns));
  }
  std::string_view name() const override { return name_; }
  std::span<const CompositePattern> patterns() const override { return table_; }
  Verdict supports(const relay::CallNode& call) const override {
    if (seconds_.contains(call.as_op()->name)) return {};
    return {.reason = HR_REASON_OP_UNSUPPORTED, .message = "it has no price"};
  }
  double cost(const relay::CallNode& call, const cost::Machine&, int) const override {
    const auto own = seconds_.find(kind_of(call));
    return own == seconds_.end() ? pattern_seconds_ : own->second;
  }
  double saved(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers, const cost::Machine&,
               int) const override {
    EXPECT_FALSE(producers.empty());
    const bool is_halved = call.as_op() != nullptr && sharing_.halved.contains(call.as_op()->name);
    const bool is_there = std::any_of(producers.begin(), producers.end(), [&](const relay::CallNode* one) {
      return sharing_.needed.empty() || one->as_op()->name == sharing_.needed;
    });
    return is_halved && is_there ? seconds_.at(call.as_op()->name) / 2 : 0;
  }
  double border(const Type& type, const cost::Machine&, int) const override {
    return type.is<TensorTypeNode>() ? sharing_.border_seconds : 0;
  }
  bool one_call_per_region() const override { return one_call_; }
  std::vector<Expected<RegionCode>> compile(const RegionRequest& request) const override {
    return {request.regions.size(), Refusal{HR_REASON_SHAPE_UNSUPPORTED, "it compiles nothing"}};
  }

 private:
  std::string name_;
  std::map<std::string, double> seconds_;
  std::vector<CompositePattern> table_;
  double pattern_seconds_;
  bool one_call_;
  Sharing sharing_;
};

inline std::shared_ptr<const Backend> priced(const std::string& name, std::map<std::string, double> seconds,
                                             const std::string& patterns = "", double pattern_seconds = 0) {
  return std::make_shared<Priced>(name, std::move(seconds), patterns, pattern_seconds);
}

inline IRModule program_of(const std::string& body) {
  return read_program("def @main(%x: Tensor[(64, 64), float32], %y: Tensor[(64, 64), float32]) {\n" + body + "}");
}

inline double op_seconds(const relay::CallNode& call, const std::string& backend, const Backends& backends) {
  for (const auto& one : backends) {
    if (one->name() == backend) return one->cost(call, kMachine, 1);
  }
  return cost::native_seconds(call, kMachine, 1);
}

inline double counted_seconds(const Expr& body, const std::string& backend, const Backends& backends) {
  double seconds = 0;
  relay::post_order(
      body, [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); },
      [&](const Expr& expr) {
        const auto* call = expr.as<relay::CallNode>();
        if (call != nullptr && !call->op.is<GlobalVarNode>()) seconds += op_seconds(*call, backend, backends);
      });
  return seconds;
}

using Saved = std::function<double(const relay::CallNode& producer, const relay::CallNode& call)>;

// Returns the seconds that are saved in a body: each call is joined to the first operand that is a call which nothing
// else uses, and with which it costs less.
inline double saved_seconds(const Expr& body, const Saved& saved) {
  std::map<const Object*, std::set<const Object*>> users{{body.object(), {nullptr}}};
  const auto in_body = [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); };
  relay::post_order(body, in_body, [&](const Expr& expr) {
    relay::for_each_child(*expr.get(), [&](const ExprNode* child) { users[child].insert(expr.object()); });
  });
  double seconds = 0;
  relay::post_order(body, in_body, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call == nullptr || call->op.is<GlobalVarNode>()) return;
    for (const Expr& arg : call->args) {
      const auto* producer = arg.as<relay::CallNode>();
      if (producer == nullptr || producer->op.is<GlobalVarNode>() || users[producer].size() != 1) continue;
      const double one = saved(*producer, *call);
      seconds += one;
      if (one > 0) return;
    }
  });
  return seconds;
}

inline double native_saved(const relay::CallNode& producer, const relay::CallNode& call) {
  if (producer.as_op() == nullptr || call.as_op() == nullptr) return 0;
  return cost::seconds_saved(producer, call, kMachine, 1);
}

// Seconds by the place that takes them: "native", or the name of a backend.
using SecondsByPlace = std::map<std::string, double>;

// Adds the changes of layout at the borders of regions: each value that leaves one, once for native code and once for
// each region that takes it, and each value that enters one.
inline void add_borders(SecondsByPlace& parts, const IRModule& module, const Backends& backends) {
  const auto add_border_of = [&](const Expr& value) {  // the border of the region that makes it
    const auto* item = value.as<relay::TupleGetItemNode>();
    const auto* call = (item == nullptr ? value : item->tuple).as<relay::CallNode>();
    const auto* name = call == nullptr ? nullptr : call->op.as<GlobalVarNode>();
    if (name == nullptr) return;
    const auto region = module->lookup(name->name_hint).cast<relay::FunctionNode>();
    for (const auto& one : backends) {
      if (one->name() == region->attrs.at("Compiler").as<std::string>())
        parts[std::string(one->name())] += one->border(passes::main_of(module).params[0]->checked_type(), kMachine, 1);
    }
  };
  std::set<std::pair<const Object*, int64_t>> native;  // values that native code has taken
  const auto leave = [&](const Expr& value) {
    const auto* item = value.as<relay::TupleGetItemNode>();
    const std::pair<const Object*, int64_t> key(item == nullptr ? value.object() : item->tuple.object(),
                                                item == nullptr ? 0 : item->index);
    if (native.insert(key).second) add_border_of(value);
  };
  const Expr& body = passes::main_of(module).body;
  relay::post_order(
      body, [](const Expr& expr) { return !expr.is<relay::FunctionNode>(); },
      [&](const Expr& expr) {
        if (const auto* tuple = expr.as<relay::TupleNode>()) {
          for (const Expr& field : tuple->items) leave(field);
        }
        const auto* call = expr.as<relay::CallNode>();
        if (call == nullptr) return;
        const bool is_region = call->op.is<GlobalVarNode>();
        for (const Expr& arg : call->args) {
          if (is_region) {
            add_border_of(arg);
            add_border_of(expr);
          } else {
            leave(arg);
          }
        }
      });
  leave(body);
}

// Returns the cost of a module with regions, by the definition in by_cost.h.
inline SecondsByPlace counted_parts(const IRModule& module, const Backends& backends) {
  const Expr& body = passes::main_of(module).body;
  SecondsByPlace parts{{kNative, counted_seconds(body, kNative, backends) - saved_seconds(body, native_saved)}};
  for (const relay::Function& region : regions_of(module)) {
    const std::string name = region->attrs.at("Compiler").as<std::string>();
    parts[name] += kBorderSeconds * static_cast<double>(region->params.size());
    parts[name] += counted_seconds(region->body, name, backends);
    for (const auto& one : backends) {
      if (one->name() != name) continue;
      parts[name] -= saved_seconds(region->body, [&](const relay::CallNode& producer, const relay::CallNode& call) {
        return one->saved(call, {&producer}, kMachine, 1);
      });
    }
  }
  add_borders(parts, module, backends);
  return parts;
}

// Returns the sum of all parts, each times its factor, if it has one.
inline double scaled_sum(const SecondsByPlace& parts, const std::map<std::string, double>& factors) {
  double seconds = 0;
  for (const auto& [place, part] : parts) seconds += part * (factors.contains(place) ? factors.at(place) : 1);
  return seconds;
}

inline double counted_seconds(const IRModule& module, const Backends& backends) {
  return scaled_sum(counted_parts(module, backends), {});
}

struct PlacedByCost : PlacedModule {
  PlanCost plan;
};

inline PlacedByCost placed_by_cost(const IRModule& program, const OpCosts& costs) {
  const CostDecision decision(program, costs);
  return {place(decision), decision.plan()};
}

inline std::vector<std::string> backends_of(const PlacedModule& placed) {
  std::vector<std::string> rows;
  for (const artifact::Placement& one : placed.placement) rows.push_back(one.kind + " " + one.backend);
  return rows;
}

struct RandomPlan {
  std::string body;
  std::vector<std::map<std::string, double>> prices;
  uint64_t one_call = 0;  // a bit for each backend whose regions have one call each
  std::vector<Sharing> sharing = {};
  std::vector<std::string> patterns = {};  // the table of each backend; none: no backend has patterns
};

inline RandomPlan random_plan(kit::Random& random, int64_t most_calls = 6) {
  static constexpr const char* kUnary[] = {"exp", "tanh", "sqrt"};
  static constexpr const char* kBinary[] = {"add", "multiply"};
  RandomPlan plan;
  const int64_t count = random.integer(1, most_calls);
  std::vector<std::string> values{"%x", "%y"};
  for (int64_t i = 0; i < count; ++i) {
    const auto value = [&] {
      return values[static_cast<size_t>(random.integer(0, static_cast<int64_t>(values.size()) - 1))];
    };
    const std::string latest = values.back();
    const std::string call = random.chance(0.5F) ? fmt::format("{}({})", kUnary[random.index(3)], latest)
                                                 : fmt::format("{}({}, {})", kBinary[random.index(2)], latest, value());
    plan.body += fmt::format("%{} = {};\n", i, call);
    values.push_back(fmt::format("%{}", i));
  }
  plan.body += fmt::format("(%{}, {})", count - 1, values[2]);
  for (int backend = 0; backend < 2; ++backend) {
    plan.prices.emplace_back();
    for (const char* op : {"exp", "tanh", "sqrt", "add", "multiply"}) {
      if (random.chance(0.7F)) plan.prices.back()[op] = random.uniform(0, 3e-6F);
    }
    plan.sharing.emplace_back();
    if (random.chance(0.5F)) plan.sharing.back().halved = {"exp", "add"};
    if (random.chance(0.5F)) plan.sharing.back().border_seconds = random.uniform(0, 1e-6F);
  }
  plan.one_call = random.chance(0.5F) ? 0 : random.next() % 4;
  return plan;
}

// Gives each backend of a plan a few patterns, the larger ones first, which have costs.
inline RandomPlan with_random_patterns(RandomPlan plan, kit::Random& random) {
  static constexpr std::pair<const char*, const char*> kPatterns[] = {{"three", "exp(add(exp(_), _))"},
                                                                      {"sum", "add(exp(_), _)"},
                                                                      {"late", "add(_, exp(_))"},
                                                                      {"two", "exp(exp(_))"},
                                                                      {"root", "sqrt(add(_, _))"},
                                                                      {"product", "multiply(tanh(_), _)"},
                                                                      {"one", "add(_, _)"}};
  for (size_t i = 0; i < plan.prices.size(); ++i) {
    std::string table;
    for (const auto& [name, pattern] : kPatterns) {
      if (!random.chance(0.5F)) continue;
      const std::string full = fmt::format("{}.{}", i == 0 ? "first" : "second", name);
      table += fmt::format("{} {}: {}", table.empty() ? "" : ",", full, pattern);
      plan.prices[i][full] = random.uniform(0, 4e-6F);
    }
    plan.patterns.push_back(table.empty() ? "" : "{" + table + " }");
  }
  return plan;
}

// A match of a pattern: the name of the pattern, and the line of the match's result.
using MatchAt = std::pair<std::string, int64_t>;

// Returns the program with these matches as composite functions, as far as one of them does not take another's nodes.
inline IRModule with_matches(const IRModule& program, const Backends& backends, const std::set<MatchAt>& chosen) {
  std::vector<CompositePattern> table;
  for (const auto& backend : backends) {
    for (CompositePattern entry : backend->patterns()) {
      entry.accepts = [&chosen, name = entry.name](const relay::PatternGroup& group, const Expr&) {
        return chosen.contains({name, group.root->span->line});
      };
      table.push_back(std::move(entry));
    }
  }
  return merge_composite(program, table);
}

inline size_t count_composites(const IRModule& module) {
  size_t count = 0;
  for_each_placeable(module, [&](const relay::CallNode& call) { count += call.as_op() == nullptr ? 1 : 0; });
  return count;
}

// Returns all matches of the backends' patterns in a program that has a call on each line. Those that share nodes are
// among them.
inline std::vector<MatchAt> matches_in(const IRModule& program, const Backends& backends) {
  std::vector<MatchAt> matches;
  for (const auto& backend : backends) {
    for (CompositePattern entry : backend->patterns()) {
      entry.accepts = [&matches, name = entry.name](const relay::PatternGroup& group, const Expr&) {
        matches.emplace_back(name, group.root->span->line);
        return false;
      };
      merge_composite(program, std::span(&entry, 1));
    }
  }
  return matches;
}

// Calls `visit` with the program without matches and with each set of matches that can be chosen together.
template <typename Visit>
inline void for_each_split(const IRModule& program, const Backends& backends, Visit&& visit) {
  const std::vector<MatchAt> matches = matches_in(program, backends);
  std::vector<std::pair<std::set<MatchAt>, size_t>> open{{{}, 0}};  // with the first match that may be added
  while (!open.empty()) {
    const auto [chosen, next] = open.back();
    open.pop_back();
    const IRModule split = with_matches(program, backends, chosen);
    if (count_composites(split) != chosen.size()) continue;
    visit(split);
    for (size_t i = next; i < matches.size(); ++i) {
      std::set<MatchAt> more = chosen;
      if (more.insert(matches[i]).second) open.emplace_back(std::move(more), i + 1);
    }
  }
}

// Calls `visit` with the module of each way to place the calls of a program, each natively or on a backend that takes
// it, and composite functions on the backends whose patterns matched.
template <typename Visit>
inline void for_each_placing(const IRModule& program, const Backends& backends, Visit&& visit) {
  std::vector<std::pair<const relay::CallNode*, std::vector<std::string>>> calls;  // with the names of their backends
  for_each_placeable(program, [&](const relay::CallNode& call) {
    const bool is_op = call.as_op() != nullptr;
    calls.push_back({&call, is_op ? std::vector<std::string>{""} : std::vector<std::string>{}});
    for (const auto& backend : backends) {
      if (is_op ? backend->supports(call).ok() : kind_of(call).starts_with(fmt::format("{}.", backend->name())))
        calls.back().second.emplace_back(backend->name());
    }
  });
  std::vector<size_t> chosen(calls.size(), 0);
  const PartitionOptions options{.one_call = one_call_backends(backends)};
  for (bool more = true; more;) {
    Labels labels;
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::string& backend = calls[i].second[chosen[i]];
      if (!backend.empty()) labels.emplace(calls[i].first, backend);
    }
    visit(partition_by_labels(program, labels, options).module);
    more = false;
    for (size_t i = 0; i < chosen.size() && !more; ++i) {
      more = ++chosen[i] < calls[i].second.size();
      if (!more) chosen[i] = 0;
    }
  }
}

// Returns the least cost over all ways to choose matches of patterns in a program and to place its calls.
inline double least_seconds(const IRModule& program, const Backends& backends,
                            const std::map<std::string, double>& factors = {}) {
  double least = std::numeric_limits<double>::infinity();
  for_each_split(program, backends, [&](const IRModule& split) {
    for_each_placing(split, backends, [&](const IRModule& module) {
      least = std::min(least, scaled_sum(counted_parts(module, backends), factors));
    });
  });
  return least;
}

// Returns the backends of a random plan: "first" and "second".
inline Backends backends_of_plan(const RandomPlan& plan) {
  const auto backend = [&](const char* name, size_t i) {
    return std::make_shared<Priced>(name, plan.prices[i], plan.patterns.empty() ? "" : plan.patterns[i], 0,
                                    (plan.one_call >> i & 1) != 0, plan.sharing[i]);
  };
  return {backend("first", 0), backend("second", 1)};
}

inline std::string show_plan(const RandomPlan& plan) {
  std::string text = plan.body;
  for (const auto& prices : plan.prices) {
    text += "\nprices:";
    for (const auto& [op, seconds] : prices) text += fmt::format(" {} {:.9f}", op, seconds);
  }
  for (const Sharing& one : plan.sharing)
    text += fmt::format("\nborder: {:.9f}, halved: {}", one.border_seconds, fmt::join(one.halved, " "));
  for (const std::string& table : plan.patterns) text += "\npatterns: " + table;
  return fmt::format("{}\none call: {}", text, plan.one_call);
}

}  // namespace headrace::partition
