#include "passes/simplify/legalize.h"

#include "object/repr.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

constexpr const char* kKey = "relay.Legalize.legalize_map_attr_name";

constexpr std::string_view kWhat = "legalisation";

LegalizeFn from_packed(const PackedFunc& function) {
  return [function](const CallNode& call, const Array<Type>& types) {
    const Value attrs = call.attrs ? Value(call.attrs) : Value();
    return given_expression(function(attrs, call.args, types), call, kWhat);
  };
}

LegalizeFn find_legalize(const OpNode& op, const std::string& attr) {
  const std::any* found = op.find_any(attr);
  if (found == nullptr) return {};
  const auto* value = std::any_cast<Value>(found);
  if (value != nullptr && value->is_none()) return {};
  if (value != nullptr && value->is<PackedFunc>()) return from_packed(value->as<PackedFunc>());
  throw_user_error("the attribute '{}' of op '{}' is not a function that legalises calls", attr, op.name);
}

}  // namespace

// An op's attribute is a function of any language, which gets no call: one is made of what it gets.
void set_legalize(const Op& op, LegalizeFn legalize, std::string attr) {
  // Not by reference count: the op holds the function.
  OpNode* node = op.get();
  const auto packed = [node, legalize = std::move(legalize)](const Value& attrs, const Array<Expr>& args,
                                                             const Array<Type>& types) {
    const Attrs given = attrs.is_none() ? Attrs() : attrs.as<ObjectRef>().cast<AttrsNode>();
    const Expr result = legalize(*relay::make_call(ref(node), args, given), types);
    return result ? Value(result) : Value();
  };
  set_legalize(op, make_packed(packed), std::move(attr));
}
void set_legalize(const Op& op, const PackedFunc& legalize, std::string attr) {
  op->set(OpKey<Value>{attr}, Value(legalize));
}
void clear_legalize(const Op& op, const std::string& attr) { op->erase(attr); }

std::string legalize_attr(const pass::PassContext& context) {
  const auto value = context.config.get(kKey);
  if (!value) return kLegalizeAttr;
  if (!value->is<std::string>()) throw_user_error("{} must be a text, got {}", kKey, repr(*value));
  if (value->as<std::string>().empty())
    throw_user_error("{} is empty; leave it out for {}, or name an attribute of ops", kKey, kLegalizeAttr);
  return value->as<std::string>();
}

// Whether an op has it. The usual attribute need not be there: no op of ours has a legalisation.
static bool find_attr(const std::string& attr) {
  for (const std::string& name : op_names()) {
    if (get_op(name)->find_any(attr) != nullptr) return true;
  }
  if (attr == kLegalizeAttr) return false;
  throw_user_error("{}: no op has an attribute '{}'; the usual one is {}", kKey, attr, kLegalizeAttr);
}

IRModule legalize(const IRModule& module, const std::string& attr) {
  if (!find_attr(attr)) return module;
  return rewrite_calls(
      module, {.what = kWhat, .attr = attr, .find = [&](const OpNode& op) { return find_legalize(op, attr); }});
}

}  // namespace headrace::passes
