#include "lower/user_ops/porting.h"

#include "lower/compute_rule.h"
#include "lower/user_ops/open_attrs.h"
#include "object/structural_equal.h"

namespace headrace {

void TypeReporterNode::Assign(const Type& dst, const Type& src) const {
  const size_t num_inputs = types_.size() - 1;
  if (dst == types_[num_inputs]) {
    result_ = src;
    return;
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    if (dst != types_[i]) continue;
    if (dst.is<IncompleteTypeNode>()) {
      input_.assume(i, src);
    } else if (!structural_equal(Value(dst), Value(src))) {
      input_.fail(fmt::format("argument {} must be {}, got {}", i, to_string(src), to_string(dst)));
    }
    return;
  }
  input_.fail("its type relation assigns to a type that it was not given");
}

OpRegEntry OpRegEntry::RegisterOrGet(const std::string& name) {
  OpRegEntry entry;
  porting::at_load([&] {
    lower::register_all_rules();
    entry.op_ = find_op(name);
    if (!entry.op_) entry.op_ = lower::declare_user_op(name, "");
  });
  return entry;
}

OpRegEntry& OpRegEntry::describe(const std::string& doc) {
  return change([&](const Op& op) { lower::set_user_doc(op, doc); });
}

OpRegEntry& OpRegEntry::add_argument(const std::string& name, const std::string& type, const std::string& description) {
  return change([&](const Op& op) { lower::add_user_argument(op, {name, type, description}); });
}

OpRegEntry& OpRegEntry::add_attr(relay::AttrSpec spec) {
  return change([&](const Op& op) { lower::add_user_attr(op, std::move(spec)); });
}

OpRegEntry& OpRegEntry::set_num_inputs(int32_t count) {
  return change([&](const Op& op) { lower::set_user_num_inputs(op, count); });
}

OpRegEntry& OpRegEntry::set_support_level(int32_t level) {
  return change([&](const Op& op) { lower::set_user_support_level(op, level); });
}

OpRegEntry& OpRegEntry::add_type_rel(const std::string& rel_name, RelayTypeRel relation) {
  return change([&](const Op& op) {
    if (!relation) throw_user_error("{}: the type relation '{}' is null", op->name, rel_name);
    lower::set_user_relation(op, [relation = std::move(relation)](const relay::RelationInput& input) -> Type {
      Array<Type> types(input.arg_types);
      types.push_back(Type(make_object<IncompleteTypeNode>()));
      const TypeReporterNode reporter(input, types);
      const bool is_enough = relation(types, static_cast<int>(input.arg_types.size()), input.call.attrs, &reporter);
      return is_enough ? reporter.result() : Type();
    });
  });
}

OpRegEntry& OpRegEntry::set_compute(lower::UserCompute compute) {
  return change([&](const Op& op) { lower::set_user_compute(op, std::move(compute)); });
}

OpRegEntry& OpRegEntry::set_value(const std::string& key, const Value& value) {
  return change([&](const Op& op) { lower::set_open_attr(op, key, value); });
}

}  // namespace headrace
