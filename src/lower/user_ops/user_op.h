// Ops that users register at run time. They are ops like ours: inferred, printed, saved, rewritten, interpreted, fused,
// compiled.
//
//   register_user_op({.name = "my.scale",
//                     .doc = "data * factor",
//                     .arguments = {{"data", "Tensor", ""}},
//                     .attrs = {{"factor", relay::AttrKind::real}},
//                     .relation = [](const relay::RelationInput& input) -> Type { return input.tensor(0); },
//                     .compute = ComputeRuleFn(...)});
//   make_user_call("my.scale", {x}, {{"factor", 2.0}});
//
// register_user_op is safe while other threads compile: they see the op whole or not at all. declare_user_op publishes
// an op that the functions below then change without a lock, and so do the open attributes of any op: no other thread
// may use the op, look through all ops (Legalize by another attribute does), or change it until it is complete.
#pragma once

#include <variant>

#include "lower/compute_rule.h"
#include "lower/user_ops/user_facts.h"
#include "ops/call_fusion.h"
#include "relay/user_attrs.h"

namespace headrace::lower {

// Gives the loops of one call: inputs, then outputs.
using PrimFuncFn = std::function<tir::PrimFunc(const RuleInput&)>;
// Takes a DLTensor* for each input (tuples are flattened), then one for each output. The call's attributes are not
// passed.
struct ExternalFunction {
  std::string name;  // a global function, or one that a module of the artifact provides
};
// The computation of an op: nothing (only its `eval` is interpreted; it does not compile), a compute form, loops (one
// function for all calls, whose shapes may have symbols, or one for each call), or a function of the process.
using UserCompute = std::variant<std::monostate, ComputeRuleFn, tir::PrimFunc, PrimFuncFn, ExternalFunction>;

struct UserOp {
  std::string name;
  std::string doc = {};
  std::vector<OpArgument> arguments = {};
  bool takes_any_args = false;  // else as many as `arguments`
  relay::AttrSchema attrs = {};
  relay::TypeRelationFn relation = {};  // asked when arguments and attributes are as the op says; tensors or a tuple
  UserCompute compute = {};
  ops::EvalFn eval = {};                       // empty: what `compute` says, run plainly
  std::optional<ops::FusionKind> fusion = {};  // nothing: derived from the compute form
  bool is_stateful = false;                    // see ops::kStateful
  UserFacts facts = {};
  bool override = false;  // an op that a user registered under the name is replaced; those of Headrace cannot be
};

// Registers the op with all its parts. UserError for a name that another op has (unless `override` is set) or that
// cannot stand in a text, for an attribute that add_attr refuses, and for loops that are not well-formed.
Op register_user_op(UserOp op);
// Registers an op whose parts the functions below fill in.
Op declare_user_op(const std::string& name, const std::string& doc, bool override = false);

// The set_ functions change an op that a user registered. UserError for a built-in op, and for an empty function.
void set_user_doc(const Op& op, std::string doc);
// Adds one argument, which raises the number of inputs unless set_user_num_inputs has fixed it.
void add_user_argument(const Op& op, OpArgument argument);
void add_user_attr(const Op& op, relay::AttrSpec spec);
void set_user_num_inputs(const Op& op, int64_t num_inputs);  // -1: any number
void set_user_support_level(const Op& op, int64_t level);    // 1 to 10
void set_user_relation(const Op& op, relay::TypeRelationFn relation);
void set_user_compute(const Op& op, UserCompute compute);
void set_user_eval(const Op& op, ops::EvalFn eval);  // counts whatever computes the op, set before or after it
void set_user_fusion(const Op& op, std::optional<ops::FusionKind> fusion);  // nothing: derived from the computation
void set_user_stateful(const Op& op, bool is_stateful);
// Sets the facts that are given and leaves the others.
void set_user_facts(const Op& op, UserFacts facts);
bool is_user_op(const Op& op);

// Makes a call with attributes by name. UserError as relay::make_user_attrs.
relay::Call make_user_call(std::string_view op, Array<Expr> args,
                           const std::vector<std::pair<std::string, Value>>& attrs = {}, Span span = {});

}  // namespace headrace::lower
