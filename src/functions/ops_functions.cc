// Lets other languages register ops (lower/user_ops) and read and write the attributes of ops.
#include <cmath>

#include "functions/register_functions.h"
#include "lower/rule_input.h"
#include "lower/user_ops/open_attrs.h"
#include "object/function.h"
#include "object/repr.h"
#include "ops/call_fusion.h"
#include "tir/compute_form.h"

namespace headrace::functions {

namespace {

using lower::RuleInput;
using relay::CallNode;

Value attrs_of(const CallNode& call) {
  return call.attrs ? Value(relay::whole_user_attrs(*call.as_op(), call.attrs)) : Value();
}

bool is_known(const Type& type) {
  const std::vector<Type> leaves = leaves_of(type);
  return std::none_of(leaves.begin(), leaves.end(), [](const Type& leaf) { return leaf.is<IncompleteTypeNode>(); });
}

// Wraps a user's type relation. The relation is called only once the types of all arguments are known.
relay::TypeRelationFn relation_of(const PackedFunc& function) {
  return [function](const relay::RelationInput& input) -> Type {
    if (!std::all_of(input.arg_types.begin(), input.arg_types.end(), is_known)) return {};
    const Value result = function(Array<Type>(input.arg_types), attrs_of(input.call));
    if (result.is_none()) return {};
    const Type type = result.is<ObjectRef>() ? result.as<ObjectRef>().cast<TypeNode>() : Type();
    if (!type) input.fail(fmt::format("its type relation gave {}, which is not a type", repr(result)));
    return type;
  };
}

Value call_with_tensors(const PackedFunc& function, const RuleInput& input) {
  Array<Type> out_types;
  for (const TensorType& type : input.out_types) out_types.push_back(type);
  return function(attrs_of(input.call), Array<Buffer>(input.inputs), out_types);
}

// Returns the node that a user's function returned for a call. Throws UserError at the call if it has another type.
template <typename T>
Ref<T> given(const CallNode& call, const Value& value, std::string_view what) {
  const Ref<T> node = value.is<ObjectRef>() ? value.as<ObjectRef>().cast<T>() : Ref<T>();
  if (!node) lower::fail_call(call, fmt::format("its compute function gave {}; it must give {}", repr(value), what));
  return node;
}

lower::ComputeRuleFn form_of(const PackedFunc& function) {
  return [function](const RuleInput& input) {
    const Value result = call_with_tensors(function, input);
    const auto form = given<tir::ComputeNode>(input.call, result, "a compute form");
    try {
      return to_compute(form);
    } catch (const UserError& error) {
      lower::fail_call(input.call, error.message());
    }
  };
}

lower::PrimFuncFn loops_of(const PackedFunc& function) {
  return [function](const RuleInput& input) {
    return given<tir::PrimFuncNode>(input.call, call_with_tensors(function, input), "a tir.PrimFunc");
  };
}

// Returns a description of each attribute of the op, from which Python makes its list of fields.
Array<Value> describe_attrs(const Op& op) {
  Array<Value> rows;
  const relay::AttrSchema* schema = op->find(relay::kAttrSchema);
  for (size_t i = 0; schema != nullptr && i < schema->size(); ++i) {
    const relay::AttrSpec& spec = (*schema)[i];
    const bool has_default = !spec.default_value.is_none();
    rows.push_back(Value(Map<std::string, Value>{{"name", Value(spec.name)},
                                                 {"kind", Value(std::string(relay::name_of(spec.kind)))},
                                                 {"doc", Value(spec.doc)},
                                                 {"has_default", Value(has_default)},
                                                 {"default", spec.default_value}}));
  }
  return rows;
}

std::vector<std::pair<std::string, Value>> to_pairs(const Map<std::string, Value>& map) {
  std::vector<std::pair<std::string, Value>> pairs;
  for (const auto& [name, value] : map) pairs.emplace_back(name, value);
  return pairs;
}

void register_declarations() {
  register_global("relay.op.Register", make_packed([](const std::string& name, const std::string& doc, bool override) {
                    return lower::declare_user_op(name, doc, override);
                  }));
  register_global("relay.op.AddArgument",
                  make_packed([](const Op& op, const std::string& name, const std::string& kind,
                                 const std::string& doc) { lower::add_user_argument(op, {name, kind, doc}); }));
  register_global("relay.op.AddAttr", make_packed([](const Op& op, const std::string& name, const std::string& kind,
                                                     const Value& default_value, const std::string& doc) {
                    lower::add_user_attr(op, {name, relay::parse_attr_kind(kind), default_value, doc});
                  }));
  register_global("relay.op.SetNumInputs",
                  make_packed([](const Op& op, int64_t count) { lower::set_user_num_inputs(op, count); }));
  register_global("relay.op.SetSupportLevel",
                  make_packed([](const Op& op, int64_t level) { lower::set_user_support_level(op, level); }));
  register_global("relay.op.SetRelation", make_packed([](const Op& op, const PackedFunc& relation) {
                    lower::set_user_relation(op, relation_of(relation));
                  }));
}

void register_computes() {
  register_global("relay.op.SetForm", make_packed([](const Op& op, const PackedFunc& form) {
                    lower::set_user_compute(op, form_of(form));
                  }));
  register_global("relay.op.SetLoops",
                  make_packed([](const Op& op, const tir::PrimFunc& loops) { lower::set_user_compute(op, loops); }));
  register_global("relay.op.SetLoopsOfCall", make_packed([](const Op& op, const PackedFunc& loops) {
                    lower::set_user_compute(op, loops_of(loops));
                  }));
  register_global("relay.op.SetFunction", make_packed([](const Op& op, const std::string& function) {
                    lower::set_user_compute(op, lower::ExternalFunction{function});
                  }));
}

// ---- facts that passes ask

template <typename T>
T parse_word(const Op& op, std::string_view what, const std::string& word,
             std::initializer_list<std::pair<std::string_view, T>> words) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    known.push_back(name);
  }
  throw_user_error("{}: {} '{}'; expected one of {}", op->name, what, word, fmt::join(known, ", "));
}

