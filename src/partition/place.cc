#include "partition/place.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "object/structural_equal.h"
#include "ops/call_fusion.h"
#include "partition/compiler_functions.h"
#include "partition/regions.h"
#include "relay/composites.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/regions.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::Function;
using relay::FunctionNode;

namespace {

class Placer {
 public:
  Placer(Partitioned decided, const Decision& decision) : module_(decided.module), decision_(decision) {
    for (const ExtractedRegion& region : decided.regions) decided_.insert(region.name);
    placed_.module = decided.module;
    placed_.fewest_regions = decided.fewest_regions;
    placed_.before = std::move(decided.before);
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
    if (call->as_op() != nullptr) return add_row(*call, native(*call), decision_.costs_of(placed_.call(*call)));
    if (const Function region = relay::region_of(*call, module_)) place_region(*call, region);
  }

  artifact::Placement native(const CallNode& call) const {
    if (const std::string* function = ops::external_of(Ref<CallNode>(const_cast<CallNode*>(&call))))
      return {.op = place_of(call),
              .kind = call.as_op()->name,
              .backend = kExternal,
              .reason = HR_REASON_NONE,
              .message = fmt::format("calls the function '{}'", *function)};
    const Verdict why = decision_.why(placed_.call(call), kNative);
    return {.op = place_of(call),
            .kind = call.as_op()->name,
            .backend = kNative,
            .reason = why.reason,
            .message = why.message};
  }

  void add_row(const CallNode& call, artifact::Placement row, std::vector<LabelSeconds> costs) {
    placed_.calls.push_back(&call);
    placed_.placement.push_back(std::move(row));
    placed_.costs.push_back(std::move(costs));
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
      if (has_open_sizes(param->checked_type()))
        fail(fmt::format("has a parameter %{} of a size without a number; give it the sizes of its calls",
                         param->name_hint));
    }
    if (leaves_of(function.body->checked_type()).empty()) fail("has no tensor as its result; return one");
  }

  void place_region(const CallNode& call, const Function& function) {
    const std::string name = relay::region_name(call, *function);
    const auto [number, is_new] = number_of_region_.try_emplace(name, placed_.regions.size());
    if (!is_new) {
      const Function& known = placed_.regions[number->second].function;
      if (known != function && !structural_equal(known, function))
        throw_at(function->span, "compile",
                 fmt::format("two functions for other compilers are both named '{}'; rename one", name));
      return;
    }
    check_region(*function, name);
    const std::string backend = own_name(*relay::compiler_of(*function));
    if (backend == kNative || backend == kExternal)
      throw_at(function->span, "compile",
               fmt::format("'{}' cannot be a function's Compiler: it is the compiler's own word; remove the attribute, "
                           "and the function is compiled natively",
                           backend));
    if (name == artifact::kDefaultProgram)
      throw_at(
          function->span, "compile",
          fmt::format("'{}' is the name of the program itself; give the function for another compiler another name",
                      name));
    placed_.regions.push_back(
        {.name = name, .backend = backend, .function = function, .is_by_hand = !decided_.contains(name)});
    place_ops(placed_.regions.back(), function->body, nullptr);
  }

  // Adds a row for each op of a region. What is computed as one has one reason, that of the composite function.
  void place_ops(const Region& region, const Expr& body, const Verdict* why_composite) {
    const auto is_composite = [](const Expr& expr) {
      const auto* function = expr.as<FunctionNode>();
      return function != nullptr && function->attrs.contains(relay::kComposite);
    };
    relay::post_order(
        body, [&](const Expr& expr) { return !is_composite(expr); },
        [&](const Expr& expr) {
          const auto* call = expr.as<CallNode>();
          if (call == nullptr || (call->as_op() == nullptr && !is_composite(call->op))) return;
          const Verdict why = why_composite != nullptr ? *why_composite : why_there(region, *call);
          if (call->as_op() == nullptr) return place_piece(region, *call, why);
          std::vector<LabelSeconds> costs = decision_.costs_of(placed_.call(*call));
          if (why_composite != nullptr && !costs.empty()) costs.resize(1);
          add_row(*call,
                  {.op = place_of(*call),
                   .kind = call->as_op()->name,
                   .backend = region.backend,
                   .reason = why.reason,
                   .message = why.message,
                   .region = region.name},
                  std::move(costs));
        });
  }

  void place_piece(const Region& region, const CallNode& piece, const Verdict& why) {
    const size_t before = placed_.placement.size();
    relay::check_composite_depth(++depth_, piece);
    place_ops(region, piece.op.as<FunctionNode>()->body, &why);
    --depth_;
    if (placed_.placement.size() == before) return;
    for (LabelSeconds& one : decision_.costs_of(placed_.call(piece))) {
      if (one.label != kNative) placed_.costs.back().push_back(std::move(one));
    }
  }

  Verdict why_there(const Region& region, const CallNode& call) const {
    if (!region.is_by_hand) return decision_.why(placed_.call(call), region.backend);
    return {.reason = HR_REASON_PLACE_BY_HAND,
            .message = fmt::format("the program puts it into the function '{}'", region.name)};
  }

  const IRModule module_;
  std::set<std::string> decided_;  // the names of regions that the decision made
  const Decision& decision_;
  PlacedModule placed_;
  std::unordered_map<std::string, size_t> number_of_region_;  // by name
  int depth_ = 0;                                             // how many composite functions are around this one
};

// Returns the names of the composite functions that no backend computes at one of their calls. At all others they are
// in the functions of regions.
std::vector<std::string> native_pieces(const IRModule& module, const Labels& labels) {
  std::set<std::string> names;
  for_each_decided_call(module, [&](const CallNode& call) {
    if (call.as_op() == nullptr && !labels.contains(&call)) names.insert(kind_of(call));
  });
  return {names.begin(), names.end()};
}

// Adds the calls before a rewrite that broke up pieces and inferred types. What is in the lets that order effects has
// none.
void add_calls_before(const IRModule& before, const IRModule& now, CallsBefore& calls) {
  for (const auto& [var, function] : now->functions()) {
    const auto* changed = function.as<FunctionNode>();
    const GlobalVar own = before->find_global_var(var->name_hint);
    const auto* known = own ? before->functions().at(own).as<FunctionNode>() : nullptr;
    if (changed == nullptr || known == nullptr || changed == known) continue;
    const Composition composition = read_composition(known->body, changed->body);
    relay::post_order(changed->body, [&](const Expr& expr) {
      const Expr* plain = composition.plain.find(expr.object());
      const auto* call = plain == nullptr ? nullptr : plain->as<CallNode>();
      if (call == nullptr || !expr.is<CallNode>()) return;
      const auto* const first = calls.find(call);
      calls.try_emplace(expr.object(), first == nullptr ? call : *first);
    });
  }
}

}  // namespace

PlacedModule place(const IRModule& module, const Backends& backends) { return place(OrderDecision(module, backends)); }

PlacedModule place(const Decision& decision) {
  const IRModule& module = decision.module();
  const Labels& labels = decision.labels();
  Partitioned decided = labels.empty()
                            ? Partitioned{.module = module, .regions = {}, .before = {}}
                            : partition_by_labels(module, labels, {.one_call = one_call_backends(decision.backends())});
  if (const std::vector<std::string> pieces = native_pieces(module, labels); !pieces.empty()) {
    const IRModule whole = decided.module;
    decided.module = relay::infer_type(inline_composites(whole, pieces));
    add_calls_before(whole, decided.module, decided.before);
  }
  return Placer(std::move(decided), decision).place();
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
  placed.calls.clear();
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
