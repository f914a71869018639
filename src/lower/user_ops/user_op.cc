#include "lower/user_ops/user_op.h"

#include <algorithm>

#include "ir/op_table.h"
#include "ir/text_names.h"
#include "lower/rule_input.h"
#include "lower/user_ops/parameter_names.h"
#include "lower/user_ops/user_compute.h"
#include "lower/user_ops/user_eval.h"
#include "relay/leaves.h"
#include "relay/text/print_names.h"
#include "tir/raise.h"
#include "tir/verify.h"

namespace headrace::lower {

using ops::CallFusion;
using ops::FusionKind;
using relay::CallNode;
using relay::RelationInput;
using tir::PrimFunc;

namespace {

// Marks ops that users registered.
constexpr OpKey<bool> kIsUserOp{"IsUserOp"};
// The evaluation that the user gave, which one that follows from what computes the op does not replace.
constexpr OpKey<ops::EvalFn> kUserEval{"UserEval"};

OpNode& changeable(const Op& op) {
  if (!is_user_op(op))
    throw_user_error("'{}' is an op of Headrace, which is not changed; register an op under another name", op->name);
  return *op;
}

// Refuses an empty function at once: the op's first call would not name the op or its place.
template <typename F>
void check_given(const Op& op, const F& function, std::string_view what) {
  if (!function) throw_user_error("{}: the function that {} is empty; give one that can be called", op->name, what);
}

// A view is computed by nothing, so the effect of a call would be lost.
void check_is_no_view_with_effects(const OpNode& op, bool is_view, bool is_stateful) {
  if (is_view && is_stateful)
    throw_user_error("{}: an op that keeps its argument's elements has no effect, and it is registered as stateful",
                     op.name);
}

void check_name(const OpNode& op, std::string_view name, std::string_view what, std::string_view fault) {
  if (!fault.empty()) throw_user_error("{}: '{}' cannot name an {}: {}", op.name, name, what, fault);
}

// ---- types

bool is_tensors(const Type& type) {
  if (type.is<TensorTypeNode>()) return true;
  const auto* tuple = type.as<TupleTypeNode>();
  return tuple != nullptr && !tuple->items.empty() &&
         std::all_of(tuple->items.begin(), tuple->items.end(),
                     [](const Type& item) { return item.is<TensorTypeNode>(); });
}

Type related(const relay::TypeRelationFn& relation, const RelationInput& input) {
  if (const std::string fault = relay::user_attrs_fault(*input.call.as_op(), input.call.attrs); !fault.empty())
    input.fail(fault);
  const Type type = relation(input);
  if (type && input.call.as_op()->find(ops::kKeepsElements) != nullptr) check_keeps_elements(input, type);
  if (type && !is_tensors(type))
    input.fail(fmt::format("its type relation gave {}; an op gives a tensor or a tuple of one tensor or more",
                           to_string(type)));
  return type;
}

// ---- what computes it

RuleInput input_with_buffers(const CallNode& call) {
  RuleInput input = rule_input_of(call);
  input.inputs = make_inputs(input);
  return input;
}

// Returns whether the op promises how it reads its inputs, which passes that move the op rely on.
const FusionKind* promise_of(const CallNode& call) {
  const FusionKind* said = call.as_op()->find(ops::kFusionKind);
  return said != nullptr && *said <= FusionKind::broadcast ? said : nullptr;
}

void check_promise(const CallNode& call, const Expected<tir::Compute>& form) {
  const FusionKind* said = promise_of(call);
  if (said == nullptr || (form && widest_stage(form.value()) <= *said)) return;
  const std::string found =
      form ? "its compute form does not read its inputs so" : "its loops do not show it: " + form.refusal().message;
  fail_call(call, fmt::format("it is registered as {}, and {}; register another pattern, or none",
                              *said == FusionKind::elementwise ? "elementwise" : "broadcast", found));
}

// Returns the fusion kind derived from `form`, or opaque with the reason why there is no form.
CallFusion fusion_of_form(const CallNode& call, const Expected<tir::Compute>& form) {
  const FusionKind* said = call.as_op()->find(ops::kFusionKind);
  check_promise(call, form);
  if (!form) return {FusionKind::opaque, form.refusal().message};
  auto [found, why] = fusion_of(form.value());
  if (said == nullptr) return {found, std::move(why)};
  if (*said > FusionKind::anchor) return {*said, ops::why_opaque(*call.as_op())};
  // Results and stages that no group takes stay alone, whatever is said of them.
  return why.empty() ? CallFusion{*said, ""} : CallFusion{FusionKind::opaque, std::move(why)};
}

// Returns whether a size is known only at run time: the reads of a form cannot be analysed then, and the registered
// kind is not trusted.
bool has_unknown_size(const CallNode& call) {
  return relay::has_unknown_dim(call.checked_type()) ||
         std::any_of(call.args.begin(), call.args.end(),
                     [](const Expr& arg) { return relay::has_unknown_dim(arg->checked_type()); });
}

CallFusion unknown_size() { return {FusionKind::opaque, "it has a data-dependent size"}; }

void set_form(OpNode& op, const ComputeRuleFn& rule) {
  const ComputeRuleFn fitted = [rule](const RuleInput& input) { return fit_compute(rule, input); };
  op.set(kComputeRule, fitted);
  op.set(ops::kCallFusion, ops::CallFusionFn([fitted](const CallNode& call) {
           return has_unknown_size(call) ? unknown_size() : fusion_of_form(call, fitted(input_with_buffers(call)));
         }));
  // The interpreter refuses the call that the compiler refuses.
  op.set(ops::kEval, eval_by_form([fitted](const RuleInput& input) {
           tir::Compute form = fitted(input);
           check_promise(input.call, form);
           return form;
         }));
}

void set_loops(OpNode& op, const PrimFuncFn& loops) {
  // Asked of calls that fuse, and of those in groups that a user wrote.
  op.set(kComputeRule, ComputeRuleFn([loops](const RuleInput& input) {
           Expected<tir::Compute> form = raise_for(loops(input), input);
           if (!form)
             fail_call(input.call, fmt::format("it cannot be fused with other ops: {}", form.refusal().message));
           return std::move(form.value());
         }));
  op.set(kKernelRule, KernelRuleFn([loops](const KernelInput& input) {
           const RuleInput tensors = input_with_buffers(input.op.call);
           return loops_for(loops(tensors), input);
         }));
  op.set(ops::kCallFusion, ops::CallFusionFn([loops](const CallNode& call) {
           if (has_unknown_size(call)) return unknown_size();
           const RuleInput input = input_with_buffers(call);
           return fusion_of_form(call, raise_for(loops(input), input));
         }));
  op.set(ops::kEval, eval_by_loops([loops](const RuleInput& input) {
           PrimFunc function = loops(input);
           if (promise_of(input.call) != nullptr) check_promise(input.call, raise_for(function, input));
           return function;
         }));
}

void set_external(OpNode& op, const std::string& function) {
  if (function.empty()) throw_user_error("{}: the function that computes it needs a name", op.name);
  std::string why = fmt::format("the function '{}' computes it, whose loops are not known", function);
  op.set(ops::kExternal, function);
  op.set(ops::kCallFusion, ops::CallFusionFn([why](const CallNode&) { return CallFusion{FusionKind::opaque, why}; }));
  op.set(ops::kWhyOpaque, std::move(why));
  op.set(ops::kEval, eval_by_function(function));
}

PrimFunc well_formed(const OpNode& op, PrimFunc function) {
  if (!function) throw_user_error("{}: the PrimFunc that computes it is null", op.name);
  try {
    tir::verify(function);
  } catch (const UserError& error) {
    throw_user_error("{}: its loops are not well-formed: {}", op.name, error.message());
  }
  return function;
}

void check_name(const std::string& name, bool override) {
  if (!is_identifier(name, true))
    throw_user_error(
        "'{}' cannot name an op: choose words of letters, digits and _ with dots between them, such as "
        "\"my.scale\"",
        name);
  if (!relay::can_name_op(name))
    throw_user_error("'{}' cannot name an op: it means something else in text; choose such as \"my.{}\"", name,
                     name.substr(name.rfind('.') + 1));
  const Op previous = find_op(name);
  if (!previous) return;
  if (!is_user_op(previous)) throw_user_error("'{}' is an op of Headrace; register yours under another name", name);
  if (!override) throw_user_error("op '{}' is registered already; ask for override to replace it", name);
}

Op new_op(const std::string& name, const std::string& doc, bool override) {
  register_all_rules();
  check_name(name, override);
  const Op op = make_op(name);
  op->doc = doc;
  op->set(kIsUserOp, true);
  return op;
}

}  // namespace

bool is_user_op(const Op& op) { return op->find(kIsUserOp) != nullptr; }

Op declare_user_op(const std::string& name, const std::string& doc, bool override) {
  const Op op = new_op(name, doc, override);
  publish_op(op, override);
  return op;
}

Op register_user_op(UserOp given) {
  const Op op = new_op(given.name, given.doc, given.override);
  for (OpArgument& argument : given.arguments) add_user_argument(op, std::move(argument));
  op->num_inputs = given.takes_any_args ? -1 : static_cast<int32_t>(given.arguments.size());
  for (relay::AttrSpec& spec : given.attrs) add_user_attr(op, std::move(spec));
  if (given.relation) set_user_relation(op, std::move(given.relation));
  set_user_compute(op, std::move(given.compute));
  if (given.eval) set_user_eval(op, std::move(given.eval));
  if (given.fusion) set_user_fusion(op, *given.fusion);
  set_user_stateful(op, given.is_stateful);
  set_user_facts(op, std::move(given.facts));
  publish_op(op, given.override);
  return op;
}

void set_user_doc(const Op& op, std::string doc) { changeable(op).doc = std::move(doc); }

// Adds an argument and counts it as an input, unless the number of inputs was set.
void add_user_argument(const Op& op, OpArgument argument) {
  OpNode& node = changeable(op);
  const auto named = static_cast<int32_t>(node.arguments.size());
  check_name(node, argument.name, "argument", argument_name_fault(argument.name));
  relay::add_argument(node, std::move(argument));
  if (node.num_inputs == (named == 0 ? -1 : named)) node.num_inputs = named + 1;
}

void add_user_attr(const Op& op, relay::AttrSpec spec) {
  OpNode& node = changeable(op);
  check_name(node, spec.name, "attribute", attr_name_fault(spec.name));
  relay::add_attr(node, std::move(spec));
}

void set_user_num_inputs(const Op& op, int64_t num_inputs) {
  if (num_inputs < -1 || num_inputs > INT32_MAX)
    throw_user_error("{}: the number of inputs must be 0 or more, or -1 for any number, got {}", op->name, num_inputs);
  changeable(op).num_inputs = static_cast<int32_t>(num_inputs);
}

void set_user_support_level(const Op& op, int64_t level) {
  if (level < 1 || level > 10)
    throw_user_error("{}: the support level must be a number from 1 to 10, got {}", op->name, level);
  changeable(op).support_level = static_cast<int32_t>(level);
}

void set_user_relation(const Op& op, relay::TypeRelationFn relation) {
  OpNode& node = changeable(op);
  check_given(op, relation, "is its type relation");
  node.set(relay::kTypeRelation, relay::TypeRelationFn([relation = std::move(relation)](const RelationInput& input) {
             return related(relation, input);
           }));
}

void set_user_compute(const Op& op, UserCompute compute) {
  OpNode& node = changeable(op);
  if (const auto* form = std::get_if<ComputeRuleFn>(&compute)) check_given(op, *form, "makes its compute form");
  if (const auto* make = std::get_if<PrimFuncFn>(&compute)) check_given(op, *make, "makes its loops");
  for (const std::string_view key : {kComputeRule.name, kKernelRule.name, ops::kCallFusion.name, ops::kExternal.name,
                                     ops::kEval.name, ops::kWhyOpaque.name})
    node.erase(key);
  if (const auto* form = std::get_if<ComputeRuleFn>(&compute)) {
    set_form(node, *form);
  } else if (const auto* function = std::get_if<PrimFunc>(&compute)) {
    const PrimFunc loops = well_formed(node, *function);
    set_loops(node, [loops](const RuleInput&) { return loops; });
    if (const auto form_of_all = tir::raise(loops); !form_of_all)
      node.set(ops::kWhyOpaque, form_of_all.refusal().message);
  } else if (const auto* make = std::get_if<PrimFuncFn>(&compute)) {
    set_loops(node, [make = *make](const RuleInput& input) { return well_formed(*input.call.as_op(), make(input)); });
  } else if (const auto* external = std::get_if<ExternalFunction>(&compute)) {
    set_external(node, external->name);
  }
  if (const ops::EvalFn* eval = node.find(kUserEval)) node.set(ops::kEval, *eval);
}

void set_user_eval(const Op& op, ops::EvalFn eval) {
  OpNode& node = changeable(op);
  check_given(op, eval, "evaluates it");
  node.set(kUserEval, eval);
  node.set(ops::kEval, std::move(eval));
}

void set_user_fusion(const Op& op, std::optional<FusionKind> fusion) {
  OpNode& node = changeable(op);
  node.erase(ops::kFusionKind.name);
  if (fusion) node.set(ops::kFusionKind, *fusion);
}

void set_user_stateful(const Op& op, bool is_stateful) {
  OpNode& node = changeable(op);
  check_is_no_view_with_effects(node, node.find(ops::kKeepsElements) != nullptr, is_stateful);
  node.erase(ops::kStateful.name);
  if (is_stateful) node.set(ops::kStateful, true);
}

void set_user_facts(const Op& op, UserFacts facts) {
  OpNode& node = changeable(op);
  check_is_no_view_with_effects(node, facts.keeps_elements.has_value(), relay::is_stateful(node));
  if (facts.keeps_elements) node.set(ops::kKeepsElements, *facts.keeps_elements);
  if (facts.repeats) node.set(ops::kRepeats, *facts.repeats);
  if (facts.commuting_factors) node.set(ops::kCommutingFactors, std::move(facts.commuting_factors));
  if (facts.keep_layout) node.set(ops::kKeepLayout, std::move(facts.keep_layout));
  if (facts.bounded_form) node.set(ops::kBoundedForm, checked_bounded_form(std::move(facts.bounded_form)));
  if (facts.treats_apart) node.set(ops::kTreatsApart, std::move(facts.treats_apart));
  if (facts.work) node.set(ops::kWork, std::move(facts.work));
}

relay::Call make_user_call(std::string_view op, Array<Expr> args,
                           const std::vector<std::pair<std::string, Value>>& attrs, Span span) {
  const Op found = get_op(op);
  return relay::make_call(found, std::move(args), relay::make_user_attrs(*found, attrs), {}, std::move(span));
}

}  // namespace headrace::lower