ops::KeepsElements parse_keeps_elements(const Op& op, const std::string& word) {
  return parse_word<ops::KeepsElements>(op, "it keeps elements as", word,
                                        {{"view", ops::KeepsElements::view},
                                         {"broadcast", ops::KeepsElements::broadcast},
                                         {"note", ops::KeepsElements::note}});
}

ops::CommutingFactorsFn commuting_factors_of(const Op& op, const std::string& word) {
  const auto factors = parse_word<ops::CommutingFactors>(
      op, "it commutes with factors", word,
      {{"positive", ops::CommutingFactors::positive}, {"any", ops::CommutingFactors::any}});
  return [factors](const CallNode&, std::optional<size_t>) { return factors; };
}

// Wraps a user's function of (attrs, axis), which gives the word of the factors or None.
ops::CommutingFactorsFn commuting_factors_by(const PackedFunc& function) {
  return [function](const CallNode& call, std::optional<size_t> axis) {
    const Value at = axis ? Value(static_cast<int64_t>(*axis)) : Value();
    const Value given = function(attrs_of(call), at);
    if (given.is_none()) return ops::CommutingFactors::none;
    if (given.is<std::string>() && given.as<std::string>() == "positive") return ops::CommutingFactors::positive;
    if (given.is<std::string>() && given.as<std::string>() == "any") return ops::CommutingFactors::any;
    lower::fail_call(call,
                     fmt::format("its commuting factors are {}; expected 'positive', 'any' or None", repr(given)));
  };
}

// Wraps a user's function of (attrs, inputs), which gives an expression or None.
ops::BoundedFormFn bounded_form_by(const PackedFunc& function) {
  return [function](const CallNode& call) -> Expr {
    const Value given = function(attrs_of(call), call.args);
    if (given.is_none()) return {};
    const Expr form = given.is<ObjectRef>() ? given.as<ObjectRef>().cast<ExprNode>() : Expr();
    if (!form) lower::fail_call(call, fmt::format("its bounded form gave no expression but {}", repr(given)));
    return form;
  };
}

