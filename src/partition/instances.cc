#include "partition/instances.h"

#include <algorithm>
#include <map>
#include <set>

#include "partition/decision.h"
#include "partition/regions.h"
#include "passes/rewrite/effects.h"
#include "relay/children.h"
#include "relay/composites.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/scopes.h"
#include "relay/unique_binders.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

const FunctionNode& main_of(const IRModule& module) { return *module->lookup("main").cast<FunctionNode>().get(); }

class Finder {
 public:
  Finder(const IRModule& module, const Backends& backends) { find(module, backends); }
  InstanceSet take() { return std::move(set_); }

 private:
  void find(const IRModule& module, const Backends& backends) {
    set_.module = module;
    set_.of_backend.resize(backends.size());
    const IRModule whole = compose(module, backends, &set_.refusals);
    std::vector<IRModule> alone;
    for (const auto& backend : backends)
      alone.push_back(backend->patterns().empty() ? module : backends.size() == 1 ? whole : compose(module, {backend}));
    const auto is_plain = [&](const IRModule& one) { return one == module; };
    if (is_plain(whole) && std::all_of(alone.begin(), alone.end(), is_plain)) return;
    set_.module = passes::in_order(module).module;
    read_users();
    set_.of_list = add_all(whole, module);
    for (size_t i = 0; i < alone.size(); ++i) set_.of_backend[i] = add_all(alone[i], module);
    for (size_t i = 0; i < alone.size(); ++i) {
      if (!is_plain(alone[i])) add_matches(*backends[i]);
    }
  }

  std::vector<int32_t> add_all(const IRModule& composed, const IRModule& plain) {
    std::vector<int32_t> added;
    if (composed == plain) return added;
    Composition composition = read_composition(set_.module, composed);
    for (size_t i = 0; i < composition.pieces.size(); ++i) {
      if (composition.is_whole[i]) added.push_back(add(std::move(composition.pieces[i])));
    }
    std::sort(added.begin(), added.end());
    return added;
  }

  int32_t add(Instance instance) {
    std::set<const Object*> parts;
    for (const Expr& part : instance.parts) parts.insert(part.object());
    const auto number = static_cast<int32_t>(set_.all.size());
    const auto [known, is_new] = known_.try_emplace({instance.name(), instance.root.object(), parts}, number);
    if (!is_new) return known->second;
    find_inside(instance, parts);
    set_.all.push_back(std::move(instance));
    return number;
  }

  // Users of a program, and its result, which null uses.
  void read_users() {
    const Expr& body = main_of(set_.module).body;
    users_[body.object()].push_back(nullptr);
    relay::post_order(body, [&](const Expr& expr) {
      relay::for_each_child(*expr.get(), [&](const ExprNode* child) {
        if (child != nullptr && !relay::is_atomic(*child)) users_[child].push_back(expr.object());
      });
    });
  }

  // A part that something outside uses, too, is computed twice, and so is what only such parts use.
  void find_inside(Instance& instance, const std::set<const Object*>& parts) {
    std::set<const Object*> inside{instance.root.object()};
    for (bool more = true; more;) {
      more = false;
      for (const Object* part : parts) {
        const std::vector<const Object*>& users = users_[part];
        const auto is_inside = [&](const Object* user) { return inside.contains(user); };
        if (!inside.contains(part) && std::all_of(users.begin(), users.end(), is_inside))
          more = inside.insert(part).second;
      }
    }
    for (const Expr& part : instance.parts) {
      if (inside.contains(part.object())) instance.inside.push_back(part);
    }
  }

  // The pattern takes no match, so that no match hides another.
  void add_matches(const Backend& backend) {
    for (CompositePattern entry : backend.patterns()) {
      std::vector<relay::PatternGroup> groups;
      const std::string name = entry.name;
      entry.accepts = [&, accepts = entry.accepts](const relay::PatternGroup& group, const Expr& shown) {
        if (!accepts || accepts(group, shown).ok()) groups.push_back(group);
        return false;
      };
      merge_composite(set_.module, std::span(&entry, 1));
      for (const relay::PatternGroup& group : groups) add_group(group, name);
    }
  }

