#include "passes/devices/plan_devices.h"

#include "ir/virtual_device.h"
#include "object/repr.h"
#include "ops/op_handles.h"
#include "ops/tensor/device.h"
#include "passes/devices/device_domains.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;
using relay::IfNode;
using relay::LetNode;
using relay::MatchNode;

namespace {

std::string normal(const std::string& device) { return to_string(parse_virtual_device(device)); }

// A value at one of its uses: where it is, where it is needed.
struct Use {
  Expr value;
  Domain from, to;
  Span place;
};

class Planner {
 public:
  Planner(const IRModule& module, const DeviceOptions& options) : module_(module), options_(options) {
    host_ = domains_.make_leaf();
    domains_.set_device(host_, normal(options.host_device));
    for (const auto& [var, function] : module->functions()) {
      const auto* node = function.as<FunctionNode>();
      if (node != nullptr) functions_.emplace(var->name_hint, domains_.make(function->checked_type()));
    }
  }

  IRModule run() {
    for_each_function([&](const GlobalVar& var, const FunctionNode& function) { collect(var, function); });
    for (const auto& [leaf, device, place] : pins_) {
      if (!domains_.set_device(leaf, device))
        throw_at(place, op::kOnDevice.node().name,
                 fmt::format("the value is asked to be on {} and on {}; copy it by device_copy for one of them",
                             domains_.device(leaf), device));
    }
    for (const std::vector<Use>* uses : {&uses_, &borders_, &conditions_}) {
      for (const Use& use : *uses) join(use, use.from, use.to);
    }
    domains_.set_rest(normal(options_.default_device));
    const IRModule result = snapshot(module_);
    for_each_function([&](const GlobalVar& var, const FunctionNode& function) {
      result->add_function(var, rewritten(var, function), true);
    });
    return result;
  }

 private:
  struct Pin {
    Domain leaf;
    std::string device;
    Span place;
  };

  void for_each_function(const std::function<void(const GlobalVar&, const FunctionNode&)>& visit) const {
    for (const auto& [var, function] : module_->functions()) {
      const auto* node = function.as<FunctionNode>();
      if (node != nullptr && !relay::is_left_alone(*node)) visit(var, *node);
    }
  }

  // ---- what each value is joined with

  const Domain& at(const Expr& e) {
    Domain& known = known_[e.object()];
    if (!known) known = domains_.make(e->checked_type());
    return known;
  }

  void pin(const Domain& domain, const std::string& device, const Span& place) {
    for (const Domain& leaf : DeviceDomains::leaves(domain)) pins_.push_back({leaf, device, place});
  }

  void use(const Expr& value, const Domain& to, const Span& place) {
    if (!value.is<relay::ConstantNode>()) uses_.push_back({value, at(value), to, place});
  }

  void collect(const GlobalVar& var, const FunctionNode& function) {
    const Domain& own = functions_.at(var->name_hint);
    for (size_t i = 0; i < function.params.size(); ++i) known_[function.params[i].object()] = own->parts[i];
    pin_attributes(function, own);
    relay::post_order(function.body, relay::is_entered, [&](const Expr& e) {
      if (const auto* let = e.as<LetNode>()) let_values_.emplace(let->var.object(), let->value);
      const auto* inner = e.as<FunctionNode>();
      if (inner == nullptr || !relay::is_entered(e)) return;
      const Domain domain = at(e);
      for (size_t i = 0; i < inner->params.size(); ++i) known_[inner->params[i].object()] = domain->parts[i];
    });
    relay::post_order(function.body, relay::is_entered, [&](const Expr& e) { collect(e); });
    use(function.body, own->parts.back(), function.span);
  }

  // Sets the devices that the function attributes give: "cpu:0" for all of a value, "(cpu:0; cuda:0)" for a tuple's
  // leaves.
  void pin_attributes(const FunctionNode& function, const Domain& own) {
    const auto params = function.attrs.get(kParamVirtualDevices);
    const auto result = function.attrs.get(kResultVirtualDevice);
    if ((params && !params->is<Array<std::string>>()) || (result && !result->is<std::string>()))
      throw_at(function.span, "",
               fmt::format("{} must be a list of texts, {} a text", kParamVirtualDevices, kResultVirtualDevice));
    if (params) {
      const auto devices = params->as<Array<std::string>>();
      if (devices.size() != function.params.size())
        throw_at(function.span, kParamVirtualDevices,
                 fmt::format("it names {} devices, but the function has {} parameters", devices.size(),
                             function.params.size()));
      for (size_t i = 0; i < devices.size(); ++i)
        if (!devices[i].empty()) pin_leaves(own->parts[i], devices[i], kParamVirtualDevices, function.span);
    }
    if (result) pin_leaves(own->parts.back(), result->as<std::string>(), kResultVirtualDevice, function.span);
  }

