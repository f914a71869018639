#include "partition/place.h"

#include <algorithm>
#include <map>
#include <set>

#include "object/structural_equal.h"
#include "ops/call_fusion.h"
#include "partition/compiler_functions.h"
#include "partition/regions.h"
#include "relay/function_attrs.h"
#include "relay/regions.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::Function;
using relay::FunctionNode;

namespace {

std::string place_of(const CallNode& call) {
  const std::string place = to_string(call.span);
  return place.empty() ? call.as_op()->name : place;
}

class Placer {
 public:
  // Without `costs` the backends were chosen by their order.
  Placer(const RuledModule& ruled, const Backends& backends, const OpCosts* costs = nullptr)
      : module_(ruled.module), ruled_(ruled.regions.begin(), ruled.regions.end()), backends_(backends), costs_(costs) {
    placed_.module = ruled.module;
  }

  PlacedModule place() {
    const auto main = module_->lookup("main").cast<FunctionNode>();
    relay::post_order(
        main->body, [&](const Expr& expr) { return enter(expr); }, [&](const Expr& expr) { leave(expr); });
    return std::move(placed_);
  }

 private:
  // Does not walk into a region's body, which place_region reads.
  static bool enter(const Expr& expr) {
    const auto* function = expr.as<FunctionNode>();
    return function == nullptr || !relay::compiler_of(*function);
  }

  void leave(const Expr& expr) {
    const auto* call = expr.as<CallNode>();
    if (call == nullptr) return;
    if (call->as_op() != nullptr) return add_row(native(*call), *call);
    if (const Function region = relay::region_of(*call, module_)) place_region(*call, region);
  }

  artifact::Placement native(const CallNode& call) const {
    if (const std::string* function = ops::external_of(Ref<CallNode>(const_cast<CallNode*>(&call))))
      return {.op = place_of(call),
              .kind = call.as_op()->name,
              .backend = kExternal,
              .reason = HR_REASON_NONE,
              .message = fmt::format("calls the function '{}'", *function)};
    Verdict why{.reason = HR_REASON_PLACE_ONLY_NATIVE, .message = "no other backend was asked for"};
    if (!backends_.empty()) why = why_native(backends_, call);
    if (costs_ != nullptr && !call.args.empty() && region_fault(ref(&call)).empty()) {
      const std::vector<LabelSeconds> costs = costs_->of(call);
      if (costs.size() > 1) why = {.reason = HR_REASON_PLACE_BY_COST, .message = by_cost(kNative, costs)};
    }
    return {.op = place_of(call),
            .kind = call.as_op()->name,
            .backend = kNative,
            .reason = why.reason,
            .message = why.message};
  }

  void add_row(artifact::Placement row, const CallNode& call) {
    placed_.placement.push_back(std::move(row));
    if (costs_ != nullptr) placed_.costs.push_back(costs_->of(call));
  }

  // Returns "the plan of least cost: 1.2 us by x, 3 us natively", the costs in another order for an op that is native.
  static std::string by_cost(const std::string& chosen, std::vector<LabelSeconds> costs) {
    const auto first =
        std::find_if(costs.begin(), costs.end(), [&](const LabelSeconds& one) { return one.label == chosen; });
    if (first != costs.end()) std::rotate(costs.begin(), first, first + 1);
    std::string text = "the plan of least cost runs it here:";
    for (const LabelSeconds& one : costs) {
      const std::string where = one.label == kNative ? "natively" : "by " + one.label;
      text += fmt::format("{} {} {}", &one == costs.data() ? "" : ",", show_cost(one.seconds), where);
    }
    return text;
  }

  // Refuses what no backend can be given: a function of variables from around it, or of types that its calls choose.
  static void check_region(const FunctionNode& function, const std::string& name) {
    const auto fail = [&](const std::string& what) {
      throw_at(function.span, "compile", fmt::format("the function '{}' for another compiler {}", name, what));
    };
    const std::vector<relay::Var> captured = relay::free_vars(Ref<FunctionNode>(const_cast<FunctionNode*>(&function)));
    if (!captured.empty())
      fail(fmt::format("uses %{}, which is bound outside of it; give it as a parameter", captured[0]->name_hint));
    if (!function.type_params.empty()) fail("has type parameters; give its parameters the types of its calls");
    for (const relay::Var& param : function.params) {
      if (has_symbols(param->checked_type()))
        fail(fmt::format("has a parameter %{} of a size without a number; give it the sizes of its calls",
                         param->name_hint));
    }
    if (leaves_of(function.body->checked_type()).empty()) fail("has no tensor as its result; return one");
  }

  static bool has_symbols(const Type& type) {
    const std::vector<Type> leaves = leaves_of(type);
    return std::any_of(leaves.begin(), leaves.end(), [](const Type& leaf) {
      const auto* tensor = leaf.as<TensorTypeNode>();
      return tensor != nullptr && !as_shape(tensor->shape);
    });
  }