// Wraps a user's function of (attrs, types of the inputs, type of the result), which gives a number of operations.
ops::WorkFn work_by(const PackedFunc& function) {
  return [function](const CallNode& call) -> ops::Work {
    Array<Type> inputs;
    for (const Expr& arg : call.args) inputs.push_back(arg->checked_type());
    const Value given = function(attrs_of(call), inputs, call.checked_type());
    const bool is_number = given.is<double>() || given.is<int64_t>();
    const double operations = is_number ? given.as<double>() : -1;
    if (!std::isfinite(operations) || operations < 0)
      lower::fail_call(call, fmt::format("its work is {}; expected a number of operations, 0 or more", repr(given)));
    return {.operations = operations};
  };
}

// Wraps a user's function of (attrs, argument, axis, result_axis), which gives a bool.
ops::TreatsApartFn treats_apart_by(const PackedFunc& function) {
  return [function](const CallNode& call, const ops::UnknownAxis& where) {
    const auto number = [](size_t value) { return static_cast<int64_t>(value); };
    const Value given = function(attrs_of(call), number(where.arg), number(where.axis), number(where.result_axis));
    if (!given.is<bool>())
      lower::fail_call(call, fmt::format("whether it treats indices apart is {}; expected a bool", repr(given)));
    return given.as<bool>();
  };
}

void register_facts() {
  register_global("relay.op.SetKeepsElements", make_packed([](const Op& op, const std::string& how) {
                    lower::set_user_facts(op, {.keeps_elements = parse_keeps_elements(op, how)});
                  }));
  register_global("relay.op.SetCommutingFactors", make_packed([](const Op& op, const Value& factors) {
                    const bool is_word = factors.is<std::string>();
                    lower::set_user_facts(
                        op, {.commuting_factors = is_word ? commuting_factors_of(op, factors.as<std::string>())
                                                          : commuting_factors_by(factors.as<PackedFunc>())});
                  }));
  register_global("relay.op.SetKeepLayout", make_packed([](const Op& op, const Array<std::string>& axis_attrs) {
                    std::vector<std::string> names(axis_attrs.begin(), axis_attrs.end());
                    lower::set_user_facts(op, {.keep_layout = lower::keep_layout_with(*op, std::move(names))});
                  }));
  register_global("relay.op.SetBoundedForm", make_packed([](const Op& op, const PackedFunc& form) {
                    lower::set_user_facts(op, {.bounded_form = bounded_form_by(form)});
                  }));
  register_global("relay.op.SetWork", make_packed([](const Op& op, const PackedFunc& function) {
                    lower::set_user_facts(op, {.work = work_by(function)});
                  }));
  register_global("relay.op.SetTreatsApart", make_packed([](const Op& op, const PackedFunc& function) {
                    lower::set_user_facts(op, {.treats_apart = treats_apart_by(function)});
                  }));
}

}  // namespace

void register_op_functions() {
  register_declarations();
  register_computes();
  register_facts();
  register_global("relay.op.MakeAttrs", make_packed([](const Op& op, const Map<std::string, Value>& given) {
                    const Attrs attrs = relay::make_user_attrs(*op, to_pairs(given));
                    return attrs ? Value(attrs) : Value();
                  }));
  register_global("relay.op.DescribeAttrs", make_packed(&describe_attrs));
  register_global("relay.op.IsUserOp", make_packed(&lower::is_user_op));
  register_global("relay.op.WhyOpaque", make_packed([](const Expr& what) {
                    if (const auto* op = what.as<OpNode>()) return ops::why_opaque(*op);
                    if (const auto* call = what.as<CallNode>()) return ops::why_opaque(*call);
                    throw_user_error("expected an op or a call of one, got {}", what->key());
                  }));
  register_global("ir.OpSetAttr", make_packed(&lower::set_open_attr));
  register_global("ir.OpGetAttr", make_packed(&lower::get_open_attr));
  register_global("ir.OpResetAttr", make_packed(&lower::reset_open_attr));
}

}  // namespace headrace::functions