  void pin_leaves(const Domain& domain, const std::string& text, const char* attribute, const Span& place) {
    std::vector<VirtualDevice> devices;
    try {
      devices = parse_virtual_devices(text);
    } catch (const UserError& error) {
      throw_at(place, "PlanDevices", fmt::format("{}: {}", attribute, error.message()));
    }
    if (!text.starts_with('(')) return pin(domain, to_string(devices[0]), place);
    const std::vector<Domain> leaves = DeviceDomains::leaves(domain);
    if (devices.size() != leaves.size())
      throw_at(place, "PlanDevices",
               fmt::format("{}: '{}' names {} devices, the value has {} parts", attribute, text, devices.size(),
                           leaves.size()));
    for (size_t i = 0; i < leaves.size(); ++i) pins_.push_back({leaves[i], to_string(devices[i]), place});
  }

  void collect(const Expr& e) {
    if (const auto* call = e.as<CallNode>()) return collect_call(e, *call);
    if (const auto* let = e.as<LetNode>()) {
      known_[e.object()] = at(let->body);
    } else if (const auto value = let_values_.find(e.object()); value != let_values_.end()) {
      use(value->second, at(e), e->span);  // a let's variable is met between its value and its body
    } else if (const auto* branch = e.as<IfNode>()) {
      use(branch->true_branch, at(e), e->span);
      use(branch->false_branch, at(e), e->span);
      if (!branch->cond.is<relay::ConstantNode>())
        conditions_.push_back({branch->cond, at(branch->cond), host_, e->span});
    } else if (const auto* tuple = e.as<relay::TupleNode>()) {
      std::vector<Domain> parts;
      for (const Expr& item : tuple->items)
        parts.push_back(item.is<relay::ConstantNode>() ? domains_.make(item->checked_type()) : at(item));
      known_[e.object()] = DeviceDomains::make_tuple(std::move(parts));
    } else if (const auto* item = e.as<relay::TupleGetItemNode>()) {
      known_[e.object()] = DeviceDomains::field(at(item->tuple), static_cast<size_t>(item->index));
    } else if (const auto* function = e.as<FunctionNode>()) {
      collect_function(e, *function);
    } else if (const auto* match = e.as<MatchNode>()) {
      collect_match(e, *match);
    } else if (const auto* global = e.as<GlobalVarNode>()) {
      const auto own = functions_.find(global->name_hint);
      if (own != functions_.end()) known_[e.object()] = own->second;
    } else {
      collect_reference(e);
    }
  }

  void collect_function(const Expr& e, const FunctionNode& function) {
    if (!relay::is_entered(e)) {
      refuse_annotated(function);
      const Domain leaf = domains_.make_leaf();
      auto unit = std::make_shared<DomainNode>();
      unit->kind = DomainNode::function;
      for (const relay::Var& param : function.params)
        unit->parts.push_back(DeviceDomains::all_of(leaf, param->checked_type()));
      unit->parts.push_back(DeviceDomains::all_of(leaf, e->checked_type().as<FuncTypeNode>()->ret_type));
      known_[e.object()] = unit;
      return;
    }
    use(function.body, at(e)->parts.back(), e->span);
  }

  static void refuse_annotated(const FunctionNode& unit) {
    relay::post_order(unit.body, [&](const Expr& e) {
      if (relay::is_call(e, op::kOnDevice) || relay::is_call(e, op::kDeviceCopy))
        throw_at(e->span, "PlanDevices",
                 fmt::format("{} is within a unit, which runs on one device; run PlanDevices before FuseOps",
                             e.as<CallNode>()->as_op()->name));
    });
  }