  void place_region(const CallNode& call, const Function& function) {
    const std::string name = relay::region_name(call, *function);
    const auto known = std::find_if(placed_.regions.begin(), placed_.regions.end(),
                                    [&](const Region& region) { return region.name == name; });
    if (known != placed_.regions.end()) {
      if (known->function != function && !structural_equal(known->function, function))
        throw_at(function->span, "compile",
                 fmt::format("two functions for other compilers are both named '{}'; rename one", name));
      return;
    }
    check_region(*function, name);
    if (const std::string backend = *relay::compiler_of(*function); backend == kNative || backend == kExternal)
      throw_at(function->span, "compile",
               fmt::format("'{}' cannot be a function's Compiler: it is the compiler's own word; remove the attribute, "
                           "and the function is compiled natively",
                           backend));
    if (name == artifact::kDefaultProgram)
      throw_at(
          function->span, "compile",
          fmt::format("'{}' is the name of the program itself; give the function for another compiler another name",
                      name));
    placed_.regions.push_back({.name = name,
                               .backend = *relay::compiler_of(*function),
                               .function = function,
                               .is_by_hand = !ruled_.contains(name)});
    place_ops(placed_.regions.back(), function->body);
  }

  static std::optional<Value> composite_of(const Expr& expr) {
    const auto* function = expr.as<FunctionNode>();
    return function == nullptr ? std::nullopt : function->attrs.get(relay::kComposite);
  }

  void place_ops(const Region& region, const Expr& body) {
    relay::post_order(
        body, [&](const Expr& expr) { return !composite_of(expr); },
        [&](const Expr& expr) {
          const auto* call = expr.as<CallNode>();
          if (call == nullptr) return;
          if (call->as_op() != nullptr) return add_row(row_of(region, *call, *call, ""), *call);
          if (const auto name = composite_of(call->op)) place_pattern(region, *call, *name);
        });
  }

  // Adds a row for each op of a composite function.
  void place_pattern(const Region& region, const CallNode& whole, const Value& name) {
    const std::string pattern = name.is<std::string>() ? name.as<std::string>() : "";
    relay::post_order(whole.op.as<FunctionNode>()->body, [&](const Expr& expr) {
      const auto* call = expr.as<CallNode>();
      if (call != nullptr && call->as_op() != nullptr) add_pattern_row(row_of(region, *call, whole, pattern), *call);
    });
    if (costs_ == nullptr || placed_.costs.empty()) return;
    for (LabelSeconds& one : costs_->of(whole)) {
      if (one.label != kNative) placed_.costs.back().push_back(std::move(one));
    }
  }

  void add_pattern_row(artifact::Placement row, const CallNode& call) {
    placed_.placement.push_back(std::move(row));
    if (costs_ != nullptr) placed_.costs.push_back({costs_->of(call).front()});
  }

  // Makes the row of `call`, which its region computes as a part of `whole`, which a pattern may have made.
  artifact::Placement row_of(const Region& region, const CallNode& call, const CallNode& whole,
                             const std::string& pattern) const {
    const hr_reason why = region.is_by_hand   ? HR_REASON_PLACE_BY_HAND
                          : costs_ != nullptr ? HR_REASON_PLACE_BY_COST
                                              : HR_REASON_PLACE_BY_ORDER;
    return {.op = place_of(call),
            .kind = call.as_op()->name,
            .backend = region.backend,
            .reason = why,
            .message = why_there(region, whole, pattern),
            .region = region.name};
  }

  std::string why_there(const Region& region, const CallNode& whole, const std::string& pattern) const {
    if (region.is_by_hand) return fmt::format("the program puts it into the function '{}'", region.name);
    if (costs_ != nullptr)
      return by_cost(region.backend, costs_->of(whole)) +
             (pattern.empty() ? "" : fmt::format(", for all that its pattern {} matches", pattern));
    if (pattern.empty()) return "it is the first backend of the list that takes the op";
    return fmt::format("it is the first backend of the list that takes what its pattern {} matches", pattern);
  }

  const IRModule module_;
  const std::set<std::string> ruled_;
  const Backends& backends_;
  const OpCosts* costs_;
  PlacedModule placed_;
};

}  // namespace

PlacedModule place(const IRModule& module, const Backends& backends) {
  if (backends.empty()) return Placer({.module = module, .regions = {}}, backends).place();
  return Placer(place_by_rules(module, backends), backends).place();
}

PlacedModule place(const IRModule& module, const OpCosts& costs) {
  CostedModule costed = place_by_cost(module, costs);
  PlacedModule placed = Placer(costed.ruled, costs.backends(), &costs).place();
  placed.plan = std::move(costed.plan);
  return placed;
}

void return_to_native(PlacedModule& placed, std::span<const std::optional<Refusal>> refused) {
  std::map<std::string, const Refusal*> reasons;
  std::vector<std::string> names;
  std::vector<Region> kept;
  for (size_t i = 0; i < placed.regions.size(); ++i) {
    if (refused[i] && !placed.regions[i].is_by_hand) {
      names.push_back(placed.regions[i].name);
      reasons.emplace(names.back(), &*refused[i]);
    } else {
      kept.push_back(placed.regions[i]);
    }
  }
  if (names.empty()) return;
  placed.module = inline_compiler_functions(placed.module, names);
  placed.regions = std::move(kept);
  for (artifact::Placement& row : placed.placement) {
    const auto reason = reasons.find(row.region);
    if (row.region.empty() || reason == reasons.end()) continue;
    row = {.op = row.op,
           .kind = row.kind,
           .backend = kNative,
           .reason = reason->second->code,
           .message = fmt::format("{} refused its region: {}", row.backend, reason->second->message)};
  }
}

}  // namespace headrace::partition