  // Groups in other functions of the module are not of the program.
  void add_group(const relay::PatternGroup& group, const std::string& name) {
    if (!users_.contains(group.root.object())) return;
    const relay::Function made = relay::function_of(group, 0);
    DictAttrs attrs = made->attrs;
    attrs.set(relay::kComposite, Value(name));
    const auto function = copy_with(*made, [&](FunctionNode& copy) { copy.attrs = attrs; });
    Array<Expr> args;  // costs need their types, and of constants more
    for (const Expr& input : group.inputs)
      args.push_back(input.is<relay::ConstantNode>() ? input : Expr(relay::make_var("input", input->checked_type())));
    const relay::Call call = relay::make_call(Expr(function), args, {}, {}, group.root->span);
    std::vector<Expr> parts = group.parts;
    std::erase_if(parts, [](const Expr& part) { return relay::is_atomic(part); });
    std::reverse(parts.begin(), parts.end());
    add({.call = relay::infer_type(Expr(call), set_.module),
         .inputs = group.inputs,
         .root = group.root,
         .parts = parts});
  }

  InstanceSet set_;
  std::map<std::tuple<std::string, const Object*, std::set<const Object*>>, int32_t> known_;
  std::unordered_map<const Object*, std::vector<const Object*>> users_;
};

// A literal in an instance may stand elsewhere, too, so that its variables would be bound twice.
bool may_repeat_binders(std::span<const Instance* const> chosen) {
  return std::any_of(chosen.begin(), chosen.end(), [](const Instance* one) {
    return std::any_of(one->parts.begin(), one->parts.end(), [](const Expr& part) {
      return part.is<FunctionNode>() || part.is<relay::LetNode>() || part.is<relay::MatchNode>();
    });
  });
}

}  // namespace

InstanceSet find_instances(const IRModule& module, const Backends& backends) { return Finder(module, backends).take(); }

Composed compose_instances(const IRModule& module, std::span<const Instance* const> chosen) {
  std::unordered_map<const Object*, const Instance*> by_root;
  for (const Instance* one : chosen) by_root.emplace(one->root.object(), one);
  std::unordered_map<const Object*, Expr> done;
  Composed composed;
  composed.body = relay::rewrite_post_order(main_of(module).body, [&](const Expr& before, const Expr& after) {
    Expr now = after;
    if (const auto found = by_root.find(before.object()); found != by_root.end()) {
      Array<Expr> args;
      for (const Expr& input : found->second->inputs) args.push_back(done.at(input.object()));
      now = relay::make_call(found->second->call.as<CallNode>()->op, args, {}, {}, before->span);
    }
    if (now != before) composed.before.try_emplace(now.object(), before);
    done.emplace(before.object(), now);
    return now;
  });
  return composed;
}

IRModule with_instances(const IRModule& module, std::span<const Instance* const> chosen) {
  if (chosen.empty()) return module;
  Expr body = compose_instances(module, chosen).body;
  if (may_repeat_binders(chosen)) body = relay::unique_binders(body);
  IRModule result = snapshot(module);
  for (const auto& [var, function] : module->functions()) {
    if (var->name_hint != "main") continue;
    const auto changed = copy_with(main_of(module), [&](FunctionNode& copy) { copy.body = body; });
    result->add_function(var, changed, true);
  }
  return relay::infer_type(result);
}

IRModule with_instances_where(const InstanceSet& set, const std::function<bool(const Instance&)>& is_wanted) {
  std::vector<const Instance*> chosen;
  std::set<const Object*> taken;
  for (const Instance& one : set.all) {
    const auto is_taken = [&](const Expr& part) { return taken.contains(part.object()); };
    if (std::any_of(one.inside.begin(), one.inside.end(), is_taken) || !is_wanted(one)) continue;
    chosen.push_back(&one);
    for (const Expr& part : one.inside) taken.insert(part.object());
  }
  return with_instances(set.module, chosen);
}

}  // namespace headrace::partition