  void collect_reference(const Expr& e) {
    const auto whole = [&](const Expr& cell, const Expr& value) {
      use(value, DeviceDomains::all_of(at(cell), value->checked_type()), e->span);
    };
    if (const auto* create = e.as<relay::RefCreateNode>()) whole(e, create->value);
    if (const auto* write = e.as<relay::RefWriteNode>()) whole(write->ref, write->value);
    if (const auto* read = e.as<relay::RefReadNode>())
      known_[e.object()] = DeviceDomains::all_of(at(read->ref), e->checked_type());
  }

  void collect_match(const Expr& e, const MatchNode& match) {
    const Domain data = at(match.data);
    for (const relay::Clause& clause : match.clauses) {
      collect_pattern(clause->lhs, data);
      use(clause->rhs, at(e), e->span);
    }
  }

  // Patterns are as deep as the user wrote them.
  void collect_pattern(const relay::Pattern& pattern, const Domain& data) {
    if (const auto* var = pattern.as<relay::PatternVarNode>()) {
      const Domain value =
          data->kind == DomainNode::leaf ? DeviceDomains::all_of(data, var->var->checked_type()) : data;
      uses_.push_back({Expr(), value, at(var->var), pattern->span});
    } else if (const auto* constructor = pattern.as<relay::PatternConstructorNode>()) {
      for (const relay::Pattern& part : constructor->patterns) collect_pattern(part, data);
    } else if (const auto* tuple = pattern.as<relay::PatternTupleNode>()) {
      for (size_t i = 0; i < tuple->patterns.size(); ++i)
        collect_pattern(tuple->patterns[i], DeviceDomains::field(data, i));
    }
  }

  void collect_call(const Expr& e, const CallNode& call) {
    if (relay::is_call(e, op::kOnDevice)) return collect_on_device(e, call);
    if (relay::is_call(e, op::kDeviceCopy)) return collect_copy(e, call);
    if (call.as_op() != nullptr || call.op.is<ConstructorNode>()) {
      const Domain leaf = domains_.make_leaf();
      known_[e.object()] = DeviceDomains::all_of(leaf, e->checked_type());
      runs_on_[e.object()] = leaf;
      for (const Expr& arg : call.args) use(arg, DeviceDomains::all_of(leaf, arg->checked_type()), e->span);
      return;
    }
    const Domain callee = at(call.op);
    const bool is_known = callee->kind == DomainNode::function;
    for (size_t i = 0; i < call.args.size(); ++i)
      use(call.args[i], is_known ? callee->parts[i] : DeviceDomains::all_of(callee, call.args[i]->checked_type()),
          e->span);
    const Domain result = is_known ? callee->parts.back() : callee;
    known_[e.object()] = result->kind == DomainNode::leaf ? DeviceDomains::all_of(result, e->checked_type()) : result;
  }

  void collect_on_device(const Expr& e, const CallNode& call) {
    const auto& attrs = call.attrs_as<ops::OnDeviceAttrs>();
    const std::string device = normal(attrs.virtual_device);
    const bool is_constant = call.args[0].is<relay::ConstantNode>();
    if (attrs.constrain_body && !is_constant) pin(at(call.args[0]), device, e->span);
    if (attrs.constrain_result) pin(at(e), device, e->span);
    if (!is_constant) borders_.push_back({call.args[0], at(call.args[0]), at(e), e->span});
  }

  void collect_copy(const Expr& e, const CallNode& call) {
    const auto& attrs = call.attrs_as<ops::DeviceCopyAttrs>();
    const Domain source = domains_.make_leaf();
    pin(source, normal(attrs.src_virtual_device), e->span);
    pin(at(e), normal(attrs.dst_virtual_device), e->span);
    use(call.args[0], source, e->span);
  }

  // ---- joining

  // Parts that lie on two devices stay apart: they are copied, where they are tensors.
  void join(const Use& use, const Domain& a, const Domain& b) {
    const bool is_leaf = a->kind == DomainNode::leaf || b->kind == DomainNode::leaf;
    if (!is_leaf && a->kind == b->kind && a->parts.size() == b->parts.size()) {
      for (size_t i = 0; i < a->parts.size(); ++i) join(use, a->parts[i], b->parts[i]);
      return;
    }
    for (const Domain& x : DeviceDomains::leaves(a)) {
      for (const Domain& y : DeviceDomains::leaves(b)) {
        if (!domains_.join(x, y) && !use.value)
          throw_at(
              use.place, "match",
              fmt::format("a variable of the pattern is on {}, with the data, and is asked to be on {}; copy it by {}",
                          domains_.device(x), domains_.device(y), op::kDeviceCopy.name()));
      }
    }
  }

