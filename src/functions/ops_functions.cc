// Lets other languages register ops (lower/user_ops) and read and write the attributes of ops.
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
    if (!type) input.fail(fmt::format("its type relation gave {}, which is no type", repr(result)));
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

}  // namespace

void register_op_functions() {
  register_declarations();
  register_computes();
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