  // ---- rewriting

  relay::Function rewritten(const GlobalVar& var, const FunctionNode& function) {
    done_.clear();
    copies_.clear();
    relay::post_order(function.body, relay::is_entered,
                      [&](const Expr& e) { done_.emplace(e.object(), rewritten(e)); });
    const Domain& own = functions_.at(var->name_hint);
    const Expr body = needed(function.body, own->parts.back(), function.span);
    Array<std::string> params;
    for (size_t i = 0; i < function.params.size(); ++i) params.push_back(show(own->parts[i]));
    return copy_with(function, [&](FunctionNode& copy) {
      copy.body = body;
      copy.attrs.set(kParamVirtualDevices, Value(params));
      copy.attrs.set(kResultVirtualDevice, Value(show(own->parts.back())));
    });
  }

  // Returns the devices of a value as text: one word where all of it is on one device.
  std::string show(const Domain& domain) {
    std::vector<std::string> devices;
    for (const Domain& leaf : DeviceDomains::leaves(domain)) devices.push_back(domains_.device(leaf));
    if (devices.empty()) return normal(options_.default_device);
    const bool is_one = std::all_of(devices.begin(), devices.end(), [&](const auto& d) { return d == devices[0]; });
    return is_one ? devices[0] : fmt::format("({})", fmt::join(devices, "; "));
  }

  Expr rewritten(const Expr& e) {
    if (!relay::is_entered(e)) return e;
    if (const auto* call = relay::call_of(e, op::kOnDevice)) return needed(call->args[0], at(e), e->span);
    if (const auto* match = e.as<MatchNode>()) return rewritten_match(e, *match);
    std::vector<Expr> children = relay::children_of(e);
    for (size_t i = 0; i < children.size(); ++i) {
      const Domain to = needed_at(e, i);
      children[i] = to ? needed(children[i], to, e->span) : done_.at(children[i].object());
    }
    if (const auto* copy = relay::call_of(e, op::kDeviceCopy)) {
      const auto& attrs = copy->attrs_as<ops::DeviceCopyAttrs>();
      if (normal(attrs.src_virtual_device) == normal(attrs.dst_virtual_device)) return children[1];
    }
    return relay::with_children(e, children);
  }

  // Returns the devices on which `e` needs child `i`; null where any will do.
  Domain needed_at(const Expr& e, size_t i) {
    if (const auto* call = e.as<CallNode>()) return i == 0 ? nullptr : needed_arg(e, *call, i - 1);
    if (const auto* let = e.as<LetNode>()) return i == 0 ? at(let->var) : nullptr;
    if (e.is<IfNode>()) return i == 0 ? host_ : at(e);
    if (const auto* function = e.as<FunctionNode>())
      return i == function->params.size() ? at(e)->parts.back() : nullptr;
    if (const auto* create = e.as<relay::RefCreateNode>())
      return DeviceDomains::all_of(at(e), create->value->checked_type());
    if (const auto* write = e.as<relay::RefWriteNode>())
      return i == 1 ? DeviceDomains::all_of(at(write->ref), write->value->checked_type()) : nullptr;
    return nullptr;
  }

  // Its children are the data, then each clause's variables and body.
  Expr rewritten_match(const Expr& e, const MatchNode& match) {
    std::vector<Expr> children = relay::children_of(e);
    size_t i = 0;
    children[i++] = done_.at(match.data.object());
    for (const relay::Clause& clause : match.clauses) {
      for (const size_t body = i + relay::pattern_vars(clause->lhs).size(); i < body; ++i)
        children[i] = done_.at(children[i].object());
      children[i++] = needed(clause->rhs, at(e), e->span);
    }
    return relay::with_children(e, children);
  }

  Domain needed_arg(const Expr& e, const CallNode& call, size_t i) {
    const Type& type = call.args[i]->checked_type();
    if (const auto* copy = relay::call_of(e, op::kDeviceCopy)) {
      const Domain source = domains_.make_leaf();
      domains_.set_device(source, normal(copy->attrs_as<ops::DeviceCopyAttrs>().src_virtual_device));
      return source;
    }
    if (const auto own = runs_on_.find(e.object()); own != runs_on_.end())
      return DeviceDomains::all_of(own->second, type);
    const Domain callee = at(call.op);
    return callee->kind == DomainNode::function ? callee->parts[i] : DeviceDomains::all_of(callee, type);
  }

  // Returns the rewritten `value` on the devices `to`, copied if necessary.
  Expr needed(const Expr& value, const Domain& to, const Span& place) {
    const Expr& after = done_.at(value.object());
    if (value.is<relay::ConstantNode>()) return after;
    return copied(after, value->checked_type(), at(value), to, place);
  }

  bool is_there(const Domain& from, const Domain& to) {
    const bool is_leaf = from->kind == DomainNode::leaf || to->kind == DomainNode::leaf;
    if (!is_leaf && from->kind == to->kind && from->parts.size() == to->parts.size()) {
      for (size_t i = 0; i < from->parts.size(); ++i) {
        if (!is_there(from->parts[i], to->parts[i])) return false;
      }
      return true;
    }
    for (const Domain& x : DeviceDomains::leaves(from)) {
      for (const Domain& y : DeviceDomains::leaves(to)) {
        if (domains_.device(x) != domains_.device(y)) return false;
      }
    }
    return true;
  }

  Expr copied(const Expr& expr, const Type& type, const Domain& from, const Domain& to, const Span& place) {
    if (is_there(from, to)) return expr;
    const std::string source = show(from), target = show(to);
    Expr& copy = copies_[{expr.object(), target}];
    if (copy) return copy;
    if (const auto* tuple = type.as<TupleTypeNode>()) {
      const auto* literal = expr.as<relay::TupleNode>();
      Array<Expr> items;
      for (size_t i = 0; i < tuple->items.size(); ++i) {
        const Expr item = literal != nullptr
                              ? literal->items[i]
                              : Expr(relay::make_tuple_get_item(expr, static_cast<int64_t>(i), expr->span));
        const bool is_constant = item.is<relay::ConstantNode>();
        items.push_back(is_constant ? item
                                    : copied(item, tuple->items[i], DeviceDomains::field(from, i),
                                             DeviceDomains::field(to, i), place));
      }
      return copy = relay::make_tuple(items, expr->span);
    }
    if (!type.is<TensorTypeNode>())
      throw_at(place, "PlanDevices",
               fmt::format("a value of type {} is on {} and is needed on {}; only tensors are copied between devices: "
                           "copy those in it, or keep it on one device",
                           to_string(type), source, target));
    return copy = ops::device_copy(expr, source, target, place);
  }

  const IRModule& module_;
  const DeviceOptions& options_;
  DeviceDomains domains_;
  Domain host_;
  std::unordered_map<std::string, Domain> functions_;
  std::unordered_map<const Object*, Domain> known_, runs_on_;
  std::unordered_map<const Object*, Expr> let_values_;  // by variable
  std::vector<Pin> pins_;
  std::vector<Use> uses_, borders_, conditions_;
  std::unordered_map<const Object*, Expr> done_;
  std::map<std::pair<const Object*, std::string>, Expr> copies_;
};

bool says_anything(const IRModule& module) {
  bool says = false;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || relay::is_left_alone(*node)) continue;
    says = says || node->attrs.contains(kParamVirtualDevices) || node->attrs.contains(kResultVirtualDevice);
    relay::post_order(node->body, [&](const Expr& e) {
      says = says || relay::is_call(e, op::kOnDevice) || relay::is_call(e, op::kDeviceCopy);
    });
  }
  return says;
}

std::string read_device(const pass::PassContext& context, const char* key, const std::string& otherwise) {
  const auto value = context.config.get(key);
  if (!value) return otherwise;
  if (!value->is<std::string>()) throw_user_error("{} must be a text such as cuda:0, got {}", key, repr(*value));
  return normal(value->as<std::string>());
}

}  // namespace

DeviceOptions device_options(const pass::PassContext& context) {
  const DeviceOptions defaults;
  return {read_device(context, "relay.PlanDevices.default_device", defaults.default_device),
          read_device(context, "relay.PlanDevices.host_device", defaults.host_device)};
}

IRModule plan_devices(const IRModule& module, const DeviceOptions& options) {
  return says_anything(module) ? Planner(module, options).run() : module;
}

}  // namespace headrace::passes
